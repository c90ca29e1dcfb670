"""`audit`: verdicts for scores that were measured anywhere."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from reproduce.commands.options import Format
from reproduce.errors import InputError
from reproduce.terminal import print_table, say
from results.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reproduce.outputs.audit import AuditedFile
    from results.answer.answers import Answer
    from results.answer.audit import Audit

ScoresFile = Annotated[
    str,
    typer.Argument(
        help="CSV (or .csv.gz), TSV, JSON lines, Parquet, or records of Every Eval Ever, one row per run; - reads "
        "standard input. Columns: method, a score (or metric and value) and, if there are any, search, run (or seed), "
        "fold, split, dataset."
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

_MOST_DATASETS = 6
"""Of more datasets the terminal shows what each says, and no tables."""

_PANEL = "Columns"


def _column(name: str, text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(name, help=text, rich_help_panel=_PANEL, metavar="COLUMN")
    return option


Score = Annotated[str, _column("--score", "Column (or metric) that is compared, of several; A,B for several.")]
MethodOption = Annotated[
    str,
    _column("--method", "The methods; A+B for several columns, columns if each is one. Default: method, model, ..."),
]
DatasetOption = Annotated[str, _column("--dataset", "The datasets, likewise. Default: dataset, benchmark, task.")]
Run = Annotated[str, _column("--run", "What numbers independent runs; row if each row is one. Default: run, seed, ...")]
Search = Annotated[str, _column("--search", "The searches, whose runs count as one. Default: search, study.")]
Paired = Annotated[
    str, _column("--paired", "What all methods share: they are compared within it. Default: split, block, subject.")
]
Last = Annotated[str, _column("--last", "Take the last row of each run by this column, such as epoch.")]
BestOf = Annotated[str, _column("--best-of", "Take the best trial of each search by this column, a validation score.")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option("--where", help="Only rows with this value.", metavar="COLUMN=VALUE", rich_help_panel=_PANEL),
]
NumberOfRuns = Annotated[
    str,
    typer.Option(
        "--n",
        help="Runs behind each mean of a summary, such as 5, or 5-folds; or what n are: runs, folds.",
        metavar="N",
        rich_help_panel=_PANEL,
    ),
]
PlusMinus = Annotated[
    Literal["sd", "se"] | None,
    typer.Option("--plus-minus", help="What ± is: a deviation or a standard error.", rich_help_panel=_PANEL),
]
Compare = Annotated[
    str | None, typer.Option("--compare", help="Compare all pairs (all), each with the best, or with this method.")
]
Margin = Annotated[
    float | None,
    typer.Option(
        "--margin",
        min=0.0,
        help="Methods closer than this are equal: points, or with --scale times a ratio such as 1.05. Default: 0.5 "
        "points of percentages, none of other scores.",
    ),
]
ScaleOption = Annotated[
    Literal["fractions", "percent", "points", "times"] | None,
    typer.Option(
        "--scale",
        help="Default: fractions if all are within 0 and 1, else percent. points: neither. times: positive scores, "
        "compared by their ratios.",
    ),
]
Lower = Annotated[
    bool | None, typer.Option("--lower-is-better/--higher-is-better", help="Whether the score is an error.")
]
KeepAll = Annotated[
    bool, typer.Option("--keep-all", help="Count runs that lie far from the others of their method too.")
]
What = Annotated[
    Literal["results", "differences", "holds", "sentences"],
    typer.Option("--what", help="What is printed in the formats without room for all."),
]
To = Annotated[
    Path | None, typer.Option("--to", help="Write the page, its figures and the tables in every format here.")
]


def audit(
    file: ScoresFile,
    score: Score = "",
    method: MethodOption = "",
    dataset: DatasetOption = "",
    run: Run = "",
    search: Search = "",
    paired: Paired = "",
    last: Last = "",
    best_of: BestOf = "",
    where: WhereOption = None,
    n: NumberOfRuns = "",
    plus_minus: PlusMinus = None,
    compare: Compare = None,
    margin: Margin = None,
    scale: ScaleOption = None,
    lower_is_better: Lower = None,
    keep_all: KeepAll = False,
    assume_deviation: AssumedDeviation = None,
    output: Format = "terminal",
    what: What = "results",
    to: To = None,
) -> None:
    """Judge scores that were measured anywhere: which methods differ, what could have been seen, what does not hold.

    With a column of searches, methods are compared; without, the settings that the runs are of. Several datasets get an
    answer each, and a board; with one score of each they are the sample. The exit status is 0 whatever the verdict.
    """
    gc.set_threshold(100_000)  # Imports and tables make many objects and little garbage.
    from reproduce.outputs.audit import audit_file, write_audit
    from results.reading.scores_table import Reading

    columns: dict[str, Any] = {"method": method, "dataset": dataset, "score": score}
    repeats = {"run": run, "search": search, "paired": paired}
    rows = {"last": last, "best_of": best_of, "n": n, "where": tuple(map(_condition, where or ()))}
    scores = {"scale": scale, "lower_is_better": lower_is_better, "plus_minus": plus_minus}
    asked = {"compare": compare, "margin": margin, "keep_all": keep_all or None}
    changes = {name: value for name, value in asked.items() if value is not None}
    made = audit_file(file, Reading(**(columns | repeats | rows | scores)), assume_deviation, **changes)
    if to is not None:
        for line in _said_first(made):
            say(line)
        for page in write_audit(made, to):
            say(str(page))
    else:
        _print(made, output, what)


def _said_first(made: Mapping[str, AuditedFile]) -> list[str]:
    families = next(iter(made.values())).families
    return [*filter(None, [families]), *(one.found.read for one in made.values())]


def _print(made: Mapping[str, AuditedFile], output: str, what: str) -> None:
    from reproduce.outputs.audit import as_json

    if output == "json":
        sys.stdout.write(as_json(made))
        return
    if output == "terminal" and what != "sentences" and (families := next(iter(made.values())).families):
        say(families)
    for number, one in enumerate(made.values()):
        if number and output == "terminal":
            say("")
        _print_score(one.found, output, what)


def _print_score(found: Audit, output: str, what: str) -> None:
    from reports.sentences import sentences
    from reproduce.outputs.audit import board_of

    if what == "sentences":
        for one in found.answers.values():
            sys.stdout.writelines(f"{line}\n" for line in sentences(one, latex=output == "latex"))
    elif output == "terminal":
        say(found.read)
        _show_each(found)
        if (board := board_of(found)) is not None:
            from reports.board.board_table import pairs_table, ranking_table

            for drawn in (ranking_table(board), pairs_table(board, decided=True)):
                print_table(drawn, output)
    else:
        from reproduce.outputs.tables import OF_SCORES

        for one in found.answers.values():
            print_table(OF_SCORES[what](one), output)


def _condition(text: str) -> tuple[str, str]:
    column, sign, value = text.partition("=")
    if not sign or not column.strip():
        raise InputError(f"--where {text}: write COLUMN=VALUE, such as epoch=29")
    return column.strip(), value.strip()


def _show_each(found: Audit) -> None:
    from reports.headline import headline
    from results.answer.caveats import unit_sentence

    if (count := len(found.answers)) <= _MOST_DATASETS:
        for title, one in found.answers.items():
            _show(title if count > 1 else "", one)
        return
    for unit in filter(None, dict.fromkeys(map(unit_sentence, found.answers.values()))):
        say(unit)
    for title, one in found.answers.items():
        say(f"{title}: {headline(one)}")
    say(f"The tables of {counted(count, 'dataset')}: --to FOLDER; of one: --where.")


def _show(title: str, found: Answer) -> None:
    from reports.headline import comparison_lines, headline
    from reports.tables.differences import differences
    from reports.tables.holds import what_stands
    from reports.tables.result_table import table_of
    from reports.tables.table import with_notes
    from results.answer.caveats import unit_sentence

    unit = unit_sentence(found)
    for line in filter(None, (f"\n{title}" if title else "", unit, headline(found))):
        say(line)
    for line in comparison_lines(found):
        say(f"- {line}")
    if stands := what_stands(found):
        say(stands)
    table = table_of(found)
    print_table(replace(table, notes=tuple(note for note in table.notes if note not in unit)), "terminal")
    if len(found.pairs) > _MOST_PAIRS:
        say(f"The table of {counted(len(found.pairs), 'pair')}: --what differences --format csv, or --to FOLDER.")
    elif found.pairs:
        print_table(with_notes(differences(found), "none"), "terminal")
