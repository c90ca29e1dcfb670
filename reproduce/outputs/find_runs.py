"""Finds experiments, runs and trainings in a store by the names of experiment, method, run and fold.

Experiments of one name can differ in methods, trials or anything else. A name means the one that was started last of
those that are finished, or of all if none is; its identity, or the beginning of it, means one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduce.config.experiment_file import load_experiments
from reproduce.config.strict_yaml import short_name
from reproduce.errors import InputError, unknown
from results.records.records import FoldResult, RunRecord
from results.store.store import Start, Store, meant_by_name
from results.wording import counted

_FEWEST_DIGITS = 4


@dataclass(frozen=True)
class StoredRun:
    """A run with test scores: its experiment, its record and its trainings by fold."""

    start: Start
    record: RunRecord
    trainings: dict[int, FoldResult]

    @property
    def called(self) -> str:
        """The run's name in messages."""
        return f"{self.start.name}, {self.record.method}, {self.record.name}"

    def training(self, fold: int) -> FoldResult:
        """Return the training of a fold; raise InputError if the run has no such fold."""
        if fold not in self.trainings:
            numbers = ", ".join(map(str, sorted(self.trainings)))
            raise InputError(f"{self.called}: there is no fold {fold}; the folds are {numbers}, counted from 0")
        return self.trainings[fold]


def find_experiments(store: Store, names: Sequence[str], hint: str = "") -> list[Start]:
    """Find experiments: each by a NAME, a NAME/PANEL, the path of an experiment file, or an identity of `status`.

    A name means the latest finished experiment of this name, or the latest if none is finished. That of a file with
    panels gives all its panels in the store, sorted. The beginning of an identity is enough if it has four digits and
    only one experiment's begins so.
    """
    starts = store.starts()
    latest = meant_by_name(starts)
    found: dict[str, Start] = {}
    for name in names:
        current = short_name(name)
        matches = [latest[one] for one in sorted(latest) if one == current or one.startswith(f"{current}/")]
        if not matches and len(name) >= _FEWEST_DIGITS:
            of_identity = [start for start in starts if start.fingerprint.startswith(name)]
            matches = of_identity if len(of_identity) == 1 else []
        if not matches:
            raise unknown(f"no experiment {name!r} in {store.url}", name, latest, "status", hint)
        found |= {match.fingerprint: match for match in matches}
    return list(found.values())


def later_starts(store: Store, shown: Sequence[Start]) -> list[str]:
    """Say which later starts of the same names are not shown, because they are not finished."""
    return [
        f"{start.name}: this is the finished experiment {one.identity}; {start.identity} was started later and has "
        f"{start.runs} of {counted(start.plan.runs, 'run')}; to see it, give {start.identity} in place of {start.name}"
        for one in shown
        for start in store.starts()
        if one.finished and not start.finished and start.name == one.name and start.last_started > one.last_started
    ]


def find_experiment(store: Store, name: str) -> Start:
    """Find an experiment by name or identity, or the panel that has runs if only one has.

    InputError is raised if there is none, or if several panels have runs.
    """
    experiments = find_experiments(store, [name])
    with_runs = [one for one in experiments if one.runs] or experiments
    if len(with_runs) > 1:
        panels = ", ".join(experiment.name for experiment in with_runs)
        raise InputError(f"{name} has several panels; use one of {panels}")
    return with_runs[0]


def find_runs(
    store: Store, name: str, method: str, search: int | None = None, run: int | None = None
) -> list[StoredRun]:
    """Find the tested runs of a search of a method, or one of them; both are counted from 1, runs in every search.

    Without a number of a search it is the best validated one. `name` is the name or the identity of the experiment.
    InputError is raised if there is no such run.
    """
    experiment = find_experiment(store, name)
    records = store.experiment_runs(experiment.fingerprint)
    if not records:
        raise InputError(
            f"{experiment.name}: there is no tested run in {store.url} yet; continue with `reproduce run {name}`"
        )
    search = best_search(store, experiment, method) + 1 if search is None else search
    of_search = [record for record in records if (record.method, record.search) == (method, search - 1)]
    found = [record for record in of_search if run in (None, record.run + 1)]
    if not found:
        runs = ", ".join(dict.fromkeys(f"{one.method} (search {one.search + 1}, run {one.run + 1})" for one in records))
        raise InputError(
            f"{experiment.name}: there is no tested run {run or 1} of search {search} of {method!r}; there are {runs}"
        )
    return [
        StoredRun(experiment, one, {r.spec.fold: r for r in store.fold_results(one.fold_fingerprints).values()})
        for one in found
    ]


def best_search(store: Store, experiment: Start, method: str) -> int:
    """Return the tested search of a method that found the best validation score; of equal ones the first.

    Tests have no say: a setting that is chosen by its test score would be chosen by luck.
    """
    trials, tested = experiment.plan.trials_of(method), store.experiment_runs(experiment.fingerprint)
    with_runs = {record.search for record in tested if record.method == method}
    scores = {
        search: max((t.score or 0.0 for t in study.finished(trials) if t.state == "complete"), default=0.0)
        for (key, search), study in store.searches.of_experiment(experiment.fingerprint).items()
        if key == method and search in with_runs
    }
    return max(scores, key=lambda search: (scores[search], -search), default=0)


def own_folders(*names: str) -> dict[str, Path]:
    """Return the folder of each dataset that an experiment's own file gives; empty if none of the names has a file."""
    for file in (form for name in names for form in (name, f"{name.partition('/')[0]}.yaml")):
        try:
            settings = [experiment.dataset for experiment in load_experiments(file, {}).values()]
        except InputError:
            continue
        return {dataset.name: dataset.root for dataset in settings if dataset.root is not None}
    return {}
