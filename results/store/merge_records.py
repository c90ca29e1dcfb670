"""Merges the records of one store into another. Records with the same fingerprint must have the same outcome."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from results.store.database import Database, insert_or_replace, insert_unless_present
from results.store.patience import patient
from results.store.schema import (
    EXPERIMENT_RUNS,
    EXPERIMENT_STUDIES,
    EXPERIMENTS,
    FAILURES,
    FOLD_RESULTS,
    RUNS,
    STUDIES,
    TEST_CURVES,
    TRIALS,
)

StoredRow = Mapping[str, Any]

_CIRCUMSTANCES = ("wall_time", "provenance")
"""Parts of a record that may differ between two machines that had the same outcome."""


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
class RecordMerge:
    """What a merge of records will do; nothing is written before `apply_merge`.

    Attributes:
        conflicts: What the two stores disagree about; the first store's version stays.
        rows: The rows to insert, by table.
        later_starts: Rows of experiments that the other store started later; they replace those of the first store.
        conflicting: Fingerprints of the trainings with different results.
        equal: Fingerprints of trainings and test evaluations that both stores have, with the same outcome.
        continued_studies: Number of searches that get trials.
    """

    conflicts: list[Conflict] = field(default_factory=list)
    rows: dict[sa.Table, list[StoredRow]] = field(default_factory=dict)
    later_starts: list[StoredRow] = field(default_factory=list)
    conflicting: set[str] = field(default_factory=set)
    equal: set[str] = field(default_factory=set)
    continued_studies: int = 0

    @property
    def files_of(self) -> set[str]:
        """Fingerprints of the trainings and test evaluations whose files may be taken from the other store."""
        added = {row["fingerprint"] for table in (FOLD_RESULTS, RUNS) for row in self.rows[table]}
        return added | self.equal

    def added(self, table: sa.Table) -> int:
        """Return the number of rows that a table gets."""
        return len(self.rows[table])


@patient
def plan_merge(into: Database, other: Database) -> RecordMerge:
    """Compare two stores and decide what the first one gets from the other. Nothing is written.

    A test evaluation is only taken with its trainings and its search: if one of them has another result in the first
    store, the test evaluation is left out. The runs of a method in an experiment are only taken if both stores ran the
    same settings.

    Args:
        into: Database of the store that gets the records.
        other: Database of the store that they come from.
    """
    merge = RecordMerge()
    _plan_trainings(merge, into, other)
    disagreeing = _plan_studies(merge, into, other)
    _plan_runs(merge, into, other, disagreeing)
    curves = _new_rows(TEST_CURVES, into, other)
    merge.rows[TEST_CURVES] = [row for row in curves if row["fingerprint"] not in merge.conflicting]
    _plan_experiments(merge, into, other, disagreeing)
    known = {_without_number(row) for row in _rows(FAILURES, into)}
    merge.rows[FAILURES] = [
        {key: value for key, value in row.items() if key != "id"}
        for row in _rows(FAILURES, other)
        if _without_number(row) not in known
    ]
    return merge


@patient
def apply_merge(into: Database, merge: RecordMerge) -> None:
    """Write what `plan_merge` decided, in one transaction: all of it or nothing. It can be repeated.

    Args:
        into: Database of the store that gets the records.
        merge: The decision.
    """
    with into.writing() as connection:
        for row in merge.later_starts:
            key = EXPERIMENTS.c.fingerprint == row["fingerprint"]
            connection.execute(sa.update(EXPERIMENTS).where(key).values(**row))
        # Rows that others refer to come first.
        for table in (FOLD_RESULTS, TEST_CURVES, RUNS, EXPERIMENTS, STUDIES, EXPERIMENT_STUDIES, EXPERIMENT_RUNS):
            for row in merge.rows[table]:
                # A run, or this merge before it lost its connection, may have written it since the comparison.
                insert_unless_present(connection, table, row)
        for row in merge.rows[TRIALS]:
            insert_or_replace(connection, TRIALS, row)
        known = {_without_number(row._asdict()) for row in connection.execute(sa.select(FAILURES))}
        for row in merge.rows[FAILURES]:
            if _without_number(row) not in known:
                connection.execute(sa.insert(FAILURES).values(row))


def _plan_trainings(merge: RecordMerge, into: Database, other: Database) -> None:
    merge.rows[FOLD_RESULTS] = _new_rows(FOLD_RESULTS, into, other)
    for row, stored in _common_rows(FOLD_RESULTS, into, other):
        if differing := _differing(row["result"], stored["result"]):
            merge.conflicting.add(row["fingerprint"])
            name = f"training {row['fingerprint']} ({row['dataset']}, {row['method']}, fold {row['fold']})"
            merge.conflicts.append(Conflict(name, f"different results ({', '.join(differing)})"))
        else:
            merge.equal.add(row["fingerprint"])


def _plan_runs(merge: RecordMerge, into: Database, other: Database, disagreeing: set[str]) -> None:
    merge.rows[RUNS] = []
    for row in _new_rows(RUNS, into, other):
        record = json.loads(row["record"])
        trainings = {*record["fold_fingerprints"], *record.get("chosen_by", ())}
        if not trainings & merge.conflicting and record.get("study") not in disagreeing:
            merge.rows[RUNS].append(row)
    for row, stored in _common_rows(RUNS, into, other):
        if differing := _differing(row["record"], stored["record"]):
            name = f"test evaluation {row['fingerprint']} ({row['dataset']}, {row['method']})"
            merge.conflicts.append(Conflict(name, f"different scores ({', '.join(differing)})"))
        else:
            merge.equal.add(row["fingerprint"])


def _plan_studies(merge: RecordMerge, into: Database, other: Database) -> set[str]:
    """Take new studies, and the further trials of common ones; return the studies whose trials disagree.

    A search is only taken with its trainings.
    """
    merge.rows[STUDIES], merge.rows[TRIALS] = _new_rows(STUDIES, into, other), []
    mine, disagreeing = _finished_trials(into), set()
    for study, trials in _finished_trials(other).items():
        trained = {training for _, content in trials for training in content["trainings"]}
        known = mine.get(study, [])
        if any(a != b for (_, a), (_, b) in zip(known, trials, strict=False)) or (trained & merge.conflicting):
            disagreeing.add(study)
            merge.conflicts.append(Conflict(f"study {study}", "its trials have other settings or scores"))
        elif len(trials) > len(known):
            merge.continued_studies += 1
            merge.rows[TRIALS] += [row for row, _ in trials[len(known) :]]
    merge.rows[STUDIES] = [row for row in merge.rows[STUDIES] if row["fingerprint"] not in disagreeing]
    return disagreeing


def _finished_trials(database: Database) -> dict[str, list[tuple[StoredRow, dict[str, Any]]]]:
    """Return the row and the content of each finished trial, by study, in order."""
    trials: dict[str, list[tuple[StoredRow, dict[str, Any]]]] = defaultdict(list)
    for row in sorted(_rows(TRIALS, database), key=lambda row: row["number"]):
        if row["state"] != "running":
            trials[row["study"]].append((row, json.loads(row["trial"])))
    return trials


def _plan_experiments(merge: RecordMerge, into: Database, other: Database, disagreeing: set[str]) -> None:
    """Take experiments that are new, the later start of common ones, and the searches and runs that agree."""
    merge.rows[EXPERIMENTS] = _new_rows(EXPERIMENTS, into, other)
    for row, stored in _common_rows(EXPERIMENTS, into, other):
        if row["last_started"] > stored["last_started"]:
            merge.later_starts.append(row)
    taken = {row["fingerprint"] for row in merge.rows[RUNS]} | merge.equal
    searched = {_key(row): row["study"] for row in _rows(EXPERIMENT_STUDIES, into)}
    merge.rows[EXPERIMENT_STUDIES], others = [], set()
    for row in _rows(EXPERIMENT_STUDIES, other):
        if row["study"] in disagreeing or searched.get(_key(row), row["study"]) != row["study"]:
            others.add(_key(row))
        elif _key(row) not in searched:
            merge.rows[EXPERIMENT_STUDIES].append(row)
    first, second = _runs_of_methods(into), _runs_of_methods(other)
    merge.rows[EXPERIMENT_RUNS] = []
    for (experiment, method, search), listed in second.items():
        mine = first.get((experiment, method, search), {})
        is_another = (experiment, method, search) in others
        reason = "its search is another one" if is_another else _why_not_one_row(mine, listed)
        if reason is not None:
            name = f"{method} in experiment {experiment[:12]}" + (f", search {search}" if search else "")
            merge.conflicts.append(Conflict(name, reason))
            continue
        merge.rows[EXPERIMENT_RUNS] += [
            row for number, (fingerprint, _, row) in listed.items() if number not in mine and fingerprint in taken
        ]


ListedRun = tuple[str, str, StoredRow]
"""Fingerprint, setting and row of a run that an experiment lists."""


def _why_not_one_row(mine: dict[int, ListedRun], listed: dict[int, ListedRun]) -> str | None:
    """Return why the runs of one search in two stores are not runs of one row; None if they are."""
    if len({setting for _, setting, _ in (*mine.values(), *listed.values())}) > 1:
        return "the searches found different settings, so its runs do not belong to one row"
    numbers = [number for number in mine.keys() & listed.keys() if mine[number][0] != listed[number][0]]
    return f"run {min(numbers)} was made from different trainings" if numbers else None


def _runs_of_methods(database: Database) -> dict[tuple[str, str, int], dict[int, ListedRun]]:
    """Return the listed runs by experiment, method and search, then by number."""
    query = sa.select(RUNS.c.fingerprint, RUNS.c.record)
    with database.reading() as connection:
        settings = {
            fingerprint: json.dumps(json.loads(record)["hyperparameters"], sort_keys=True)
            for fingerprint, record in connection.execute(query)
        }
    runs: dict[tuple[str, str, int], dict[int, ListedRun]] = defaultdict(dict)
    for row in _rows(EXPERIMENT_RUNS, database):
        if row["run_fingerprint"] in settings:
            runs[_key(row)][row["run"]] = (row["run_fingerprint"], settings[row["run_fingerprint"]], row)
    return runs


def _key(row: StoredRow) -> tuple[str, str, int]:
    return row["experiment"], row["method"], row["search"]


def _differing(text: str, stored: str) -> list[str]:
    """Return the names of the fields in which two JSON records differ, without the circumstances."""
    first, second = json.loads(stored), json.loads(text)
    names = sorted(first.keys() | second.keys())
    return [name for name in names if name not in _CIRCUMSTANCES and first.get(name) != second.get(name)]


def _without_number(row: StoredRow) -> tuple[str, str, str]:
    return row["fold_fingerprint"], row["reason"], row["at"]


def _rows(table: sa.Table, database: Database) -> Iterator[StoredRow]:
    with database.reading() as connection:
        for row in connection.execute(sa.select(table)):
            yield row._asdict()


def _fingerprints(table: sa.Table, database: Database) -> set[str]:
    with database.reading() as connection:
        return set(connection.execute(sa.select(table.c.fingerprint)).scalars())


def _new_rows(table: sa.Table, into: Database, other: Database) -> list[StoredRow]:
    """Return the rows of the other store whose fingerprints the first store does not have."""
    known = _fingerprints(table, into)
    return [row for row in _rows(table, other) if row["fingerprint"] not in known]


def _common_rows(table: sa.Table, into: Database, other: Database) -> Iterator[tuple[StoredRow, StoredRow]]:
    """Yield the other store's and the first store's row of each fingerprint that both have."""
    known = _fingerprints(table, other)
    stored = {row["fingerprint"]: row for row in _rows(table, into) if row["fingerprint"] in known}
    for row in _rows(table, other):
        if row["fingerprint"] in stored:
            yield row, stored[row["fingerprint"]]
