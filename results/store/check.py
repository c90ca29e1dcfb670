"""Checks the rows of a store (each can be read, its hash is right, what it names exists), and adds those of another.

Rows of one name must have the same outcome in both, else nothing is added.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from results.records.records import CIRCUMSTANCES, FoldResult, RunRecord, TestCurve
from results.records.trials import Trial
from results.spec.plan import Plan
from results.spec.training_spec import FoldSpec
from results.store.database import TABLES, Database, content_of, why_unreadable
from results.store.listings import joined_listings, put_listing
from results.values import Record

_RECORDS: dict[str, type[Record]] = {
    "trainings": FoldResult,
    "test_curves": TestCurve,
    "runs": RunRecord,
    "experiments": Plan,
    "trials": Trial,
}

_Row = dict[str, Any]
_Reference = tuple[str, str]
"""A table, and the fingerprint of a row in it."""


@dataclass(frozen=True)
class StoreFault:
    """Something in a store that is not as the suite writes it.

    Attributes:
        kind: `damaged` cannot be read or has another hash than its content. `missing` is needed by something else.
            `foreign` belongs to nothing in the store; it does no harm.
        name: The row or the file.
        reason: What is wrong with it.
    """

    kind: Literal["damaged", "missing", "foreign"]
    name: str
    reason: str


@dataclass
class CheckedRecords:
    """The outcome of a check.

    Attributes:
        faults: What is not as it should be.
        specs: The specifications of the whole trainings, by fingerprint.
        runs: The whole test evaluations, by fingerprint.
        rows: Number of rows that were read.
    """

    faults: list[StoreFault] = field(default_factory=list)
    specs: dict[str, FoldSpec] = field(default_factory=dict)
    runs: dict[str, RunRecord] = field(default_factory=dict)
    rows: int = 0


def check_records(database: Database, progress: Callable[[int, int], None] | None = None) -> CheckedRecords:
    """Read every row of a store. Nothing is written.

    Args:
        database: The store's database.
        progress: Called with the number of rows that were read, and of all rows.
    """
    checked = CheckedRecords()
    known: set[_Reference] = set()
    needed: dict[_Reference, str] = {}
    with database.reading() as connection:
        total = sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES)
        for table in TABLES:
            for row in map(dict, connection.execute(f"SELECT * FROM {table}")):
                name = _name(table, row)
                if "fingerprint" in row:
                    known.add((table, row["fingerprint"]))
                try:
                    read = _RECORDS[table].model_validate_json if table in _RECORDS else json.loads
                    record: Any = read(content_of(row)) if "content" in row else None
                except ValueError as error:
                    checked.faults.append(StoreFault("damaged", name, why_unreadable(error)))
                else:
                    for reference in _references(table, row, record):
                        needed.setdefault(reference, name)
                    if isinstance(record, FoldResult):
                        checked.specs[row["fingerprint"]] = record.spec
                    elif isinstance(record, RunRecord):
                        checked.runs[row["fingerprint"]] = record
                checked.rows += 1
                if progress is not None:
                    progress(checked.rows, total)
    for (table, fingerprint), name in needed.items():
        if (table, fingerprint) not in known:
            checked.faults.append(StoreFault("missing", f"row {fingerprint} of {table}", f"{name} needs it"))
    return checked


def _name(table: str, row: _Row) -> str:
    if table == "trials":
        return f"trial {row['number']} of study {row['study']}"
    return f"row {row.get('fingerprint') or ' '.join(map(str, [*row.values()][:4]))} of {table}"


def _references(table: str, row: _Row, record: Any) -> Iterator[_Reference]:
    """Yield the rows that a row names."""
    columns = {"study": "studies", "run_fingerprint": "runs", "experiment": "experiments"}
    for column, other in columns.items():
        if column in row and row[column] is not None:
            yield other, row[column]
    if isinstance(record, Trial):
        yield from (("trainings", fingerprint) for fingerprint in record.trainings)
    if isinstance(record, RunRecord):
        yield from (("trainings", fingerprint) for fingerprint in (*record.fold_fingerprints, *record.chosen_by))
        if record.study is not None:
            yield "studies", record.study


_COMPARED: dict[str, tuple[str, type[Record]]] = {
    "trainings": ("fingerprint", FoldResult),
    "runs": ("fingerprint", RunRecord),
    "trials": ("study, number", Trial),
}
"""What names a row whose content has an outcome, in which two rows of one name must agree."""

_REPLACED = {
    "trials": "WHERE json_extract(trials.content, '$.state') = 'running' "
    "AND json_extract(excluded.content, '$.state') != 'running'",
    "experiments": ", name = excluded.name, last_started = excluded.last_started "
    "WHERE excluded.last_started > experiments.last_started",
}
"""Where a row takes the place of a stored one: the end of a trial, a later start."""


def conflicts(into: Database, other: Database) -> list[str]:
    """Return the names of the rows that two stores have with different outcomes."""
    found = []
    with into.writing(other) as connection:
        for table, (key, kind) in _COMPARED.items():
            both = f"main.{table} AS mine JOIN other.{table} AS theirs USING ({key})"
            differing = f"SELECT {key}, mine.content, theirs.content FROM {both} WHERE mine.content != theirs.content"
            for *name, first, second in connection.execute(differing):
                if _outcomes_differ(kind, first, second):
                    found.append(f"{' '.join(map(str, name))} of {table}")
    return found


def _outcomes_differ(kind: type[Record], *contents: str) -> bool:
    records: list[Any] = [kind.model_validate_json(content) for content in contents]
    if any(getattr(record, "state", None) == "running" for record in records):
        return False  # This trial has no outcome yet.
    first, second = (record.model_dump(exclude=CIRCUMSTANCES) for record in records)
    return bool(first != second)


def add_rows(into: Database, other: Database) -> dict[str, int]:
    """Add what a store lacks, in one transaction: all of it or nothing. Return the number of added rows by table.

    Of an experiment that both have, its searches and runs are listed as `results.store.listings` says.
    """
    with into.writing(other) as connection:
        listings = joined_listings(connection, into, other)
        added = {table: connection.execute(_addition(table)).rowcount for table in TABLES}
        for experiment, listing in listings.items():
            put_listing(connection, experiment, listing)
    return added


def _addition(table: str) -> str:
    if table == "failures":  # Numbered by each store.
        rows = "SELECT training, reason, at FROM"
        return f"INSERT INTO failures (training, reason, at) {rows} other.failures EXCEPT {rows} main.failures"
    add = f"INSERT INTO main.{table} SELECT * FROM other.{table} WHERE true ON CONFLICT DO"
    if table not in _REPLACED:
        return f"{add} NOTHING"
    return f"{add} UPDATE SET sha256 = excluded.sha256, content = excluded.content {_REPLACED[table]}"
