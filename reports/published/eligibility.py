"""Which of our runs may stand beside a published number: those that were made as its row says, and no others.

A cell is filled from one experiment, never pooled from several. The experiment has to be the one of the table's name,
or a panel of it, since training settings differ from table to table. It has to be run as its file says, which only
rooms that read the files know (`StoredExperiment.departures`).

These must be as published too: dataset, whole and not a subset; trunk, started from its published
ImageNet weights; dimensions of what was tested; one model, or four as separated or concatenated; image size; method.
"""

import re
from dataclasses import dataclass

from results.findings.experiment import ExperimentAnswer
from results.published.tables import PublishedCell, PublishedRow, PublishedTable
from results.records.records import RunRecord
from results.spec.conditions import ImageSettings
from results.spec.mlrc_constants import FOLDS
from results.spec.plan import Plan
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted

_TRUNKS = {
    **dict.fromkeys(
        ("BN-Inception", "Inception with batch normalization", "Inception (BN)", "Inception-BN", "BN", "IBN"),
        "bn_inception",
    ),
    **dict.fromkeys(("G", "GoogleNet"), "googlenet"),
    **dict.fromkeys(("R50", "ResNet-50"), "resnet50"),
    "ResNet-101": "resnet101",
}


@dataclass(frozen=True)
class StoredExperiment:
    """An experiment under the name that it was run by.

    Attributes:
        departures: The settings that differ from the experiment file of that name, as phrases. Runs with departures
            fill no cell of a published table.
    """

    name: str
    answer: ExperimentAnswer
    departures: tuple[str, ...] = ()

    @property
    def measured(self) -> MeasuredExperiment:
        """The experiment with its runs."""
        return self.answer.measured

    @property
    def dataset(self) -> str:
        """Our key of its dataset, empty if no settings were kept."""
        return self.measured.plan.dataset

    def runs(self, method: str) -> list[RunRecord]:
        """The method's runs."""
        return self.measured.runs.get(method, [])


def concerns(table: PublishedTable, name: str, plan: Plan) -> bool:
    """Whether an experiment of that name and plan may have runs for the table at all."""
    if plan.dataset not in {column.dataset for column in table.columns}:
        return False
    return name == table.name or name.startswith(f"{table.name}/")


def objections(table: PublishedTable, row: PublishedRow, cell: PublishedCell, stored: StoredExperiment) -> list[str]:
    """Why an experiment's runs of the row's method, or those that it plans, cannot fill a cell.

    Returns:
        Reasons as phrases; empty if the runs can fill the cell.
    """
    experiment = stored.measured.plan.experiment.for_row(row.key or "")
    trunk = experiment.conditions.trunk
    models = 1 if experiment.protocol == "standard" else experiment.folds
    dimensions = experiment.conditions.embedding_size or 0
    for run in stored.runs(row.key or "")[:1]:
        models, dimensions = len(run.fold_fingerprints), run.dimensions
    tested = dimensions * (models if cell.column.kind == "concatenated" else 1)
    asked, size = 1 if cell.column.kind == "single" else FOLDS, published_image_size(row, cell)
    crop, weights = experiment.conditions.images.crop, trunk.weights.partition(":")[0]
    keys = (*experiment.methods, *(variant.key for variant in experiment.variants))
    reasons = [*stored.departures]
    if row.key not in keys:
        reasons.append("a method card of its own")
    if stored.measured.code_of(row.key or ""):
        reasons.append("a loss or miner of its own")
    if experiment.dataset.subset:
        reasons.append("a subset of the dataset")
    if row.trunk and trunk.name != _TRUNKS[row.trunk]:
        reasons.append(f"trunk {trunk.name}, published for {row.trunk}")
    if trunk.frozen:
        reasons.append("a frozen trunk")
    if trunk.weights != "imagenet":
        reasons.append(f"trunk started from {weights} weights, not the published ones")
    if cell.origin.pooling not in ("", trunk.pooling):
        reasons.append(f"{trunk.pooling} pooling")
    if models != asked:
        reasons.append(f"{counted(models, 'model')} a run, published for {asked}")
    if cell.dimensions not in (None, tested):
        reasons.append(f"{tested} dimensions, published for {cell.dimensions}")
    if crop != size:
        reasons.append(f"images of {crop} pixels, published for {size}")
    return reasons


def objections_to_runs(
    table: PublishedTable, row: PublishedRow, cell: PublishedCell, stored: StoredExperiment
) -> list[str] | None:
    """The objections to what an experiment has run of a cell's method; None if it has no runs of it on the dataset."""
    was_run = row.key and stored.dataset == cell.column.dataset and stored.runs(row.key)
    return objections(table, row, cell, stored) if was_run else None


def published_image_size(row: PublishedRow, cell: PublishedCell) -> int:
    """Pixels of the crop's side: as the row says; else 227 for MLRC's embeddings and 224, the papers' size."""
    in_words = re.search(r"\b(\d+)x\1\b", f"{row.label} {row.setting}")
    if in_words:
        return int(in_words[1])
    return 224 if cell.column.kind == "single" else ImageSettings().crop
