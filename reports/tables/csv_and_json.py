"""The values behind a table, at full precision, as CSV and JSON."""

import csv
import io
import json

from reports.tables.table import Table, Value


def to_csv(table: Table) -> str:
    """Write the table's sheet as CSV. Floating-point numbers keep all their digits."""
    columns = [index for index, name in enumerate(table.sheet.header) if name not in table.sheet.only_json]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([table.sheet.header[index] for index in columns])
    writer.writerows([_field(row[index]) for index in columns] for row in table.sheet.rows)
    return buffer.getvalue()


def to_json(table: Table) -> str:
    """Write the table's sheet as a JSON list with one object per row."""
    rows = [dict(zip(table.sheet.header, values, strict=True)) for values in table.sheet.rows]
    return json.dumps(rows, indent=1) + "\n"


def _field(value: Value) -> str | int:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else value
