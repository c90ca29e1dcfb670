"""Finds experiments, runs and trainings in a store by the names of experiment, method, run and fold.

Experiments of one name can differ in methods, trials or anything else. A name means the one that was started last; its
identity, or the beginning of it, means one of them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reproduce.config.strict_yaml import short_name
from reproduce.errors import InputError
from results.records.experiment_summary import ExperimentSummary
from results.records.records import FoldResult, RunRecord
from results.spec.training_spec import FoldSpec
from results.store.store import Store

_FEWEST_DIGITS = 4


@dataclass(frozen=True)
class NamedExperiment:
    """An experiment in a store: its name, NAME or NAME/PANEL, and its fingerprint."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class StoredRun:
    """A run with test scores: its experiment, its record and its trainings by fold."""

    experiment: str
    summary: ExperimentSummary
    record: RunRecord
    trainings: dict[int, tuple[FoldSpec, FoldResult]]

    @property
    def called(self) -> str:
        """The run's name in messages."""
        return f"{self.experiment}, {self.record.method}, {self.record.name}"


def stored_names(store: Store) -> list[str]:
    """Return the names of the experiments in the store, sorted."""
    return sorted(store.latest_experiments())


def latest_experiment(store: Store) -> NamedExperiment:
    """Return the experiment that was started last; raise InputError if the store is empty."""
    latest = store.latest_experiments()
    if not latest:
        raise InputError(f"{store.url} holds no experiment yet; make one with `reproduce run`")
    return NamedExperiment(*next(iter(latest.items())))


def find_experiments(store: Store, names: Sequence[str], hint: str = "") -> list[NamedExperiment]:
    """Find experiments: each by a NAME, a NAME/PANEL, the path of an experiment file, or an identity of `status`.

    A name means the latest experiment of this name. That of a file with panels gives all its panels in the store,
    sorted. The beginning of an identity is enough if it has four digits and only one experiment's begins so.
    """
    latest = store.latest_experiments()
    found: list[NamedExperiment] = []
    for name in names:
        current = short_name(name)
        matches = [
            NamedExperiment(stored, latest[stored])
            for stored in sorted(latest)
            if stored == current or stored.startswith(f"{current}/")
        ]
        matches = matches or _of_identity(store, name)
        if not matches:
            stored_names = ", ".join(sorted(latest)) or "none"
            raise InputError(f"no experiment {name!r} in {store.url}; it holds: {stored_names}{hint}")
        found += [match for match in matches if match not in found]
    return found


def _of_identity(store: Store, beginning: str) -> list[NamedExperiment]:
    """Return the experiment whose fingerprint begins so, or none; raise InputError if more digits are needed."""
    if not re.fullmatch("[0-9a-f]{1,32}", beginning):
        return []
    started = [one for one in store.contents().experiments if one.fingerprint.startswith(beginning)]
    if len(started) > 1 or (started and len(beginning) < _FEWEST_DIGITS):
        candidates = ", ".join(one.described for one in started)
        raise InputError(f"{beginning}: too short for an identity; give more digits of one of {candidates}")
    return [NamedExperiment(one.name, one.fingerprint) for one in started]


def others_of_name(store: Store, experiment: NamedExperiment, asked: Sequence[str]) -> str | None:
    """Return a line on the earlier experiments of a name, for somebody who named no identity and so got the latest."""
    of_name = [one for one in store.contents().experiments if one.name == experiment.name]
    by_identity = any(experiment.fingerprint.startswith(one) for one in asked)
    if len(of_name) < 2 or by_identity:
        return None
    latest, *earlier = of_name
    others = ", ".join(one.described for one in earlier)
    return f"{experiment.name}: this is the latest experiment of the name, {latest.described}; by identity: {others}"


def find_experiment(store: Store, name: str) -> NamedExperiment:
    """Find an experiment by name or identity; raise InputError if there is none, or if it has several panels."""
    experiments = find_experiments(store, [name])
    if experiments[0].name.startswith(f"{short_name(name)}/"):
        panels = ", ".join(experiment.name for experiment in experiments)
        raise InputError(f"{name} has several panels; use one of {panels}")
    return experiments[0]


def find_run(store: Store, name: str, method: str, run: int, search: int = 0) -> StoredRun:
    """Find a run of an experiment, by its name or identity. Runs are counted from 0 in every search."""
    experiment = find_experiment(store, name)
    records = store.experiment_runs(experiment.fingerprint)
    if not records:
        raise InputError(
            f"{experiment.name}: there is no tested run in {store.url} yet; continue with `reproduce run {name}`"
        )
    of_method = {record.run: record for record in records if (record.method, record.search) == (method, search)}
    if run not in of_method:
        runs = ", ".join(dict.fromkeys(f"{one.method} (search {one.search}, run {one.run})" for one in records))
        raise InputError(
            f"{experiment.name}: there is no tested run {run} of search {search} of {method!r}; there are {runs}"
        )
    record = of_method[run]
    stored = store.fold_results(record.fold_fingerprints)
    trainings = {spec.fold: (spec, result) for spec, result in stored.values()}
    return StoredRun(experiment.name, store.experiment(experiment.fingerprint), record, trainings)


def training_of(run: StoredRun, fold: int) -> tuple[FoldSpec, FoldResult]:
    """Return the training of a fold; raise InputError if the run has no such fold."""
    if fold not in run.trainings:
        numbers = ", ".join(map(str, sorted(run.trainings)))
        raise InputError(f"{run.called}: there is no fold {fold}; the folds are {numbers}, counted from 0")
    return run.trainings[fold]
