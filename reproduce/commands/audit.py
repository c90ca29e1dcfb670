"""`audit`: verdicts for scores that were measured anywhere."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reproduce.commands.options import Format
from reproduce.terminal import print_table, say
from results.wording import counted

if TYPE_CHECKING:
    from results.answer.answers import Answer

ScoresFile = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, JSON lines or Parquet, one row per run; - reads standard input. Columns: method, a "
        "score (or metric and value) and, if there are any, search, run (or seed), dataset."
    ),
]

AssumedDeviation = Annotated[
    float | None,
    typer.Option(
        min=0.0, help="Standard deviation between searches of a method, in points, where the file cannot show it."
    ),
]

_MOST_PAIRS = 15
"""Of more pairs the terminal shows no table; they are in the files."""


def audit(
    file: ScoresFile,
    score: Annotated[str, typer.Option("--score", help="Column (or metric) that is compared, of several.")] = "",
    method: Annotated[str, typer.Option("--method", help="Column of the methods. Default: method, model, ...")] = "",
    compare: Annotated[
        str | None, typer.Option("--compare", help="Compare all pairs (all), each with the best, or with this method.")
    ] = None,
    margin: Annotated[
        float | None, typer.Option("--margin", min=0.0, help="Methods closer than this, in points, are equal.")
    ] = None,
    scale: Annotated[
        Literal["fractions", "percent", "points"] | None,
        typer.Option("--scale", help="Default: fractions if all are within 0 and 1, else percent. points: neither."),
    ] = None,
    lower_is_better: Annotated[bool, typer.Option("--lower-is-better", help="The score is an error.")] = False,
    assume_deviation: AssumedDeviation = None,
    output: Format = "terminal",
    what: Annotated[
        Literal["results", "differences"], typer.Option("--what", help="Table in the formats without room for both.")
    ] = "results",
    to: Annotated[
        Path | None, typer.Option("--to", help="Write the page, its figures and the tables in every format here.")
    ] = None,
) -> None:
    """Judge scores that were measured anywhere: which methods differ, what could have been seen, what does not hold.

    With a column of searches, methods are compared; without, the settings that the runs are of. Several datasets get an
    answer each, and a board. The exit status is 0 whatever the verdict.
    """
    from reproduce.outputs.audit import as_json, audit_file, board_of, write_audit

    reading = {"method": method, "score": score, "scale": scale, "lower_is_better": lower_is_better}
    found = audit_file(file, reading, compare, margin, assume_deviation)
    if to is not None:
        say(found.read)
        for page in write_audit(found, to):
            say(str(page))
    elif output == "json":
        sys.stdout.write(as_json(found))
    elif output == "terminal":
        say(found.read)
        for title, one in found.answers.items():
            _show(title if len(found.answers) > 1 else "", one)
        if (board := board_of(found)) is not None:
            from reports.board.board_table import pairs_table, ranking_table

            for drawn in (ranking_table(board), pairs_table(board, decided=True)):
                print_table(drawn, output)
    else:
        from reproduce.outputs.tables import KINDS

        for one in found.answers.values():
            print_table(KINDS[what](one), output)


def _show(title: str, found: Answer) -> None:
    from reports.headline import comparison_lines, headline
    from reports.tables.differences import differences
    from reports.tables.result_table import table_of
    from reports.tables.table import with_notes
    from results.answer.caveats import unit_sentence

    unit = unit_sentence(found)
    for line in filter(None, (f"\n{title}" if title else "", unit, headline(found))):
        say(line)
    for line in comparison_lines(found):
        say(f"- {line}")
    table = table_of(found)
    print_table(replace(table, notes=tuple(note for note in table.notes if note not in unit)), "terminal")
    if len(found.pairs) > _MOST_PAIRS:
        say(f"The table of {counted(len(found.pairs), 'pair')}: --what differences --format csv, or --to FOLDER.")
    elif found.pairs:
        print_table(with_notes(differences(found), "none"), "terminal")
