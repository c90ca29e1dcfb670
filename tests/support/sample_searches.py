"""Experiments with repeated searches and made-up scores, complete or not."""

from collections.abc import Mapping, Sequence
from typing import Any

from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import scores, some_plan, some_run


def searched(
    methods: Mapping[str, Sequence[Sequence[float]]],
    searches: int = 3,
    runs: int = 2,
    constant: Sequence[str] = (),
    trials: int = 17,
    **settings: Any,
) -> MeasuredExperiment:
    """An experiment from values of MAP@R by method, search and run; it plans `searches` of `runs` runs each."""
    plan = some_plan(
        {"search": {"trials": trials, "searches": searches}, **settings},
        methods={key: key.replace("_", " ").title() for key in methods},
        runs={key: 1 if key in constant else searches * runs for key in methods},
        reproductions=runs,
    )
    records = [
        some_run(
            key,
            run,
            4 * value,
            fingerprint=f"{key}-{search}-{run}",
            search=search,
            study=None if key in constant else f"{key}-{search}",
            concatenated=scores(4 * value),
        )
        for key, of_searches in methods.items()
        for search, of_runs in enumerate(of_searches)
        for run, value in enumerate(of_runs)
    ]
    return MeasuredExperiment(plan, tuple(records), cut_off={run.fingerprint: 0 for run in records})
