"""Experiments on several datasets whose searches were repeated, with made-up scores, for the tests of boards."""

from collections.abc import Mapping
from typing import Any

from reports.board.boards import Source
from results.records.records import Scores, run_fingerprint
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import some_plan, some_run

TITLES = {"cosface": "CosFace", "triplet": "Triplet", "margin": "Margin <b>"}
LEVELS = {"cosface": 0.60, "triplet": 0.58, "margin": 0.50}
SEARCHES = 3
STEP = 0.002
"""Distance between two searches of a method."""


def experiment(
    dataset: str, levels: Mapping[str, float] | None = None, settings: Mapping[str, Any] | None = None, **changes: Any
) -> MeasuredExperiment:
    """An experiment on a dataset; `changes` are those of its runs. Methods without iterations are called untrained."""
    levels = LEVELS if levels is None else levels
    search = {"trials": 20, "searches": SEARCHES}
    plan = some_plan(
        {"dataset": {"name": dataset}, "search": search, **(settings or {})},
        methods={key: TITLES.get(key, key) for key in levels},
        reproductions=1,
        data={"fingerprint": dataset, "samples": 100, "classes": 10},
    )
    runs = [
        some_run(
            method,
            0,
            level,
            **{
                "search": search,
                "dataset": dataset,
                "data_fingerprint": dataset,
                "fold_fingerprints": (folds := tuple(f"{dataset}-{method}-{search}-{fold}" for fold in range(4))),
                "fingerprint": run_fingerprint(folds),
                "hyperparameters": {"loss.margin": 0.1},
                "concatenated": Scores(precision_at_1=0.9, r_precision=0.8, map_at_r=level + STEP * (search - 1)),
                "iterations": 0 if method == "untrained" else 100,
                **changes,
            },
        )
        for method, level in levels.items()
        for search in range(SEARCHES)
    ]
    return MeasuredExperiment(plan, tuple(runs))


def source(dataset: str, *arguments: Any, name: str = "", place: str = "store.sqlite", **changes: Any) -> Source:
    return Source(name or f"on_{dataset}", place, experiment(dataset, *arguments, **changes))
