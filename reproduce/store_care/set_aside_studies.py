"""Moves damaged searches from Optuna's tables into files. The next run makes them again from the stored trainings.

A search can be made again because each of its proposals follows from its fingerprint and the scores before it. Its
trainings have the same fingerprints as before, so they are taken from the store.
"""

import json
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import sqlalchemy as sa

from reproduce.execution.shared_work import study_lease
from reproduce.storage import StoragePaths, existing_store, readable_studies, studies_in_one_line
from reproduce.store_care.damaged_studies import (
    OF_STUDIES,
    OF_TRIALS,
    STUDIES,
    TRIALS,
    DamagedStudy,
    damaged_studies,
    rows_without_owner,
    without_owner,
)
from results.store.database import Database
from results.store.store import Store
from results.whole_files import file_name, write_whole

Conditions = Mapping[str, sa.ColumnElement[bool]]
"""Which rows to move, by table. Rows that others refer to come last."""


def set_aside_damaged_studies(where: StoragePaths, say: Callable[[str], None]) -> None:
    """Move the rows of damaged searches into files in the folder of artifacts, so that they can be made again.

    A search that another run works on, or that another program has made, stays.

    Args:
        where: Paths of a store.
        say: Prints one line for every file.

    Raises:
        StoreError: The store cannot be read or written.
    """
    store = existing_store(where)
    if store is not None:
        with studies_in_one_line(where):
            _set_aside(where, store, say)


def _set_aside(where: StoragePaths, store: Store, say: Callable[[str], None]) -> None:
    studies = readable_studies(where)
    if studies is None:
        return
    without = rows_without_owner(studies)
    damaged = [study for study in damaged_studies(studies) if study.is_of_the_suite]
    if not damaged and not without:
        return
    database = Database(where.store)
    with store.leases() as leases:
        for study in damaged:
            if leases.take(study_lease(study.name)) is None:
                file = _move_rows(database, _rows_of(study), where.artifacts, study.name)
                say(
                    f"study {study.name} was damaged: {study.reason}; its rows are kept in {file}, and the search is "
                    "made again from the stored trainings"
                )
    if without:
        conditions = {table: without_owner(table) for table in (*OF_TRIALS, *OF_STUDIES)}
        file = _move_rows(database, conditions, where.artifacts, "rows without study")
        say(f"{sum(without.values())} row(s) of searches belonged to no study; they are kept in {file}")


def _rows_of(study: DamagedStudy) -> Conditions:
    of_study = sa.column("study_id") == study.number
    of_trials = sa.column("trial_id").in_(sa.select(sa.column("trial_id")).select_from(TRIALS).where(of_study))
    return {**dict.fromkeys(OF_TRIALS, of_trials), **dict.fromkeys(OF_STUDIES, of_study), STUDIES.name: of_study}


def _move_rows(database: Database, conditions: Conditions, artifacts: Path, name: str) -> Path:
    """Write rows into a new file and delete them. The file is on the disk before the rows are gone."""
    folder, stem = artifacts / "searches", file_name(name)
    path = next(path for n in count(1) if not (path := folder / f"{stem}.damaged-{n}.json").exists())
    with database.writing() as connection:
        if connection.dialect.name == "sqlite":  # A damaged text may be no UTF-8.
            connection.connection.driver_connection.text_factory = _text  # type: ignore[union-attr]
        rows = {
            table: [
                dict(row)
                for row in connection.execute(
                    sa.select(sa.text("*")).select_from(sa.table(table)).where(condition)
                ).mappings()
            ]
            for table, condition in conditions.items()
        }
        write_whole(path, json.dumps(rows, indent=1, default=str))
        for table, condition in conditions.items():
            connection.execute(sa.delete(sa.table(table)).where(condition))
    return path


def _text(content: bytes) -> str:
    return content.decode(errors="backslashreplace")
