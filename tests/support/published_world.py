"""Experiments with made-up runs, set up as published tables want them, for the tests of published tables."""

from collections import Counter
from typing import Any

from reports.published.eligibility import StoredExperiment
from results.findings.experiment import answer_of
from results.records.records import RunRecord
from results.spec.conditions import ImageSettings, TrainingSettings
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import scores, some_plan, some_run

NOT_FILLED = {"not run", "quoted", "source unclear", "method not in the suite", "cannot be determined"}
"""Verdicts of cells without a number of ours."""

MLRC = {
    "title": "MLRC",
    "protocol": "mlrc",
    "dataset": {"name": "cub200", "subset": False, "skip_broken_images": False},
    "methods": ["untrained", "contrastive", "triplet", "cosface"],
    "variants": [],
    "trunk": {"name": "bn_inception", "weights": "imagenet", "batch_norm": "statistics_frozen"},
    "embedding_size": 128,
    "images": ImageSettings().model_dump(mode="json"),
    "training": TrainingSettings().model_dump(mode="json"),
    "search": {"trials": 50, "bounds": "widened"},
    "reproductions": 10,
    "folds": 4,
    "seed": 0,
}

PAPER = {
    **MLRC,
    "protocol": "standard",
    "methods": ["proxy_anchor", "proxy_isa", "nir_proxy_anchor", "soft_triple"],
    "embedding_size": 512,
    "images": {"resize": None, "evaluation_resize": 256, "crop": 224, "area": [0.08, 1.0]},
    "training": {"batch_size": 128, "iterations_per_epoch": None, "max_epochs": 100},
    "search": {"trials": 0},
}


def changed(settings: dict[str, Any], /, **changes: Any) -> dict[str, Any]:
    """Settings with some changed; a dictionary changes the keys it has."""
    new = dict(settings)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(new.get(key), dict)
        new[key] = {**new[key], **value} if both else value
    return new


def experiment(
    name: str, settings: dict[str, Any], records: list[RunRecord], departures: tuple[str, ...] = ()
) -> StoredExperiment:
    """An experiment with all of its runs."""
    runs = Counter(record.method for record in records)
    planned = max(runs.values(), default=1) // settings.get("search", {}).get("searches", 1)
    plan = some_plan(
        title=name, settings=changed(settings, reproductions=planned), methods={key: key for key in runs}, runs=runs
    )
    measured = MeasuredExperiment(plan, tuple(records))
    return StoredExperiment(name, answer_of(measured), departures)


def runs_of(method: str, values: list[float], dataset: str = "cub200", **changes: Any) -> list[RunRecord]:
    """Runs of four folds with these P@1; RP is half and MAP@R a quarter of it, concatenated 0.1 better."""
    return [some_run(method, run, value, dataset=dataset, **changes) for run, value in enumerate(values)]


def single_runs(method: str, values: list[float], dataset: str = "cub200", **changes: Any) -> list[RunRecord]:
    """Runs of one model with 512 dimensions."""
    settings = {"dimensions": 512, "protocol": "standard", **changes}
    return [
        some_run(
            method,
            run,
            value,
            dataset=dataset,
            concatenated=scores(value),
            fold_fingerprints=(f"{method}-{run}",),
            fold_scores=(scores(value),),
            **settings,
        )
        for run, value in enumerate(values)
    ]
