"""The searches of an experiment as the page draws them, without torch."""

from collections.abc import Mapping
from typing import Literal

from reports.figures.trials import Parameter, SearchHistory, TrialPoint
from results.store.searches import StoredStudy

_SCALES: dict[str, Literal["linear", "log", "int"]] = {"linear": "linear", "log": "log", "int": "int", "int_log": "log"}


def histories(
    studies: Mapping[tuple[str, int], StoredStudy], methods: Mapping[str, str], budget: int
) -> dict[str, SearchHistory]:
    """Return the first search of each method that has finished trials, by the method's key."""
    first = {method: study for (method, search), study in studies.items() if search == 0 and method in methods}
    return {method: _history(study, budget) for method, study in first.items() if study.finished(budget)}


def _history(study: StoredStudy, budget: int) -> SearchHistory:
    space, sampler = study.identity["space"], study.identity["sampler"]
    numeric = [parameter for parameter in space if parameter["scale"] in _SCALES]
    parameters = tuple(Parameter(parameter["target"], _SCALES[parameter["scale"]]) for parameter in numeric)
    names = [parameter.name for parameter in parameters]
    points = [
        TrialPoint(
            trial.number,
            {name: value for name in names if isinstance(value := trial.setting[name], float | int)},
            trial.score,
            raced=trial.state == "raced",
        )
        for trial in study.finished(budget)
    ]
    startup = 0 if space[0]["exhaustive"] else int(sampler["startup_trials"])
    return SearchHistory(tuple(points), parameters, startup)
