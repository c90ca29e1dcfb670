"""Which of our runs may stand beside a printed number: those that are what the printed row says, and no others.

A cell is filled from one experiment, never pooled from several. The experiment has to be

- for a paper's table: the one of the table's name, or a panel of it, since papers' own training settings differ from
  table to table; whether it was run as its file says is judged by who reads the files (`StoredExperiment.departures`);
- for MLRC's tables: any under MLRC's protocol with MLRC's settings, which this suite's defaults are: images, training,
  trunk, 128 dimensions, four folds, no bias left out, and hyperparameters from 50 trials or from MLRC's own optimum.

In both cases these must agree with what is printed: dataset, whole and not a subset; trunk, started from its published
ImageNet weights; dimensions of what was tested; one model, or four as separated or concatenated; image size; method.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from results import mlrc_constants
from results.experiment_results import MeasuredExperiment
from results.published.tables import PublishedCell, PublishedRow, PublishedTable
from results.records import RunRecord
from results.training_spec import ImageSettings, TrainingSettings, TrunkSpec

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

    departures: in what it was run otherwise than the experiment file of that name says, as phrases; such runs fill no
    printed cell.
    """

    name: str
    measured: MeasuredExperiment
    departures: tuple[str, ...] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """The experiment's settings as they were run."""
        found: Mapping[str, Any] = self.measured.summary.get("settings") or {}
        return found

    @property
    def dataset(self) -> str:
        """Our key of its dataset, empty where no settings were kept."""
        return str(self.settings.get("dataset", {}).get("name", ""))

    def runs(self, method: str) -> list[RunRecord]:
        """The method's runs."""
        return [record for record in self.measured.records if record.method == method]


def concerns(table: PublishedTable, name: str, summary: Mapping[str, Any]) -> bool:
    """Whether an experiment of that name and summary may have runs for the table at all."""
    settings = summary.get("settings") or {}
    dataset = settings.get("dataset", {}).get("name")
    if dataset not in {column.dataset for column in table.columns}:
        return False
    named = name == table.name or name.startswith(f"{table.name}/")
    return named or (mlrc_constants.is_mlrc_table(table.name) and settings.get("protocol") == "mlrc")


def objections(table: PublishedTable, row: PublishedRow, cell: PublishedCell, found: StoredExperiment) -> list[str]:
    """Why an experiment's runs of the row's method cannot fill a cell; empty if they can.

    The experiment has runs of that method, on the cell's dataset.
    """
    settings = found.settings
    trunk = TrunkSpec.model_validate(settings["trunk"])
    reasons = list(found.departures)
    if cell.key not in (*settings.get("methods", ()), *(each["key"] for each in settings.get("variants", ()))):
        reasons.append("a method card of its own")
    if settings["dataset"].get("subset"):
        reasons.append("a subset of the dataset")
    if row.trunk and trunk.name != _TRUNKS[row.trunk]:
        reasons.append(f"trunk {trunk.name}, printed for {row.trunk}")
    if trunk.weights != "imagenet":
        reasons.append(f"trunk started from {trunk.weights.partition(':')[0]} weights, not the published ones")
    if trunk.pooling != _POOLING.get(table.name, trunk.pooling):
        reasons.append(f"{trunk.pooling} pooling")
    reasons += _shape(row, cell, found.runs(cell.key or "")[0], ImageSettings.model_validate(settings["images"]))
    if mlrc_constants.is_mlrc_table(table.name):
        reasons += _against_mlrc(cell, settings, trunk)
    return reasons


def printed_image_size(row: PublishedRow, cell: PublishedCell) -> int:
    """Pixels of the crop's side: as the row says; else 227 for MLRC's embeddings and 224, the papers' size."""
    said = re.search(r"\b(\d+)x\1\b", f"{row.label} {row.setting}")
    if said:
        return int(said[1])
    return 224 if cell.kind == "single" else ImageSettings().crop


def _shape(row: PublishedRow, cell: PublishedCell, run: RunRecord, images: ImageSettings) -> list[str]:
    reasons = []
    models = len(run.fold_fingerprints)
    if models != (asked := 1 if cell.kind == "single" else mlrc_constants.FOLDS):
        reasons.append(f"{models} model(s) a run, printed for {asked}")
    tested = run.dimensions * (models if cell.kind == "concatenated" else 1)
    if cell.dimensions is not None and tested != cell.dimensions:
        reasons.append(f"{tested} dimensions, printed for {cell.dimensions}")
    if images.crop != (size := printed_image_size(row, cell)):
        reasons.append(f"images of {images.crop} pixels, printed for {size}")
    return reasons


def _against_mlrc(cell: PublishedCell, settings: Mapping[str, Any], trunk: TrunkSpec) -> list[str]:
    """Settings other than MLRC's. How crops are computed and at which precision is no setting of it."""
    images = ImageSettings.model_validate(settings["images"]).model_copy(update={"augmentation": "faithful"})
    training = TrainingSettings.model_validate(settings["training"]).model_copy(update={"precision": "float32"})
    search = settings.get("search", {})
    wrong = {
        "another transform of images": images != ImageSettings(),
        "other training settings": training
        != (mlrc_constants.SOP_TRAINING if cell.dataset == "sop" else mlrc_constants.TRAINING),
        "another trunk setting": trunk != TrunkSpec(name=trunk.name, weights=trunk.weights),
        "another embedder": not settings.get("embedder_bias", True),
        "another class split": settings.get("split") not in (None, "mlrc"),
        "proxies trained otherwise": settings.get("proxies") is not None,
        "a variant of a method": cell.key not in settings.get("methods", ()),
        "hyperparameters set by hand": cell.key in settings.get("settings", {}),
        f"{search.get('trials')} trials instead of {mlrc_constants.TRIALS}": not _searched_enough(search),
        "other search ranges": cell.key in search.get("ranges", {}),
    }
    return [reason for reason, is_so in wrong.items() if is_so]


def _searched_enough(search: Mapping[str, Any]) -> bool:
    """No trials take MLRC's optimum, which came of as many as were asked for there."""
    trials = int(search.get("trials", mlrc_constants.TRIALS))
    return trials == 0 or trials >= mlrc_constants.TRIALS
