"""Every look-up by name: from names of experiments, methods, runs and folds to what the store keeps of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from reproduce.config.yaml_files import short_name
from reproduce.errors import InputError
from results.experiment_names import current_name
from results.experiment_summary import ExperimentSummary
from results.records import FoldResult, RunRecord
from results.store import Store
from results.training_spec import FoldSpec


@dataclass(frozen=True)
class NamedExperiment:
    """The latest experiment of a name: NAME or NAME/PANEL, and its fingerprint in the store."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class StoredRun:
    """A tested run: the experiment it is of, its record, and its trainings by fold."""

    experiment: str
    summary: ExperimentSummary
    record: RunRecord
    trainings: dict[int, tuple[FoldSpec, FoldResult]]

    @property
    def called(self) -> str:
        """How messages name it."""
        return f"{self.experiment}, {self.record.method}, run {self.record.run}"


def stored_names(store: Store) -> list[str]:
    """The names of the experiments in the store, sorted."""
    return sorted(store.latest_experiments())


def latest_experiment(store: Store) -> NamedExperiment:
    """The experiment that was started last; raises InputError for an empty store."""
    latest = store.latest_experiments()
    if not latest:
        raise InputError(f"{store.url} holds no experiment yet; make one with `reproduce run`")
    return NamedExperiment(*next(iter(latest.items())))


def find_experiments(store: Store, names: Sequence[str], hint: str = "") -> list[NamedExperiment]:
    """The latest experiments of some names.

    Args:
        store: where to look.
        names: each a NAME, a NAME/PANEL or the path of an experiment file; old names are understood too. The name of a
            file with panels stands for all its panels that the store holds.
        hint: what to add to the message if there is none.

    Returns:
        The experiments in the order of `names`, panels sorted, none twice.

    Raises:
        InputError: the store holds no experiment of one of the names; the message lists those it holds.
    """
    latest = store.latest_experiments()
    chosen: dict[str, str] = {}
    for name in names:
        wanted = current_name(short_name(name))
        of_name = {
            known: latest[known] for known in sorted(latest) if known == wanted or known.startswith(f"{wanted}/")
        }
        if not of_name:
            held = ", ".join(sorted(latest)) or "none"
            raise InputError(f"no experiment {name!r} in {store.url}; it holds: {held}{hint}")
        chosen |= of_name
    return [NamedExperiment(name, fingerprint) for name, fingerprint in chosen.items()]


def find_experiment(store: Store, name: str) -> NamedExperiment:
    """The one experiment of that name; raises InputError if there is none or if the name has several panels."""
    experiments = find_experiments(store, [name])
    if experiments[0].name != current_name(short_name(name)):
        panels = ", ".join(experiment.name for experiment in experiments)
        raise InputError(f"{name} has several panels; name one: {panels}")
    return experiments[0]


def find_run(store: Store, name: str, method: str, run: int) -> StoredRun:
    """A run of the latest experiment of that name; raises InputError, which lists what there is instead."""
    experiment = find_experiment(store, name)
    records = store.experiment_runs(experiment.fingerprint)
    if not records:
        raise InputError(f"{experiment.name}: no tested run in {store.url} yet; go on with `reproduce run {name}`")
    of_method = {record.run: record for record in records if record.method == method}
    if not of_method:
        methods = ", ".join(dict.fromkeys(record.method for record in records))
        raise InputError(f"{experiment.name}: no tested run of method {method!r}; there are runs of {methods}")
    if run not in of_method:
        known = ", ".join(map(str, sorted(of_method)))
        raise InputError(f"{experiment.name}, {method}: no run {run}; tested are {known}, counted from 0")
    record = of_method[run]
    stored = store.fold_results(record.fold_fingerprints)
    trainings = {spec.fold: (spec, result) for spec, result in stored.values()}
    return StoredRun(experiment.name, store.experiment(experiment.fingerprint), record, trainings)


def training_of(run: StoredRun, fold: int) -> tuple[FoldSpec, FoldResult]:
    """One fold's training; raises InputError."""
    if fold not in run.trainings:
        known = ", ".join(map(str, sorted(run.trainings)))
        raise InputError(f"{run.called}: no fold {fold}; trained are {known}, counted from 0")
    return run.trainings[fold]
