"""Reads the searches of an experiment from Optuna's tables as plain values, without torch.

Only the protocol can compute the name of a study. For this reason the studies of an experiment are found by their
attribute `identity`, and by the setting that the method's runs were trained with.
"""

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.study import StudySummary
from optuna.trial import FrozenTrial, TrialState

from protocols.search.optuna_search import IDENTITY, RACED, SEARCH_VERSION
from protocols.search.space import SearchParameter, settled
from reports.figures.trials import Parameter, SearchHistory, TrialPoint
from results.spec.experiment_spec import Experiment
from results.spec.racing import RACING_VERSION
from results.store.experiment_results import MeasuredExperiment

_COMPARED_SETTINGS = ("images", "trunk", "embedding_size", "training", "seed")
_SCALES = {"linear": "linear", "log": "log", "int": "int", "int_log": "log"}


def searches(storage: optuna.storages.BaseStorage, measured: MeasuredExperiment) -> dict[str, SearchHistory]:
    """Return the searches of an experiment; of a search that was repeated, the first.

    Args:
        storage: Optuna's storage of the studies.
        measured: The experiment with its runs.

    Returns:
        The searches by the methods' keys. Methods without a search or without a matching study are left out.
    """
    experiment, trials = measured.summary.experiment, measured.summary.trials
    if not trials:
        return {}
    data = {record.data_fingerprint for record in measured.records}
    by_method: dict[str, SearchHistory] = {}
    # If several studies match, the last one is the latest and replaces the others.
    for study in optuna.get_all_study_summaries(storage, include_best_trial=False):
        identity = study.user_attrs.get(IDENTITY)
        key = identity["method"]["name"] if isinstance(identity, dict) else ""
        if isinstance(identity, dict) and belongs_to(identity, experiment.for_row(key), data):
            search = _search(storage, study, identity, trials)
            if key in measured.summary.methods and search.trials and _led_to(search, measured, key):
                by_method[key] = search
    return by_method


def belongs_to(identity: Mapping[str, Any], experiment: Experiment, data: set[str]) -> bool:
    """Return whether a study belongs to an experiment.

    Args:
        identity: The attribute `identity` of the study.
        experiment: The experiment, with the conditions of the row that the study's method is in.
        data: Data fingerprints of the experiment's runs; empty if there are no runs yet.
    """
    settings = experiment.without_folder()
    return (
        identity.get("version") == SEARCH_VERSION
        and identity["dataset"] == experiment.dataset.name
        and (not data or identity["data_fingerprint"] in data)
        and all(identity[name] == settings[name] for name in _COMPARED_SETTINGS)
        and identity.get("embedder_bias", True) == experiment.embedder_bias
        and identity.get("racing") == (RACING_VERSION if experiment.search.racing else None)
        and identity["sampler"] == experiment.search.sampler.model_dump(mode="json")
    )


def _search(
    storage: optuna.storages.BaseStorage, study: StudySummary, identity: Mapping[str, Any], budget: int
) -> SearchHistory:
    space, count = settled([SearchParameter.model_validate(parameter) for parameter in identity["space"]], budget)
    trials = storage.get_all_trials(study._study_id, deepcopy=False, states=(TrialState.COMPLETE,))[:count]
    numeric = [parameter for parameter in space if parameter.scale in _SCALES]
    parameters = tuple(Parameter(p.target, _SCALES[p.scale]) for p in numeric)  # type: ignore[arg-type]
    startup = 0 if space[0].exhaustive else int(identity["sampler"]["startup_trials"])
    return SearchHistory(
        tuple(_trial(number, trial, parameters) for number, trial in enumerate(trials)), parameters, startup
    )


def _trial(number: int, trial: FrozenTrial, parameters: tuple[Parameter, ...]) -> TrialPoint:
    names = [parameter.name for parameter in parameters if parameter.name in trial.params]
    values = {name: float(trial.params[name]) for name in names}
    return TrialPoint(number, values, trial.value, raced=RACED in trial.user_attrs)


def _led_to(search: SearchHistory, measured: MeasuredExperiment, method: str) -> bool:
    """Return whether the method's runs were trained with the search's best setting; True if there are no runs."""
    run = next((record for record in measured.records if record.method == method), None)
    if run is None:
        return True
    best = max(search.trials, key=lambda trial: (trial.value if trial.value is not None else -1.0, -trial.number))
    return all(run.hyperparameters.get(name) == value for name, value in best.parameters.items())
