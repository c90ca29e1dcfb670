"""Reads a file of anybody's scores, and writes the pages and tables of the answers to it, without torch."""

import io
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from reports.board.board_table import pairs_table, ranking_table
from reports.board.boards import Board, board_of_answers
from reports.headline import comparison_lines, headline
from reports.tables.differences import differences
from reports.tables.formats import WRITERS, to_json
from reports.tables.result_table import table_of
from reproduce.errors import InputError, read_text, writing_to
from reproduce.outputs.page import drawn_line, write_figures
from reproduce.outputs.tables import FILES, KINDS, write_board
from results.answer.audit import Audit, audit
from results.answer.deviations import SearchDeviation
from results.answer.pair_tests import MOST_DEGREES
from results.atomic_files import file_name, write_atomically
from results.records.read_scores import Reading

_SHEETS = (".xlsx", ".xls", ".ods", ".numbers")


def audit_file(
    file: str, reading: Mapping[str, Any], compare: str | None, margin: float | None, deviation: float | None
) -> Audit:
    """Answer for a file of scores, or for standard input if it is `-`; margin and deviation in points.

    Raises:
        InputError: The file cannot be used, or names a method that it does not have.
    """
    name = "standard input" if file == "-" else Path(file).name
    changes: dict[str, Any] = {} if compare is None else {"compare": compare}
    if margin is not None:
        changes["margin"] = margin / 100
    if deviation is not None:
        if not deviation > 0:
            raise InputError("--assume-deviation: give a number above 0, in points, such as 0.6")
        changes["assumed"] = SearchDeviation(deviation / 100, int(MOST_DEGREES), "", given=True)
    table = _table(file, name)
    try:
        return audit(table, Reading(**reading), name, **changes)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error


def _table(file: str, name: str) -> pd.DataFrame:
    """The rows of a file under the numbers that an editor shows."""
    suffix = Path(file).suffix.lower()
    if suffix in _SHEETS:
        raise InputError(f"{name}: a spreadsheet; save the sheet as CSV")
    if suffix == ".parquet":
        try:
            table = pd.read_parquet(file).reset_index(drop=True)
        except FileNotFoundError:
            raise InputError(f"{file}: cannot be read (No such file or directory)") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{name}: is no Parquet file; write it with pandas' to_parquet") from error
        return table.set_axis(range(1, len(table) + 1))
    text = (sys.stdin.read() if file == "-" else read_text(Path(file))).removeprefix("\ufeff")
    return _of_json(text, name) if text.lstrip()[:1] in ("{", "[") else _of_csv(text, name)


def _of_csv(text: str, name: str) -> pd.DataFrame:
    header = text.partition("\n")[0]
    separator = max(",;\t", key=header.count)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # Rows with more fields than the header.
        try:
            table = pd.read_csv(
                io.StringIO(text),
                sep=separator,
                dtype=str,
                keep_default_na=False,
                skip_blank_lines=False,
                index_col=False,
            )
        except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError) as error:
            reason = str(error).strip().partition("\n")[0].removeprefix("Error tokenizing data. C error: ")
            raise InputError(f"{name}: is no table ({reason}); give every row the fields of the first line") from error
    table = table.fillna("").set_axis(range(2, len(table) + 2))
    return table[(table != "").any(axis=1)]


def _of_json(text: str, name: str) -> pd.DataFrame:
    """Rows of JSON lines, or of one list."""
    is_list, rows = text.lstrip().startswith("["), dict[int, Any]()
    for number, part in enumerate([text] if is_list else text.splitlines(), 1):
        try:
            if part.strip():
                rows |= dict(enumerate(json.loads(part), 1)) if is_list else {number: json.loads(part)}
        except ValueError as error:
            where = "" if is_list else f"row {number}: "
            raise InputError(f"{name}: {where}is no JSON ({error}); write one object a line") from error
    for number, row in rows.items():
        if not isinstance(row, dict):
            raise InputError(f"{name}: row {number}: is no object with the names of the columns")
    return pd.DataFrame(list(rows.values()), index=list(rows))


def board_of(found: Audit) -> Board | None:
    """The board of the answers on several datasets; exported experiments have theirs from `reproduce board`."""
    return None if found.exported else board_of_answers(found.answers)


def as_json(found: Audit) -> str:
    """Write everything that is said of a table of scores as JSON, with all digits."""
    answers = [
        {
            "title": title,
            "unit": one.question.unit,
            "headline": headline(one),
            "comparisons": comparison_lines(one),
            "methods": json.loads(to_json(table_of(one))),
            "pairs": json.loads(to_json(differences(one))),
            "findings": [vars(finding) for finding in one.findings],
        }
        for title, one in found.answers.items()
    ]
    said: dict[str, Any] = {"read": found.read, "answers": answers}
    if (board := board_of(found)) is not None:
        drawn = {"ranking": ranking_table(board), "pairs": pairs_table(board)}
        said["board"] = {name: json.loads(to_json(table)) for name, table in drawn.items()}
    return json.dumps(said, indent=1) + "\n"


def write_audit(found: Audit, folder: Path) -> Iterator[Path]:
    """Write a page with its figures and tables for each answer, and the board; yield the pages."""
    from reports.page.material import Material
    from reports.page.page import build_page

    for title, one in found.answers.items():
        place = folder / file_name(title) if len(found.answers) > 1 else folder
        with writing_to(place):
            (place / "figures").mkdir(parents=True, exist_ok=True)
        html, figures = build_page(Material(title, one, made=drawn_line(f" from {found.name}")))
        tables = {kind: KINDS[kind](one) for kind in ("results", "differences")}
        with writing_to(place):
            write_figures(figures, place / "figures")
            for kind, table in tables.items():
                for form, suffix in FILES.items():
                    write_atomically(place / f"{kind}.{suffix}", WRITERS[form](table))
            write_atomically(place / "index.html", html)
        yield place / "index.html"
    if (board := board_of(found)) is not None:
        yield write_board(board, "all", folder / "board", drawn_line(f" from {found.name}"))[0]
