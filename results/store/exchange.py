"""Adds the rows of one store to another. Rows of one name must have the same outcome, else nothing is added."""

from typing import Any

from results.records.records import CIRCUMSTANCES, FoldResult, RunRecord
from results.records.trials import Trial
from results.store.database import TABLES, Database
from results.values import Record

_COMPARED: dict[str, tuple[str, str, type[Record] | None]] = {
    "trainings": ("fingerprint", "content", FoldResult),
    "runs": ("fingerprint", "content", RunRecord),
    "trials": ("study, number", "content", Trial),
    "experiment_studies": ("experiment, method, search", "study", None),
    "experiment_runs": ("experiment, method, search, run", "run_fingerprint", None),
}
"""What names a row, and what two rows of one name must agree in. Of other tables either row will do."""

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
        for table, (key, value, kind) in _COMPARED.items():
            both = f"main.{table} AS mine JOIN other.{table} AS theirs USING ({key})"
            differing = f"SELECT {key}, mine.{value}, theirs.{value} FROM {both} WHERE mine.{value} != theirs.{value}"
            for *name, first, second in connection.execute(differing):
                if kind is None or _outcomes_differ(kind, first, second):
                    found.append(f"{' '.join(map(str, name))} of {table}")
    return found


def _outcomes_differ(kind: type[Record], *contents: str) -> bool:
    records: list[Any] = [kind.model_validate_json(content) for content in contents]
    if any(getattr(record, "state", None) == "running" for record in records):
        return False  # This trial has no outcome yet.
    first, second = (record.model_dump(exclude=CIRCUMSTANCES) for record in records)
    return bool(first != second)


def add_rows(into: Database, other: Database) -> dict[str, int]:
    """Add what a store lacks, in one transaction: all of it or nothing. Return the number of added rows by table."""
    with into.writing(other) as connection:
        return {table: connection.execute(_addition(table)).rowcount for table in TABLES}


def _addition(table: str) -> str:
    if table == "failures":  # Numbered by each store.
        rows = "SELECT training, reason, at FROM"
        return f"INSERT INTO failures (training, reason, at) {rows} other.failures EXCEPT {rows} main.failures"
    add = f"INSERT INTO main.{table} SELECT * FROM other.{table} WHERE true ON CONFLICT DO"
    if table not in _REPLACED:
        return f"{add} NOTHING"
    return f"{add} UPDATE SET sha256 = excluded.sha256, content = excluded.content {_REPLACED[table]}"
