"""Reads a file of anybody's scores, and writes the pages and tables of the answers to it, without torch.

What draws pages and boards is imported only when one is written.
"""

from __future__ import annotations

import hashlib
import html
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.errors import InputError, writing_to
from reproduce.outputs.read_table import read_table
from results.answer.audit import Audit, audit_scores, families_words, said_of
from results.atomic_files import folder_names, write_atomically
from results.reading.scores_table import OpenQuestionsError, Reading
from results.wording import counted, some

if TYPE_CHECKING:
    from reports.board.boards import Board
    from reports.page.material import Origin


@dataclass(frozen=True)
class AuditedFile:
    """The answers to one score of a file.

    Attributes:
        found: The answers.
        command: The whole command that gives them, as a shell takes it.
        sha256: The hash of the file; empty for a folder of records.
        families: At which level each of several scores has its family; empty for one.
    """

    found: Audit
    command: str
    sha256: str
    families: str


def audit_file(file: str, reading: Reading, deviation: float | None, **changes: Any) -> dict[str, AuditedFile]:
    """Answer for a file of scores, for a folder of records, or for standard input if it is `-`; by score.

    Args:
        file: The file.
        reading: Which columns are what.
        deviation: Standard deviation between searches that is assumed, as scores are shown.
        changes: Fields of `Question`.

    Raises:
        InputError: The file cannot be used, or names a method that it does not have. Where questions are open, the
            message has all of them and the command that answers them.
    """
    name = "standard input" if file == "-" else Path(file).name
    if deviation is not None and not deviation > 0:
        raise InputError("--assume-deviation: give a number above 0, in points, such as 0.6")
    text = sys.stdin.read() if file == "-" else ""
    table = read_table(file, name, text)
    further = [] if deviation is None else ["--assume-deviation", f"{deviation:g}"]
    for option, value in changes.items():
        further += [f"--{option.replace('_', '-')}", *([] if value is True else [str(value)])]
    try:
        scores = audit_scores(table, reading, name, deviation, **changes)
    except OpenQuestionsError as error:
        raise InputError(_questions_words(error, file, name, further)) from error
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error
    content = text.encode() if file == "-" else Path(file).read_bytes() if Path(file).is_file() else b""
    sha256 = hashlib.sha256(content).hexdigest() if content else ""
    command, families = _command(file, reading, further), families_words(scores)
    return {score: AuditedFile(found, command, sha256, families) for score, found in scores.items()}


def _command(file: str, reading: Reading, further: list[str]) -> str:
    return shlex.join(["python", "-m", "reproduce", "audit", file, *reading.options(), *further])


def _questions_words(error: OpenQuestionsError, file: str, name: str, further: list[str]) -> str:
    """All open questions, what was understood, and the command that takes the most likely answer to each."""
    questions = error.questions
    if len(questions) == 1 and not questions[0][1]:
        return f"{name}: {questions[0][0]}"
    lines = [f"{name}: nothing is compared before {counted(len(questions), 'question')}."]
    for text, taken in questions:
        lines.append(f"- {text}." + (f" Most likely, and taken below: {taken}" if taken else ""))
    if error.read is not None:
        lines.append(f"Read that way, it is {said_of(error.read, error.guess, name).removeprefix(f'{name}: ')}")
        lines += ["Check it, change what is wrong, and run", _command(file, error.guess, further)]
    elif any(taken for _, taken in questions):
        lines += ["As far as it is known, the command is", _command(file, error.guess, further)]
    return "\n".join(lines)


def origin_of(made: AuditedFile) -> Origin:
    """What the page and JSON say of the table: columns by what they are, and what was left out and why."""
    from reports.page.material import Origin, version

    read = made.found.table
    facts = (
        ("version", version() or "unknown"),
        ("file", made.found.name),
        *_known("SHA-256 of the file", made.sha256),
        *read.roles.items(),
        *_known("scores", made.families),
    )
    empty = [_empty_rows(method, dataset, rows) for (dataset, method), rows in read.left_out.items()]
    lists = {
        "Rows that were left out or merged": (*read.said, *empty),
        "Columns that were not read": tuple(f"{column}: {why}" for column, why in read.unread.items()),
    }
    return Origin(made.command, facts, lists)


def _empty_rows(method: str, dataset: str, rows: Sequence[int]) -> str:
    on = f" on {dataset}" if dataset else ""
    return f"{method}{on}: {counted(len(rows), 'row')} without a score ({some([str(row) for row in rows])})"


def _known(name: str, text: str) -> list[tuple[str, str]]:
    return [(name, text)] if text else []


def board_of(found: Audit) -> Board | None:
    """The board of the answers on several datasets; exported experiments have theirs from `reproduce board`.

    Without intervals there is none.
    """
    if found.exported or len(found.answers) < 2 or not all(one.sample.counted for one in found.answers.values()):
        return None
    from reports.board.boards import board_of_answers

    return board_of_answers(found.answers)


def as_json(made: Mapping[str, AuditedFile]) -> str:
    """Write everything that is said of a table of scores as JSON; of several scores, by score."""
    said = {score: _everything(one) for score, one in made.items()}
    first, *others = said.values()
    families = next(iter(made.values())).families
    return json.dumps({"families": families, "scores": said} if others else first, indent=1) + "\n"


