"""Merges the rows of one store into another. Rows with the same fingerprint must have the same outcome."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from sqlite3 import Connection, Row

from results.records.records import RunRecord
from results.records.trials import Trial
from results.store.database import Database, insert

_CIRCUMSTANCES = {"wall_time", "provenance"}
"""Parts of a record that may differ between two machines that had the same outcome."""


_FAILURES = "SELECT training, reason, at FROM failures ORDER BY id"
_RUNS = "SELECT * FROM experiment_runs"


@dataclass(frozen=True)
class Conflict:
    """Two stores say different things under one name.

    Attributes:
        name: The training, the test evaluation, the study or the row of an experiment.
        reason: What differs.
    """

    name: str
    reason: str


@dataclass
class RowMerge:
    """What a merge will do; nothing is written before `apply_merge`.

    Attributes:
        conflicts: What the two stores disagree about; the first store's version stays.
        rows: The rows to insert, by table.
        conflicting: Fingerprints of trainings, test evaluations and studies that differ between the stores.
        equal: Fingerprints of trainings and test evaluations that both stores have, with the same outcome.
    """

    conflicts: list[Conflict] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    conflicting: set[str] = field(default_factory=set)
    equal: set[str] = field(default_factory=set)

    def files_of(self) -> set[str]:
        """Return the trainings and test evaluations whose files may be taken from the other store."""
        return self.equal.union(row["fingerprint"] for table in ("trainings", "runs") for row in self.rows[table])

    def disagree(self, fingerprint: str, name: str, reason: str) -> None:
        """Note that the stores disagree about a row."""
        self.conflicting.add(fingerprint)
        self.conflicts.append(Conflict(name, reason))


def plan_merge(into: Database, other: Database) -> RowMerge:
    """Compare two stores that `check_records` finds whole, and decide what the first one gets. Nothing is written.

    So that no table mixes the two, a test evaluation is only taken with its trainings and its search: if one of them
    has another result in the first store, the test evaluation is left out.

    Args:
        into: Database of the store that gets the rows.
        other: Database of the store that they come from.
    """
    merge = RowMerge()
    with into.reading() as first, other.reading() as second:
        _plan_results(merge, "trainings", first, second)
        _plan_trials(merge, first, second)
        for table in ("studies", "runs", "test_curves"):
            _plan_results(merge, table, first, second)
        _plan_experiments(merge, first, second)
        _plan_lists(merge, first, second)
        known = set(first.execute(_FAILURES).fetchall())
        merge.rows["failures"] = [row for row in second.execute(_FAILURES) if row not in known]
    return merge


def apply_merge(into: Database, merge: RowMerge) -> None:
    """Write what `plan_merge` decided, in one transaction: all of it or nothing. It can be repeated.

    Args:
        into: Database of the store that gets the rows.
        merge: The decision.
    """
    with into.writing() as connection:
        for table, rows in merge.rows.items():
            for row in rows:
                values = {name: value for name, value in dict(row).items() if name != "sha256"}
                insert(connection, table, values, replace=table in ("trials", "experiments"))


def _plan_results(merge: RowMerge, table: str, first: Connection, second: Connection) -> None:
    """Take the rows with new fingerprints, unless they were made from rows that the first store has otherwise."""
    mine = {row["fingerprint"]: row for row in first.execute(f"SELECT * FROM {table}")}
    for row in second.execute(f"SELECT * FROM {table} ORDER BY fingerprint"):
        fingerprint = row["fingerprint"]
        if fingerprint not in mine:
            if not _needs(table, row) & merge.conflicting:
                merge.rows[table].append(row)
        elif table in ("trainings", "runs"):
            if differing := _differing(mine[fingerprint], row):
                merge.disagree(fingerprint, f"row {fingerprint} of {table}", f"different {', '.join(differing)}")
            else:
                merge.equal.add(fingerprint)


def _needs(table: str, row: Row) -> set[str]:
    """Return the rows that a row was made from, by fingerprint, and itself."""
    if table != "runs":
        return {row["fingerprint"]}
    record = RunRecord.model_validate_json(row["content"])
    return {*record.fold_fingerprints, *record.chosen_by, *([record.study] if record.study else [])}


def _differing(stored: Row, row: Row) -> list[str]:
    """Return the names of the fields in which two records differ, without the circumstances."""
    if stored["sha256"] == row["sha256"]:
        return []
    first, second = json.loads(stored["content"]), json.loads(row["content"])
    return sorted(name for name in {*first, *second} - _CIRCUMSTANCES if first.get(name) != second.get(name))


def _plan_trials(merge: RowMerge, first: Connection, second: Connection) -> None:
    """Take the further finished trials of a search if the stores agree on those that both have."""
    mine = _finished_trials(first)
    for study, trials in _finished_trials(second).items():
        known = mine.get(study, {})
        trained = {fingerprint for trial, _ in trials.values() for fingerprint in trial.trainings}
        differs = any(known[number][0] != trials[number][0] for number in known.keys() & trials.keys())
        if differs or trained & merge.conflicting:
            merge.disagree(study, f"study {study}", "its trials have other settings or scores")
        else:
            merge.rows["trials"] += [row for number, (_, row) in trials.items() if number not in known]


def _finished_trials(connection: Connection) -> dict[str, dict[int, tuple[Trial, Row]]]:
    """Return record and row of each finished trial, by study and number."""
    trials: dict[str, dict[int, tuple[Trial, Row]]] = defaultdict(dict)
    for row in connection.execute("SELECT * FROM trials ORDER BY study, number"):
        trial = Trial.model_validate_json(row["content"])
        if trial.state != "running":
            trials[row["study"]][trial.number] = trial, row
    return trials


def _plan_experiments(merge: RowMerge, first: Connection, second: Connection) -> None:
    """Take the experiments that are new or were started later."""
    mine = dict(first.execute("SELECT fingerprint, last_started FROM experiments").fetchall())
    for row in second.execute("SELECT * FROM experiments"):
        if row["last_started"] > mine.get(row["fingerprint"], ""):
            merge.rows["experiments"].append(row)


def _plan_lists(merge: RowMerge, first: Connection, second: Connection) -> None:
    """Take the searches and runs that experiments list, unless the first store lists others in their place."""
    other_searches = set()
    mine = {_search(row): row["study"] for row in first.execute("SELECT * FROM experiment_studies")}
    for row in second.execute("SELECT * FROM experiment_studies"):
        if row["study"] in merge.conflicting:
            other_searches.add(_search(row))
        elif mine.get(_search(row), row["study"]) != row["study"]:
            other_searches.add(_search(row))
            merge.conflicts.append(Conflict(_place(row), "its search is another one"))
        else:
            merge.rows["experiment_studies"].append(row)
    runs = {(*_search(row), row["run"]): row["run_fingerprint"] for row in first.execute(_RUNS)}
    taken = merge.files_of()
    for row in second.execute(_RUNS):
        fingerprint = row["run_fingerprint"]
        if runs.get((*_search(row), row["run"]), fingerprint) != fingerprint:
            merge.conflicts.append(Conflict(_place(row), f"run {row['run']} was made from different trainings"))
        elif _search(row) not in other_searches and fingerprint in taken:
            merge.rows["experiment_runs"].append(row)


def _search(row: Row) -> tuple[str, str, int]:
    return row["experiment"], row["method"], row["search"]


def _place(row: Row) -> str:
    return f"{row['method']} in experiment {row['experiment'][:12]}, search {row['search']}"
