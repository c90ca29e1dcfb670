"""Which of our runs may stand beside a published number: those that were made as its row says, and no others.

A cell is filled from one experiment, never pooled from several. The experiment has to be

- for a paper's table: the one of the table's name, or a panel of it, since papers' own training settings differ from
  table to table; it has to be run as its file says, which only rooms that read the files know
  (`StoredExperiment.deviations`);
- for MLRC's tables: any under MLRC's protocol with the settings of the suite's own file for that table
  (`StoredExperiment.mlrc`): images, training, trunk, class split, and hyperparameters from as many trials or from
  MLRC's own optimum. MLRC validated more often on some datasets than on others, so each dataset has its own file.

In both cases these must be as published: dataset, whole and not a subset; trunk, started from its published
ImageNet weights; dimensions of what was tested; one model, or four as separated or concatenated; image size; method.
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from results.published.tables import PublishedCell, PublishedRow, PublishedTable
from results.records.experiment_summary import ExperimentSummary
from results.records.records import RunRecord
from results.spec import mlrc_constants
from results.spec.conditions import ImageSettings
from results.spec.experiment_spec import Experiment
from results.store.experiment_results import MeasuredExperiment

_TRUNKS = {
    **dict.fromkeys(
        ("BN-Inception", "Inception with batch normalization", "Inception (BN)", "Inception-BN", "BN", "IBN"),
        "bn_inception",
    ),
    **dict.fromkeys(("G", "GoogleNet"), "googlenet"),
    **dict.fromkeys(("R50", "ResNet-50"), "resnet50"),
    "ResNet-101": "resnet101",
}
# The row below PA + NIR in each part of NIR's Table 2, whose name is lost, is the same method with average and maximum
# pooling: every command of the authors' script is followed by one with double pooling.
_LOST_NAME = "(method name lost in the text; row directly below PA + NIR"


@dataclass(frozen=True)
class StoredExperiment:
    """An experiment under the name that it was run by.

    Attributes:
        deviations: The settings that differ from the experiment file of that name, as phrases. Runs with deviations
            fill no cell of a paper's table.
        mlrc: The suite's own experiment for MLRC's table on the dataset; None if MLRC has no table there. MLRC's
            tables take any experiment with the settings of this one, whatever its own file is called.
    """

    name: str
    measured: MeasuredExperiment
    deviations: tuple[str, ...] = ()
    mlrc: Experiment | None = None

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
    return named or (table.name in mlrc_constants.MLRC_TABLES and summary.experiment.protocol == "mlrc")


@dataclass(frozen=True)
class TestedModels:
    """What a run tests: how many models, and the dimensions of one of them."""

    __test__: ClassVar[bool] = False  # Not a test case, in spite of its name.

    models: int
    dimensions: int


def models_of(run: RunRecord) -> TestedModels:
    """The models of a finished run."""
    return TestedModels(len(run.fold_fingerprints), run.dimensions)


def objections(
    table: PublishedTable, row: PublishedRow, cell: PublishedCell, stored: StoredExperiment, tested: TestedModels
) -> list[str]:
    """Why an experiment's runs of the row's method cannot fill a cell.

    Returns:
        Reasons as phrases; empty if the runs can fill the cell.
    """
    experiment, of_mlrc = stored.measured.summary.experiment, table.name in mlrc_constants.MLRC_TABLES
    experiment = experiment.for_row(cell.key or "")
    trunk = experiment.conditions.trunk
    reasons = [] if of_mlrc else list(stored.deviations)
    if cell.key not in (*experiment.methods, *(variant.key for variant in experiment.variants)):
        reasons.append("a method card of its own")
    if stored.measured.code_of(cell.key or ""):
        reasons.append("a loss or miner of its own")
    if experiment.dataset.subset:
        reasons.append("a subset of the dataset")
    if row.trunk and trunk.name != _TRUNKS[row.trunk]:
        reasons.append(f"trunk {trunk.name}, published for {row.trunk}")
    if trunk.frozen:
        reasons.append("a frozen trunk")
    if trunk.weights != "imagenet":
        reasons.append(f"trunk started from {trunk.weights.partition(':')[0]} weights, not the published ones")
    if table.name == "nir_table2" and trunk.pooling != _published_pooling(row):
        reasons.append(f"{trunk.pooling} pooling")
    reasons += _shape(row, cell, tested, experiment.conditions.images)
    if of_mlrc:
        reasons += _against_mlrc(cell, experiment, stored.mlrc)
    return reasons


def objections_to_runs(
    table: PublishedTable, row: PublishedRow, cell: PublishedCell, stored: StoredExperiment
) -> list[str] | None:
    """The objections to what an experiment has run of a cell's method; None if it has no runs of it on the dataset."""
    runs = stored.runs(cell.key) if cell.key and stored.dataset == cell.dataset else []
    return objections(table, row, cell, stored, models_of(runs[0])) if runs else None


