"""From an experiment's name, a method, a run and a fold to what the store and the artifact folder keep of them."""

from dataclasses import dataclass

from reproduce.config.yaml_files import short_name
from reproduce.errors import InputError
from results.records import FoldResult, RunRecord
from results.store import Store
from results.training_spec import FoldSpec


@dataclass(frozen=True)
class StoredRun:
    """A tested run: its record and its trainings, by fold. experiment: name; settings: what the store knows of it."""

    experiment: str
    settings: dict[str, object]
    record: RunRecord
    trainings: dict[int, tuple[FoldSpec, FoldResult]]

    @property
    def called(self) -> str:
        """How messages name it."""
        return f"{self.experiment}, {self.record.method}, run {self.record.run}"


def find_run(store: Store, name: str, method: str, run: int) -> StoredRun:
    """A run of the latest experiment of that name; raises InputError, which lists what there is instead."""
    short, fingerprint = _experiment(store, name)
    records = store.experiment_runs(fingerprint)
    if not records:
        raise InputError(f"{short}: no tested run in {store.url} yet; go on with `reproduce run {name}`")
    of_method = {record.run: record for record in records if record.method == method}
    if not of_method:
        methods = ", ".join(dict.fromkeys(record.method for record in records))
        raise InputError(f"{short}: no tested run of method {method!r}; there are runs of {methods}")
    if run not in of_method:
        known = ", ".join(map(str, sorted(of_method)))
        raise InputError(f"{short}, {method}: no run {run}; tested are {known}, counted from 0")
    record = of_method[run]
    found = store.fold_results(record.fold_fingerprints)
    trainings = {spec.fold: (spec, result) for spec, result in found.values()}
    return StoredRun(short, store.experiment(fingerprint)["settings"], record, trainings)


def training_of(run: StoredRun, fold: int) -> tuple[FoldSpec, FoldResult]:
    """One fold's training; raises InputError."""
    if fold not in run.trainings:
        known = ", ".join(map(str, sorted(run.trainings)))
        raise InputError(f"{run.called}: no fold {fold}; trained are {known}, counted from 0")
    return run.trainings[fold]


def _experiment(store: Store, name: str) -> tuple[str, str]:
    """Name and fingerprint of the latest experiment of that name."""
    latest, short = store.latest_experiments(), short_name(name)
    if short not in latest:
        if panels := [each for each in sorted(latest) if each.startswith(f"{short}/")]:
            raise InputError(f"{name} has several panels; name one: {', '.join(panels)}")
        raise InputError(f"no experiment {name!r} in {store.url}; it holds: {', '.join(sorted(latest)) or 'none'}")
    return short, latest[short]


def experiments_of(store: Store, name: str) -> list[str]:
    """Fingerprints of the latest run of an experiment, or of each of its panels, by name."""
    latest, wanted = store.latest_experiments(), short_name(name)
    return [latest[each] for each in sorted(latest) if each == wanted or each.startswith(f"{wanted}/")]


def names_of(store: Store) -> list[str]:
    """The names of the experiments in the store."""
    return sorted(store.latest_experiments())
