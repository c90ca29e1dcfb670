"""Reads anybody's file of scores as a table, with the numbers of the rows that an editor shows."""

import csv
import gzip
import io
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pandas as pd

from reproduce.errors import InputError, read_text
from reproduce.outputs.evaleval import is_evaleval, table_of_records

_SHEETS = (".xlsx", ".xls", ".ods", ".numbers")


def read_table(file: str, name: str, given: str = "") -> pd.DataFrame:
    """Return the rows of a file, of the JSON files of a folder, or of standard input (`-`), with their numbers.

    Args:
        file: The file.
        name: What it is called in messages.
        given: What standard input has.

    Raises:
        InputError: The file cannot be read.
    """
    path, suffix = Path(file), Path(file).suffix.lower()
    if suffix in _SHEETS:
        raise InputError(f"{name}: a spreadsheet; save the sheet as CSV")
    if suffix == ".parquet":
        try:
            table = pd.read_parquet(file)
        except FileNotFoundError:
            raise InputError(f"{file}: cannot be read (No such file or directory)") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{name}: is no Parquet file; write it with pandas' to_parquet") from error
        named = [level for level in table.index.names if level is not None]
        table = table.reset_index(drop=not named)
        return table.set_axis(range(1, len(table) + 1))
    if path.is_dir():
        return _of_folder(path, name)
    text = (given if file == "-" else _text(file, name)).removeprefix("\ufeff")
    return _of_json(text, name) if text.lstrip()[:1] in ("{", "[") else _of_csv(text, name)


def _text(file: str, name: str) -> str:
    if not file.lower().endswith(".gz"):
        return read_text(Path(file))
    try:
        return gzip.decompress(Path(file).read_bytes()).decode()
    except FileNotFoundError:
        raise InputError(f"{file}: cannot be read (No such file or directory)") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{name}: is no text that gzip compressed ({error})") from error


def _of_folder(folder: Path, name: str) -> pd.DataFrame:
    """The records of Every Eval Ever below a folder."""
    records: list[Any] = []
    for file in sorted(folder.rglob("*.json")):
        try:
            record = json.loads(read_text(file))
        except ValueError as error:
            raise InputError(f"{file}: is no JSON ({error})") from error
        records += [record] if is_evaleval(record) else []
    if not records:
        raise InputError(f"{name}: a folder without a record of Every Eval Ever (*.json); name a file of scores")
    return table_of_records(records, name)


def _of_csv(text: str, name: str) -> pd.DataFrame:
    header = text.partition("\n")[0]
    separator = max(",;\t", key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    columns: list[str] = []
    rows: dict[int, list[str]] = {}
    line = 1
    try:
        for fields in reader:
            if not columns:
                columns = fields
            elif len(fields) > len(columns):
                problem = f"row {line} has {len(fields)} fields, the first line {len(columns)}"
                raise InputError(f"{name}: is no table ({problem}); give every row the fields of the first line")
            elif any(fields):
                rows[line] = [*fields, *[""] * (len(columns) - len(fields))]
            line = reader.line_num + 1  # A cell can have line breaks.
    except csv.Error as error:
        raise InputError(f"{name}: is no table (row {line}: {error}); mend its quotation marks") from error
    if not columns:
        raise InputError(f"{name}: is no table (no columns); write a line with their names first")
    table = pd.DataFrame(list(rows.values()), index=list(rows), columns=columns, dtype=str)
    return table if separator == "," else _with_points(table)


_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


def _with_points(table: pd.DataFrame) -> pd.DataFrame:
    """Read decimal commas, where commas are no separators. `1,234` alone could be a thousand and is left."""
    for place, name in enumerate(table.columns):
        cells = table.iloc[:, place].str.strip()
        commas = cells[cells.str.contains(",", regex=False)]
        if commas.empty or not commas.str.fullmatch(_COMMA).all() or cells.str.contains(".", regex=False).any():
            continue
        if (commas.str.partition(",")[2].str.len() == 3).all() and not commas.str.startswith(("0,", "-0,", ",")).all():
            continue
        table = table.assign(**{name: cells.str.replace(",", ".", regex=False)})
    return table


def _of_json(text: str, name: str) -> pd.DataFrame:
    """Rows of JSON lines, or of one list; or records of Every Eval Ever."""
    rows: dict[int, Any] = {}
    try:
        whole = json.loads(text)
        if isinstance(whole, dict) and whole and all(isinstance(one, dict | list) for one in whole.values()):
            return _of_columns(whole, name)
        rows = dict(enumerate(whole if isinstance(whole, list) else [whole], 1))
    except ValueError as error:
        if text.lstrip().startswith("["):
            raise InputError(f"{name}: is no JSON ({error}); write one object a line") from error
        rows = dict(_lines(text, name))
    for number, row in rows.items():
        if not isinstance(row, dict):
            raise InputError(f"{name}: row {number}: is no object with the names of the columns")
    if rows and all(map(is_evaleval, rows.values())):
        return table_of_records(list(rows.values()), name)
    return pd.DataFrame(list(rows.values()), index=list(rows))


def _of_columns(whole: dict[str, Any], name: str) -> pd.DataFrame:
    """A table by its columns, as `to_json()` and `to_dict()` of pandas write it."""
    if is_evaleval(whole):
        return table_of_records([whole], name)
    try:
        table = pd.DataFrame(whole)
    except ValueError as error:
        raise InputError(
            f"{name}: is no table ({error}); write rows, with pandas' to_json(orient='records')"
        ) from error
    return table.set_axis(range(1, len(table) + 1))


def _lines(text: str, name: str) -> list[tuple[int, Any]]:
    rows = []
    for number, part in enumerate(text.splitlines(), 1):
        try:
            if part.strip():
                rows.append((number, json.loads(part)))
        except ValueError as error:
            raise InputError(f"{name}: row {number}: is no JSON ({error}); write one object a line") from error
    return rows
