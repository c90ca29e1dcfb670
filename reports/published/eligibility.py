"""Which of our runs may stand beside a published number: those that were made as its row says, and no others.

A cell is filled from one experiment, never pooled from several. The experiment has to be

- for a paper's table: the one of the table's name, or a panel of it, since papers' own training settings differ from
  table to table; it has to be run as its file says, which only rooms that read the files know
  (`StoredExperiment.deviations`);
- for MLRC's tables: any under MLRC's protocol with MLRC's settings, which this suite's defaults are: images, training,
  trunk, 128 dimensions, four folds, no bias left out, and hyperparameters from 50 trials or from MLRC's own optimum.

In both cases these must be as published: dataset, whole and not a subset; trunk, started from its published
ImageNet weights; dimensions of what was tested; one model, or four as separated or concatenated; image size; method.
"""

import re
from dataclasses import dataclass

from results import mlrc_constants
from results.experiment_results import MeasuredExperiment
from results.experiment_spec import Experiment
from results.experiment_summary import OTHER_VERSION, ExperimentSummary
from results.published.tables import PublishedCell, PublishedRow, PublishedTable
from results.records import RunRecord
from results.training_spec import ImageSettings, TrunkSpec

_TRUNKS = {
    **dict.fromkeys(
        ("BN-Inception", "Inception with batch normalization", "Inception (BN)", "Inception-BN", "BN", "IBN"),
        "bn_inception",
    ),
    **dict.fromkeys(("G", "GoogleNet"), "googlenet"),
    **dict.fromkeys(("R50", "ResNet-50"), "resnet50"),
    "ResNet-101": "resnet101",
}
# The row below PA + NIR in each part of the table, whose name is lost, is the same method with doubled pooling.
_POOLING = {"nir_table2": "average"}


@dataclass(frozen=True)
class StoredExperiment:
    """An experiment under the name that it was run by.

    deviations: the settings that differ from the experiment file of that name, as phrases; such runs fill no cell of a
    paper's table. MLRC's tables take any experiment that was run with MLRC's settings, whatever its file says.
    """

    name: str
    measured: MeasuredExperiment
    deviations: tuple[str, ...] = ()

    @property
    def dataset(self) -> str:
        """Our key of its dataset, empty if no settings were kept."""
        return self.measured.summary.dataset

    def runs(self, method: str) -> list[RunRecord]:
        """The method's runs."""
        return [record for record in self.measured.records if record.method == method]


def concerns(table: PublishedTable, name: str, summary: ExperimentSummary) -> bool:
    """Whether an experiment of that name and summary may have runs for the table at all."""
    if summary.dataset not in {column.dataset for column in table.columns}:
        return False
    named = name == table.name or name.startswith(f"{table.name}/")
    return named or (mlrc_constants.is_mlrc_table(table.name) and summary.protocol == "mlrc")


def objections(table: PublishedTable, row: PublishedRow, cell: PublishedCell, stored: StoredExperiment) -> list[str]:
    """Why an experiment's runs of the row's method cannot fill a cell; empty if they can.

    The experiment has runs of that method, on the cell's dataset.
    """
    experiment, of_mlrc = stored.measured.summary.experiment, mlrc_constants.is_mlrc_table(table.name)
    if experiment is None:
        return [OTHER_VERSION]
    trunk = experiment.trunk
    reasons = [] if of_mlrc else list(stored.deviations)
    if cell.key not in (*experiment.methods, *(variant.key for variant in experiment.variants)):
        reasons.append("a method card of its own")
    if experiment.dataset.subset:
        reasons.append("a subset of the dataset")
    if row.trunk and trunk.name != _TRUNKS[row.trunk]:
        reasons.append(f"trunk {trunk.name}, published for {row.trunk}")
    if trunk.weights != "imagenet":
        reasons.append(f"trunk started from {trunk.weights.partition(':')[0]} weights, not the published ones")
    if trunk.pooling != _POOLING.get(table.name, trunk.pooling):
        reasons.append(f"{trunk.pooling} pooling")
    reasons += _shape(row, cell, stored.runs(cell.key or "")[0], experiment.images)
    if of_mlrc:
        reasons += _against_mlrc(cell, experiment)
    return reasons


def published_image_size(row: PublishedRow, cell: PublishedCell) -> int:
    """Pixels of the crop's side: as the row says; else 227 for MLRC's embeddings and 224, the papers' size."""
    said = re.search(r"\b(\d+)x\1\b", f"{row.label} {row.setting}")
    if said:
        return int(said[1])
    return 224 if cell.kind == "single" else ImageSettings().crop


def _shape(row: PublishedRow, cell: PublishedCell, run: RunRecord, images: ImageSettings) -> list[str]:
    reasons = []
    models = len(run.fold_fingerprints)
    if models != (asked := 1 if cell.kind == "single" else mlrc_constants.FOLDS):
        reasons.append(f"{models} model(s) a run, published for {asked}")
    tested = run.dimensions * (models if cell.kind == "concatenated" else 1)
    if cell.dimensions is not None and tested != cell.dimensions:
        reasons.append(f"{tested} dimensions, published for {cell.dimensions}")
    if images.crop != (size := published_image_size(row, cell)):
        reasons.append(f"images of {images.crop} pixels, published for {size}")
    return reasons


def _against_mlrc(cell: PublishedCell, experiment: Experiment) -> list[str]:
    """Settings other than MLRC's. How crops are computed and at which precision is no setting of it."""
    images = experiment.images.model_copy(update={"augmentation": "faithful"})
    training = experiment.training.model_copy(update={"precision": "float32"})
    trunk, search = experiment.trunk, experiment.search
    wrong = {
        "another transform of images": images != ImageSettings(),
        "other training settings": training
        != (mlrc_constants.SOP_TRAINING if cell.dataset == "sop" else mlrc_constants.TRAINING),
        "another trunk setting": trunk != TrunkSpec(name=trunk.name, weights=trunk.weights),
        "another embedder": not experiment.embedder_bias,
        "another class split": experiment.split not in (None, "mlrc"),
        "proxies trained otherwise": experiment.proxies is not None,
        "a variant of a method": cell.key not in experiment.methods,
        "hyperparameters set by hand": cell.key in experiment.settings,
        f"{search.trials} trials instead of {mlrc_constants.TRIALS}": not _searched_enough(search.trials),
        "other search ranges": cell.key in search.ranges,
    }
    return [reason for reason, is_so in wrong.items() if is_so]


def _searched_enough(trials: int) -> bool:
    """No trials take MLRC's optimum, which MLRC found in its full number of trials."""
    return trials == 0 or trials >= mlrc_constants.TRIALS
