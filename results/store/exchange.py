"""Adds the rows of one store to another. Rows of one name must have the same outcome, else nothing is added."""

import json
from dataclasses import dataclass, field
from sqlite3 import Row

from results.records.records import CIRCUMSTANCES
from results.records.trials import Trial
from results.store.database import Database, insert

_KEYS = {
    **dict.fromkeys(("trainings", "studies", "runs", "test_curves", "experiments"), ("fingerprint",)),
    "trials": ("study", "number"),
    "experiment_studies": ("experiment", "method", "search"),
    "experiment_runs": ("experiment", "method", "search", "run"),
    "failures": ("training", "reason", "at"),
}
"""What names a row of each table."""

_MAY_DIFFER = ("studies", "test_curves", "experiments", "failures")
"""Tables whose rows of one name say the same, or of which either will do."""


@dataclass
class RowMerge:
    """What an import will do; nothing is written before `apply_merge`.

    Attributes:
        conflicts: A line for each row that the stores have with different outcomes.
        rows: The rows to insert, by table.
    """

    conflicts: list[str] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=dict)


def plan_merge(into: Database, other: Database) -> RowMerge:
    """Compare two stores that `check_records` finds whole. The first is to get what it lacks; nothing is written."""
    merge = RowMerge()
    with into.reading() as first, other.reading() as second:
        for table, key in _KEYS.items():
            query = f"SELECT {'*' if table != 'failures' else ', '.join(key)} FROM {table}"
            mine = {tuple(row[name] for name in key): row for row in first.execute(query)}
            rows = merge.rows.setdefault(table, [])
            for row in second.execute(query):
                name = tuple(row[part] for part in key)
                if name not in mine or _continues(table, mine[name], row):
                    rows.append(row)
                elif table not in _MAY_DIFFER and (differing := _differing(table, mine[name], row)):
                    merge.conflicts.append(f"{' '.join(map(str, name))} of {table}: different {', '.join(differing)}")
    return merge


def apply_merge(into: Database, merge: RowMerge) -> None:
    """Write what `plan_merge` decided, in one transaction: all of it or nothing. It can be repeated."""
    with into.writing() as connection:
        for table, rows in merge.rows.items():
            for row in rows:
                values = {name: value for name, value in dict(row).items() if name != "sha256"}
                insert(connection, table, values, replace=table in ("trials", "experiments"))


def _continues(table: str, stored: Row, row: Row) -> bool:
    """Whether a row takes the place of a stored one: a later start, or the end of a trial."""
    if table == "experiments":
        return bool(row["last_started"] > stored["last_started"])
    return table == "trials" and _is_running(stored) and not _is_running(row)


def _is_running(row: Row) -> bool:
    return Trial.model_validate_json(row["content"]).state == "running"


def _differing(table: str, stored: Row, row: Row) -> list[str]:
    """Return the names of the fields in which two records differ, without the circumstances."""
    if "content" not in row.keys():  # noqa: SIM118  (a row's `in` looks among its values)
        return [name for name in row.keys() if row[name] != stored[name]]  # noqa: SIM118
    if stored["sha256"] == row["sha256"] or (table == "trials" and _is_running(row)):
        return []
    first, second = json.loads(stored["content"]), json.loads(row["content"])
    return sorted(name for name in {*first, *second} - CIRCUMSTANCES if first.get(name) != second.get(name))