def published_image_size(row: PublishedRow, cell: PublishedCell) -> int:
    """Pixels of the crop's side: as the row says; else 227 for MLRC's embeddings and 224, the papers' size."""
    said = re.search(r"\b(\d+)x\1\b", f"{row.label} {row.setting}")
    if said:
        return int(said[1])
    return 224 if cell.kind == "single" else ImageSettings().crop


def _published_pooling(row: PublishedRow) -> str:
    """Pooling of a row of NIR's Table 2."""
    return "average_max" if row.label.startswith(_LOST_NAME) else "average"


def _shape(row: PublishedRow, cell: PublishedCell, tested: TestedModels, images: ImageSettings) -> list[str]:
    reasons = []
    if tested.models != (asked := 1 if cell.kind == "single" else mlrc_constants.FOLDS):
        reasons.append(f"{tested.models} model(s) a run, published for {asked}")
    dimensions = tested.dimensions * (tested.models if cell.kind == "concatenated" else 1)
    if cell.dimensions is not None and dimensions != cell.dimensions:
        reasons.append(f"{dimensions} dimensions, published for {cell.dimensions}")
    if images.crop != (size := published_image_size(row, cell)):
        reasons.append(f"images of {images.crop} pixels, published for {size}")
    return reasons


def _against_mlrc(cell: PublishedCell, experiment: Experiment, mlrc: Experiment | None) -> list[str]:
    """Settings that differ from MLRC's on that dataset. The precision of arithmetic is none of them."""
    if mlrc is None:
        return ["MLRC has no table on this dataset"]
    key = cell.key or ""
    training = experiment.conditions.training.model_copy(update={"precision": mlrc.conditions.training.precision})
    # Another network and other weights have reasons of their own.
    trunk = experiment.conditions.trunk.model_copy(
        update={"name": mlrc.conditions.trunk.name, "weights": mlrc.conditions.trunk.weights}
    )
    search = experiment.search
    enough = search.trials == 0 or search.trials >= mlrc.search.trials
    wrong = {
        "another transform of images": experiment.conditions.images != mlrc.conditions.images,
        "other training settings": training != mlrc.conditions.training,
        "another trunk setting": trunk != mlrc.conditions.trunk,
        "another embedder": (experiment.conditions.embedder_bias, experiment.conditions.embedder)
        != (mlrc.conditions.embedder_bias, mlrc.conditions.embedder),
        "another normalization of embeddings": experiment.conditions.normalization != mlrc.conditions.normalization,
        "another class split": (experiment.split or mlrc.split or "mlrc") != (mlrc.split or "mlrc"),
        "proxies trained otherwise": experiment.proxies != mlrc.proxies,
        "a variant of a method": key not in experiment.methods,
        "hyperparameters set by hand": experiment.settings.get(key) != mlrc.settings.get(key),
        f"{search.trials} trials instead of {mlrc.search.trials}": not enough,
        "other search ranges": search.ranges.get(key) != mlrc.search.ranges.get(key),
        "a search of the network's learning rate": search.network_lr is not None,
        "optima of another search": search.published != mlrc.search.published,
    }
    return [reason for reason, differs in wrong.items() if differs]