def _everything(made: AuditedFile) -> dict[str, Any]:
    from reports.board.board_table import pairs_table, ranking_table
    from reports.headline import comparison_lines, headline
    from reports.sentences import sentences
    from reports.tables.differences import differences
    from reports.tables.formats import to_json
    from reports.tables.holds import holds_table, what_stands
    from reports.tables.result_table import table_of

    answers = [
        {
            "title": title,
            "unit": one.question.unit,
            "headline": headline(one),
            "comparisons": comparison_lines(one),
            "methods": json.loads(to_json(table_of(one))),
            "stands": what_stands(one),
            "holds": json.loads(to_json(holds_table(one))),
            "pairs": json.loads(to_json(differences(one))),
            "sentences": sentences(one),
            "findings": [vars(finding) for finding in one.findings],
        }
        for title, one in made.found.answers.items()
    ]
    origin = origin_of(made)
    said: dict[str, Any] = {
        "read": made.found.read,
        "command": origin.command,
        **dict(origin.facts[:1]),
        "sha256": made.sha256,
        "columns": dict(made.found.table.roles),
        "columns_left_out": dict(made.found.table.unread),
        "rows_left_out": list(origin.lists["Rows that were left out or merged"]),
        "answers": answers,
    }
    if (board := board_of(made.found)) is not None:
        drawn = {"ranking": ranking_table(board), "pairs": pairs_table(board)}
        said["board"] = {name: json.loads(to_json(table)) for name, table in drawn.items()}
    return said


def write_audit(made: Mapping[str, AuditedFile], folder: Path) -> Iterator[Path]:
    """Write a page with its figures and tables for each answer, and for several an index and a board; yield the pages.

    Each of several scores has a folder. What an earlier audit wrote here and this one does not write is removed:
    `audit.json` lists its files.
    """
    from reports.headline import headline

    names, written = folder_names(made, ("figures",)), [folder / _LIST]
    for score, one in made.items():
        for page, files in _write_score(one, folder / names[score] if len(made) > 1 else folder):
            written += files
            yield page
    if len(made) > 1:
        first = next(iter(made.values()))
        rows = [
            (names[score], score, "; ".join(map(headline, one.found.answers.values()))) for score, one in made.items()
        ]
        written.append(_write_index(folder, first, first.families, rows))
        yield written[-1]
    with writing_to(folder):
        _leave_only(folder, written)


def _write_score(made: AuditedFile, folder: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Write what belongs to a score; yield each page with all files that stand beside it."""
    from reports.headline import headline
    from reports.page.material import Material
    from reports.page.page import build_page
    from reports.sentences import sentences
    from reports.tables.differences import differences
    from reports.tables.formats import WRITERS
    from reports.tables.holds import holds_table
    from reports.tables.result_table import table_of
    from reproduce.outputs.evaleval import evaleval_records
    from reproduce.outputs.page import drawn_line, write_figures
    from reproduce.outputs.tables import FILES, write_board

    found, origin = made.found, origin_of(made)
    names = folder_names(found.answers, (_BOARD, "figures"))
    for title, one in found.answers.items():
        place = folder / names[title] if len(found.answers) > 1 else folder
        page, figures = build_page(Material(title, one, made=drawn_line(f" from {found.name}"), origin=origin))
        tables = {"results": table_of(one), "holds": holds_table(one), "differences": differences(one)}
        texts = {
            f"{kind}.{suffix}": WRITERS[form](table) for kind, table in tables.items() for form, suffix in FILES.items()
        }
        for suffix in ("txt", "tex"):
            lines = sentences(one, latex=suffix == "tex")
            texts[f"sentences.{suffix}"] = "".join(f"{line}\n" for line in lines)
        records = evaleval_records(one, title if title != found.name else "", found.name)
        texts["evaleval.jsonl"] = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
        with writing_to(place):
            (place / "figures").mkdir(parents=True, exist_ok=True)
            write_figures(figures, place / "figures")
            for name, text in {**texts, "index.html": page}.items():
                write_atomically(place / name, text)
        drawn = [file for figure in figures for file in (place / "figures").glob(f"{figure.name}.*")]
        yield place / "index.html", [*(place / name for name in (*texts, "index.html")), *drawn]
    rows = [(names[title], title, headline(one)) for title, one in found.answers.items()]
    if (board := board_of(found)) is not None:
        files = write_board(board, "all", folder / _BOARD, drawn_line(f" from {found.name}"))
        rows.append((_BOARD, "All together", "which differences hold on all datasets"))
        yield files[0], files
    if len(found.answers) > 1:
        index = _write_index(folder, made, found.read, rows)
        yield index, [index]


def _write_index(folder: Path, made: AuditedFile, said: str, rows: Sequence[tuple[str, str, str]]) -> Path:
    """Write a page that leads to others, each with its folder, its title and what it says."""
    listed = ['<li><a href="{}/index.html">{}</a>: {}</li>'.format(*map(html.escape, row)) for row in rows]
    name = html.escape(made.found.name)
    page = (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{name}</title></head>\n<body>\n'
        f"<h1>{name}</h1>\n<p>{html.escape(said)}</p>\n<pre><code>{html.escape(made.command)}</code></pre>\n<ul>\n"
        + "\n".join(listed)
        + "\n</ul>\n</body>\n</html>\n"
    )
    with writing_to(folder):
        write_atomically(folder / "index.html", page)
    return folder / "index.html"


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
