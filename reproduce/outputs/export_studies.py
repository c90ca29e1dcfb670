"""Writes the searches of an experiment as studies of Optuna, for its plots and the dashboard."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import optuna
import sqlalchemy as sa
from optuna.trial import FrozenTrial, TrialState

from protocols.search.proposals import distribution_of
from reproduce.errors import InputError, writing_to
from results.atomic_files import atomic_file
from results.records.records import FoldResult
from results.records.trials import Trial
from results.spec.range import Range, space_of
from results.store.database import make_file
from results.store.searches import StoredStudy
from results.store.store import Start, Store

_STATES = {"complete": TrialState.COMPLETE, "raced": TrialState.PRUNED, "failed": TrialState.FAIL}


def url_of(file: Path) -> str:
    """Return the URL of a SQLite file for Optuna; all characters of the path are escaped."""
    return sa.URL.create("sqlite", database=str(file.absolute())).render_as_string()


def export_studies(
    store: Store, experiment: Start, file: Path, progress: Callable[[int, int], None] | None = None
) -> list[str]:
    """Write every search with a finished trial as a study into an SQLite file, which is complete or not there.

    Trials beyond the experiment's budget, which another experiment added, are left out. Scores of folds are
    intermediate values; a trial's times are those of its trainings. A trial that got no more folds in a race is pruned;
    the score that the sampler got is its attribute `expected`. A trial that the method refused has failed, with its
    `reason`.

    Args:
        progress: Called with the number of written studies, and that of all.

    Returns:
        The names of the studies: experiment, method and number of the search.

    Raises:
        InputError: The file exists, or the experiment has no finished trial.
    """
    if file.exists():
        raise InputError(f"--to {file}: exists already; choose another name")
    studies = store.searches.of_experiment(experiment.fingerprint)
    cut = {key: replace(one, trials=one.finished(experiment.plan.trials_of(key[0]))) for key, one in studies.items()}
    finished = {key: study for key, study in cut.items() if study.trials}
    if not finished:
        raise InputError(f"{experiment.name}: there is no finished trial in {store.url} yet")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    names = []
    with writing_to(file), atomic_file(file.absolute()) as partial, _storage(partial) as storage:
        for (method, search), stored in finished.items():
            names.append(f"{experiment.name} {method}" + (f" search {search + 1}" if search else ""))
            study = optuna.create_study(storage=storage, study_name=names[-1], direction="maximize")
            study.set_user_attr("study", stored.fingerprint)
            study.add_trials(_trials(stored, store))
            if progress is not None:
                progress(len(names), len(finished))
    return names


@contextmanager
def _storage(file: Path) -> Iterator[optuna.storages.RDBStorage]:
    """Open a new file, in which the commit of a trial does not wait for the disk: it is synchronised as a whole."""
    make_file(file)
    storage = optuna.storages.RDBStorage(url_of(file))
    sa.event.listen(storage.engine, "connect", lambda one, _: one.execute("PRAGMA synchronous = OFF"))
    storage.engine.dispose()
    try:
        yield storage
    finally:
        storage.engine.dispose()


def _trials(stored: StoredStudy, store: Store | None = None) -> list[FrozenTrial]:
    space = space_of(stored.identity["space"])
    known = store.fold_results({name for trial in stored.trials for name in trial.trainings}) if store else {}
    return [_trial(trial, space, [known[name] for name in trial.trainings if name in known]) for trial in stored.trials]


def _trial(trial: Trial, space: Mapping[str, Range], folds: list[FoldResult]) -> FrozenTrial:
    attributes = {"trainings": list(trial.trainings), **({"reason": trial.reason} if trial.reason else {})}
    raced = {"expected": trial.score} if trial.state == "raced" else {}
    made = optuna.trial.create_trial(
        params=trial.setting,
        distributions={target: distribution_of(one) for target, one in space.items()},
        state=_STATES[trial.state],
        value=None if raced else trial.score,
        intermediate_values=dict(enumerate(trial.fold_scores)),
        user_attrs={**attributes, **raced},
    )
    if folds:
        ends = [datetime.fromisoformat(fold.provenance.finished_at) for fold in folds]
        starts = [end - timedelta(seconds=fold.wall_time) for end, fold in zip(ends, folds, strict=True)]
        # Optuna's times are local, without a zone. A trial is as long as it was where clocks are put back meanwhile.
        made.datetime_complete = max(ends).astimezone().replace(tzinfo=None)
        made.datetime_start = made.datetime_complete - (max(ends) - min(starts))
    return made
