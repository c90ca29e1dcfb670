"""Inserts that cannot fail when another process inserts the same row at the same time."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite


def insert_unless_present(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> bool:
    """Insert a row unless the table has a row with its primary key.

    Args:
        connection: Connection in a transaction.
        table: The table.
        row: The row's values by column.

    Returns:
        Whether the row was inserted.
    """
    # Drivers count the rows of such an insert in different ways, so the inserted row is asked for.
    statement = _insert(connection, table).values(row).on_conflict_do_nothing().returning(*table.primary_key)
    return connection.execute(statement).first() is not None


def insert_or_replace(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> None:
    """Insert a row; if the table has a row with its primary key, give that row the new values.

    Args:
        connection: Connection in a transaction.
        table: The table.
        row: The row's values by column.
    """
    keys = [column.name for column in table.primary_key]
    changes = {name: value for name, value in row.items() if name not in keys}
    statement = _insert(connection, table).values(row).on_conflict_do_update(index_elements=keys, set_=changes)
    connection.execute(statement)


def _insert(connection: sa.Connection, table: sa.Table) -> Any:
    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)
