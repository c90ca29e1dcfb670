"""Writes the searches of an experiment as studies of Optuna, for its plots and the dashboard."""

from pathlib import Path

import optuna
import sqlalchemy as sa
from optuna.trial import FrozenTrial, TrialState

from protocols.search.space import SearchParameter
from reproduce.errors import InputError
from reproduce.outputs.find_runs import NamedExperiment
from results.records.trials import Trial
from results.store.searches import StoredStudy
from results.store.store import Store

_STATES = {"complete": TrialState.COMPLETE, "raced": TrialState.PRUNED, "failed": TrialState.FAIL}


def url_of(file: Path) -> str:
    """Return the URL of a SQLite file for Optuna; all characters of the path are escaped."""
    return sa.URL.create("sqlite", database=str(file.absolute())).render_as_string()


def export_studies(store: Store, experiment: NamedExperiment, file: Path) -> list[str]:
    """Write every search with a finished trial as a study into an SQLite file.

    Scores of folds are intermediate values. A trial that got no more folds in a race is pruned; the score that the
    sampler was told is its attribute `expected`. A trial that the method refused has failed, with its `reason`.

    Returns:
        The names of the studies: experiment, method and number of the search.

    Raises:
        InputError: The file exists, or the experiment has no finished trial.
    """
    if file.exists():
        raise InputError(f"--to {file}: exists already; choose another name")
    studies = store.searches.of_experiment(experiment.fingerprint)
    finished = {key: study for key, study in studies.items() if any(t.state != "running" for t in study.trials)}
    if not finished:
        raise InputError(f"{experiment.name}: there is no finished trial in {store.url} yet")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.RDBStorage(url_of(file))
    names = []
    for (method, search), stored in finished.items():
        names.append(f"{experiment.name} {method}" + (f" search {search}" if search else ""))
        study = optuna.create_study(storage=storage, study_name=names[-1], direction="maximize")
        study.set_user_attr("study", stored.fingerprint)
        study.add_trials(_trials(stored))
    storage.engine.dispose()
    return names


def _trials(stored: StoredStudy) -> list[FrozenTrial]:
    space = [SearchParameter.model_validate(parameter) for parameter in stored.identity["space"]]
    return [_trial(trial, space) for trial in stored.trials if trial.state != "running"]


def _trial(trial: Trial, space: list[SearchParameter]) -> FrozenTrial:
    attributes = {"trainings": list(trial.trainings), **({"reason": trial.reason} if trial.reason else {})}
    raced = {"expected": trial.score} if trial.state == "raced" else {}
    return optuna.trial.create_trial(
        params=trial.setting,
        distributions={parameter.target: parameter.distribution() for parameter in space},
        state=_STATES[trial.state],
        value=None if raced else trial.score,
        intermediate_values=dict(enumerate(trial.fold_scores)),
        user_attrs={**attributes, **raced},
    )
