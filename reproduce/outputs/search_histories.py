"""The searches of an experiment's methods, read back from Optuna's tables as plain values; no torch is needed.

Optuna keeps a study under a name that only the protocol can make. Which study is an experiment's is read from what the
study says of itself (its `identity`), and checked against the setting that the method's runs were trained with.
"""

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.study import StudySummary
from optuna.trial import FrozenTrial, TrialState

from protocols.search.optuna_search import SEARCH_VERSION
from protocols.search.space import SearchParameter, settled
from reports.figures.trials import Parameter, SearchHistory, TrialPoint
from results.experiment_results import MeasuredExperiment
from results.experiment_spec import Experiment

_SAME = ("images", "trunk", "embedding_size", "training", "seed")
_SCALES = {"linear": "linear", "log": "log", "int": "int", "int_log": "log"}


def searches(storage: optuna.storages.BaseStorage, measured: MeasuredExperiment) -> dict[str, SearchHistory]:
    """By method; methods that were not searched, and searches that no study is found for, are left out."""
    experiment, trials = measured.summary.experiment, measured.summary.trials
    if experiment is None or not trials:
        return {}
    data = {record.data_fingerprint for record in measured.records}
    by_method: dict[str, SearchHistory] = {}
    # The latest study of equal ones comes last and stays.
    for study in optuna.get_all_study_summaries(storage, include_best_trial=False):
        identity = study.user_attrs.get("identity")
        if isinstance(identity, dict) and _belongs(identity, experiment, data):
            key = identity["method"]["name"]
            search = _search(storage, study, identity, trials)
            if key in measured.summary.methods and search.trials and _led_to(search, measured, key):
                by_method[key] = search
    return by_method


def _belongs(identity: Mapping[str, Any], experiment: Experiment, data: set[str]) -> bool:
    """Whether a study is of this experiment. data: fingerprints of the data that its runs were made with."""
    settings = experiment.without_folder()
    return (
        identity.get("version") == SEARCH_VERSION
        and identity["dataset"] == experiment.dataset.name
        and (not data or identity["data_fingerprint"] in data)
        and all(identity[name] == settings[name] for name in _SAME)
        and identity.get("embedder_bias", True) == experiment.embedder_bias
        and identity["sampler"] == experiment.search.sampler.model_dump(mode="json")
    )


def _search(
    storage: optuna.storages.BaseStorage, study: StudySummary, identity: Mapping[str, Any], budget: int
) -> SearchHistory:
    space, count = settled([SearchParameter.model_validate(one) for one in identity["space"]], budget)
    done = storage.get_all_trials(study._study_id, deepcopy=False, states=(TrialState.COMPLETE,))[:count]
    numeric = [one for one in space if one.scale in _SCALES]
    parameters = tuple(Parameter(one.target, _SCALES[one.scale]) for one in numeric)  # type: ignore[arg-type]
    startup = 0 if space[0].exhaustive else int(identity["sampler"]["startup_trials"])
    return SearchHistory(
        tuple(_trial(place, trial, parameters) for place, trial in enumerate(done)), parameters, startup
    )


def _trial(place: int, trial: FrozenTrial, parameters: tuple[Parameter, ...]) -> TrialPoint:
    setting = {one.name: float(trial.params[one.name]) for one in parameters if one.name in trial.params}
    return TrialPoint(place, setting, trial.value)


def _led_to(search: SearchHistory, measured: MeasuredExperiment, method: str) -> bool:
    """Whether the method's runs, if there are any, were trained with the search's best setting."""
    run = next((record for record in measured.records if record.method == method), None)
    if run is None:
        return True
    best = max(search.trials, key=lambda trial: (trial.value if trial.value is not None else -1.0, -trial.number))
    return all(run.hyperparameters.get(name) == value for name, value in best.parameters.items())
