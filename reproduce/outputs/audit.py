"""Reads a file of anybody's scores, and writes the pages and tables of the answers to it, without torch."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reports.board.board_table import pairs_table, ranking_table
from reports.board.boards import Board, board_of_answers
from reports.headline import comparison_lines, headline
from reports.sentences import sentences
from reports.tables.differences import differences
from reports.tables.formats import WRITERS, to_json
from reports.tables.result_table import table_of
from reproduce.errors import InputError, writing_to
from reproduce.outputs.evaleval import evaleval_records
from reproduce.outputs.page import drawn_line, write_figures
from reproduce.outputs.read_table import read_table
from reproduce.outputs.tables import FILES, OF_SCORES, write_board
from results.answer.audit import Audit, audit
from results.atomic_files import folder_names, write_atomically
from results.records.columns import Reading


def audit_file(file: str, reading: Reading, deviation: float | None, **changes: Any) -> Audit:
    """Answer for a file of scores, for a folder of records, or for standard input if it is `-`.

    Args:
        file: The file.
        reading: Which columns are what.
        deviation: Standard deviation between searches that is assumed, as scores are shown.
        changes: Fields of `Question`.

    Raises:
        InputError: The file cannot be used, or names a method that it does not have.
    """
    name = "standard input" if file == "-" else Path(file).name
    if deviation is not None and not deviation > 0:
        raise InputError("--assume-deviation: give a number above 0, in points, such as 0.6")
    table = read_table(file, name)
    try:
        return audit(table, reading, name, deviation, **changes)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error


def board_of(found: Audit) -> Board | None:
    """The board of the answers on several datasets; exported experiments have theirs from `reproduce board`."""
    return None if found.exported else board_of_answers(found.answers)


def as_json(found: Audit) -> str:
    """Write everything that is said of a table of scores as JSON."""
    answers = [
        {
            "title": title,
            "unit": one.question.unit,
            "headline": headline(one),
            "comparisons": comparison_lines(one),
            "methods": json.loads(to_json(table_of(one))),
            "pairs": json.loads(to_json(differences(one))),
            "sentences": sentences(one),
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
    """Write a page with its figures and tables for each answer, and the board; yield the pages.

    What an earlier audit wrote here and this one does not write is removed: `audit.json` lists its files.
    """
    from reports.page.material import Material
    from reports.page.page import build_page

    names = folder_names(found.answers, (_BOARD, "figures"))
    written: list[Path] = [folder / _LIST]
    for title, one in found.answers.items():
        place = folder / names[title] if len(found.answers) > 1 else folder
        html, figures = build_page(Material(title, one, made=drawn_line(f" from {found.name}")))
        texts = {
            f"{kind}.{suffix}": WRITERS[form](table)
            for kind, table in ((kind, OF_SCORES[kind](one)) for kind in ("results", "differences"))
            for form, suffix in FILES.items()
        }
        for suffix in ("txt", "tex"):
            lines = sentences(one, latex=suffix == "tex")
            texts[f"sentences.{suffix}"] = "".join(f"{line}\n" for line in lines)
        records = evaleval_records(one, title if title != found.name else "", found.name)
        texts["evaleval.jsonl"] = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
        with writing_to(place):
            (place / "figures").mkdir(parents=True, exist_ok=True)
            write_figures(figures, place / "figures")
            for name, text in {**texts, "index.html": html}.items():
                write_atomically(place / name, text)
        written += [place / name for name in (*texts, "index.html")]
        written += [file for figure in figures for file in (place / "figures").glob(f"{figure.name}.*")]
        yield place / "index.html"
    if (board := board_of(found)) is not None:
        files = write_board(board, "all", folder / _BOARD, drawn_line(f" from {found.name}"))
        written += files
        yield files[0]
    with writing_to(folder):
        _leave_only(folder, written)


_BOARD, _LIST = "board", "audit.json"


def _leave_only(folder: Path, written: list[Path]) -> None:
    """List what was written, and remove what the list of an earlier audit has beside it."""
    names = sorted({str(path.relative_to(folder)) for path in written})
    try:
        earlier = json.loads((folder / _LIST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        earlier = []
    for name in {one for one in earlier if isinstance(one, str)} - set(names):
        path = folder / name
        if path.resolve().is_relative_to(folder.resolve()) and path.is_file():
            path.unlink()
            for above in path.relative_to(folder).parents:
                if above != Path() and not any((folder / above).iterdir()):
                    (folder / above).rmdir()
    write_atomically(folder / _LIST, json.dumps({"files": names}, indent=1) + "\n")
