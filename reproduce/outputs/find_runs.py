"""Finds experiments, runs and trainings in a store by the names of experiment, method, run and fold."""

from collections.abc import Sequence
from dataclasses import dataclass

from reproduce.config.strict_yaml import short_name
from reproduce.errors import InputError
from results.names import why_unknown
from results.records.experiment_summary import ExperimentSummary
from results.records.records import FoldResult, RunRecord
from results.spec.training_spec import FoldSpec
from results.store.store import Store


@dataclass(frozen=True)
class NamedExperiment:
    """The latest experiment of a name, NAME or NAME/PANEL, with its fingerprint in the store."""

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
    """Find the latest experiments of some names: each a NAME, a NAME/PANEL or the path of an experiment file.

    The name of a file with panels gives all its panels in the store, sorted.
    """
    latest = store.latest_experiments()
    fingerprints: dict[str, str] = {}
    for name in names:
        current = short_name(name)
        matches = {
            stored: latest[stored] for stored in sorted(latest) if stored == current or stored.startswith(f"{current}/")
        }
        if not matches:
            stored_names = ", ".join(sorted(latest)) or "none"
            alike = why_unknown(current, latest)
            raise InputError(f"no experiment {name!r} in {store.url}; it holds: {stored_names}{hint}{alike}")
        fingerprints |= matches
    return [NamedExperiment(name, fingerprint) for name, fingerprint in fingerprints.items()]


def find_experiment(store: Store, name: str) -> NamedExperiment:
    """Find the experiment of a name; raise InputError if there is none, or if the name has several panels."""
    experiments = find_experiments(store, [name])
    if experiments[0].name != short_name(name):
        panels = ", ".join(experiment.name for experiment in experiments)
        raise InputError(f"{name} has several panels; use one of {panels}")
    return experiments[0]


def find_run(store: Store, name: str, method: str, run: int, search: int = 0) -> StoredRun:
    """Find a run of the latest experiment of a name. Runs are counted from 0 in every search."""
    experiment = find_experiment(store, name)
    records = store.experiment_runs(experiment.fingerprint)
    if not records:
        raise InputError(
            f"{experiment.name}: there is no tested run in {store.url} yet; continue with `reproduce run {name}`"
        )
    of_method = {record.run: record for record in records if (record.method, record.search) == (method, search)}
    if not of_method and any(record.method == method for record in records):
        count = len({record.search for record in records if record.method == method})
        raise InputError(f"{experiment.name}, {method}: there is no search {search}; there are {count}, counted from 0")
    if not of_method:
        methods = ", ".join(dict.fromkeys(record.method for record in records))
        raise InputError(f"{experiment.name}: there is no tested run of method {method!r}; there are runs of {methods}")
    if run not in of_method:
        numbers = ", ".join(map(str, sorted(of_method)))
        raise InputError(
            f"{experiment.name}, {method}: there is no tested run {run}; the tested runs are {numbers}, counted from 0"
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
