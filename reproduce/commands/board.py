"""`board`: what several datasets say together about the differences between methods."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproduce.commands.options import STORE, Artifacts
from reproduce.commands.table import Format
from reproduce.commands.terminal import check_format, output_console, print_table, say
from reproduce.errors import InputError

if TYPE_CHECKING:
    from reports.board.boards import Board

Experiments = Annotated[
    list[str] | None,
    typer.Argument(
        help="Names or identities of experiments in the stores, or files that `table NAME --format json` wrote. "
        "Default: the latest finished experiment of each dataset."
    ),
]
Stores = Annotated[
    list[str],
    typer.Option(
        "--store",
        help="A store, or a file that `store export` wrote; repeat the option for several. SQLAlchemy URLs too.",
    ),
]
Compare = Annotated[
    str,
    typer.Option(
        "--compare", help="all pairs, the method with the best mean rank with each other one (best), or NAME."
    ),
]
Mixed = Annotated[
    bool,
    typer.Option("--mixed", help="Put unlike protocols, trunks and embedding sizes on one board, which names them."),
]
Folder = Annotated[
    Path | None, typer.Option("--to", help="Write the page and the table in every format into this folder.")
]


def board(
    name: Experiments = None,
    compare: Compare = "all",
    output: Format = "terminal",
    to: Folder = None,
    mixed: Mixed = False,
    store: Stores = [STORE],  # noqa: B006  typer copies it
    artifacts: Artifacts = None,
) -> None:
    """Draw what several datasets say together: each difference on each dataset, and whether it is the same on all.

    Experiments under unlike conditions stand on separate boards. Experiments of one dataset that differ in their
    methods alone, such as those of two labs, are joined.
    """
    from reports.board.board_table import board_table
    from reports.board.boards import boards_of
    from reproduce.outputs.boards import latest_sources, named_sources, opened_places

    check_format(output)
    with opened_places(store, artifacts) as stores:
        sources = named_sources(stores, name) if name else latest_sources(stores)
        found = boards_of(sources, mixed=mixed)
        for line in found.left_out:
            typer.echo(line, err=True)
        if not found.boards:
            raise InputError(
                "no two datasets can stand on one board; run an experiment on a second one, name more with --store, or "
                "put unlike ones together with --mixed"
            )
        for one in found.boards:
            _check_compare(one, compare)
        for number, one in enumerate(found.boards, start=1):
            if to is None:
                print_table(board_table(one, compare), output)
            else:
                _write(one, compare, to / f"board_{number}" if len(found.boards) > 1 else to)


def _check_compare(board: "Board", compare: str) -> None:
    if compare not in ("all", "best", *board.methods):
        methods = ", ".join(board.methods)
        raise InputError(f"--compare {compare}: is not on all datasets; use all, best, or one of {methods}")


def _write(board: "Board", compare: str, folder: Path) -> None:
    from reproduce.outputs.boards import write_board
    from reproduce.outputs.page import drawn_line

    page, *files = write_board(board, compare, folder, drawn_line())
    datasets = ", ".join(one.title for one in board.datasets)
    say(output_console(), f"{datasets}: {page}; beside it {', '.join(file.name for file in files)}")
