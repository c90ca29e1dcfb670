"""The page of a board: every difference with its intervals in one row, answers first."""

from collections.abc import Sequence
from dataclasses import dataclass

from reports.board.board_table import board_table, mean_cells, pair_title
from reports.board.board_words import (
    ORDER,
    agreement_words,
    ahead_words,
    asked_words,
    board_headline,
    commits,
    doubts,
    mixed_words,
    origin_words,
    reading,
    row_origins,
    unit_words,
)
from reports.board.boards import Board, BoardDataset
from reports.page.content import Download
from reports.page.render import render_template
from reports.tables.formats import WRITERS
from reports.tables.table import Cell, NumberFormat, interval_text, number_text, value_text
from reports.wording import capitalized, counted, joined
from results.statistics.datasets import FEWEST_FOR_A_MEAN, DatasetDifference, MeanDifference, PairOverDatasets
from results.statistics.method_comparison import ALPHA

_NUMBER = NumberFormat(digits=2, scale=100, signed=True, ends="to")
_TIMES = NumberFormat(digits=2, signed=True, ends="to")
_SIDES = {1: "above", -1: "below", 0: ""}


@dataclass(frozen=True)
class Head:
    """The head of a column with an axis from `-end` to `end`, in points."""

    title: str
    detail: str
    end: str


@dataclass(frozen=True)
class DrawnDifference:
    """A difference with its interval.

    Attributes:
        places: The difference, the low and the high end of its interval, in percent of the axis from its left end.
        side: `above` or `below` if the interval lies above or below zero.
    """

    text: str
    spread: str
    detail: str
    places: tuple[float, float, float]
    side: str


@dataclass(frozen=True)
class BoardRow:
    """A pair of methods; `texts` are in the order of the page's columns of text."""

    title: str
    cells: tuple[DrawnDifference, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class BoardGroup:
    """The rows with one verdict."""

    title: str
    rows: tuple[BoardRow, ...]
    folded: bool


@dataclass(frozen=True)
class BoardContent:
    """All that the page of a board shows, as plain texts."""

    title: str
    headline: str
    limits: str
    agreement: tuple[str, ...]
    asked: str
    heads: tuple[Head, ...]
    texts: tuple[str, ...]
    groups: tuple[BoardGroup, ...]
    caption: str
    downloads: tuple[Download, ...]
    doubts: tuple[str, ...]
    origins: tuple[str, ...]
    made: str


def board_page(board: Board, compare: str = "all", made: str = "") -> str:
    """Draw the page of a board as HTML. `made` is the footer's sentence on when and by what it was drawn."""
    return render_template("board.html", page=board_content(board, compare, made))


def board_content(board: Board, compare: str, made: str) -> BoardContent:
    """Build the content of a board's page."""
    pairs, table = board.pairs(compare), board_table(board, compare)
    ends = [_axis_end([pair.on[place] for pair in pairs]) for place in range(len(board.datasets))]
    end_of_mean = max((abs(pair.mean.mean) + pair.mean.half_width for pair in pairs if pair.mean), default=0.01)
    several = len(board.datasets) >= FEWEST_FOR_A_MEAN
    relative = several and None not in board.units
    heads = [_head(board, one, end) for one, end in zip(board.datasets, ends, strict=True)]
    if several:
        ends.append(end_of_mean)
        heads.append(Head("mean", "", f"{100 * end_of_mean:.1f}"))
    rows = {id(pair): _row(board, pair, ends, relative=relative) for pair in pairs}
    groups = {verdict: tuple(rows[id(pair)] for pair in pairs if pair.verdict == verdict) for verdict in ORDER}
    shown = [verdict for verdict in ORDER if groups[verdict]]
    return BoardContent(
        title=f"{counted(len(board.methods), 'method')} on {len(board.datasets)} datasets: "
        f"{joined([one.name for one in board.datasets])}",
        headline=board_headline(board, pairs),
        limits=" ".join(_limits(board, len(pairs))),
        agreement=tuple(agreement_words(board)),
        asked=f"Compared: {asked_words(board, compare)}",
        heads=tuple(heads),
        texts=("ahead", *(["predicted"] if several else []), *(["mean in units"] if relative else []), "origin"),
        groups=tuple(
            BoardGroup(capitalized(verdict), groups[verdict], verdict == "cannot tell" and len(shown) > 1)
            for verdict in shown
        ),
        caption=reading(board, pairs, compare),
        downloads=(
            Download("board.csv", "text/csv", WRITERS["csv"](table)),
            Download("board.md", "text/markdown", WRITERS["markdown"](table)),
            Download("board.tex", "application/x-tex", WRITERS["latex"](table)),
        ),
        doubts=(*unit_words(board), *doubts(board)),
        origins=tuple(origin_words(board)),
        made=made,
    )


def _limits(board: Board, comparisons: int) -> Sequence[str]:
    """What a reader must know first."""
    if len(board.datasets) < FEWEST_FOR_A_MEAN:
        count = "Two datasets show directions only: nothing here says what a third would show."
    else:
        count = f"{len(board.datasets)} datasets are few: see what is predicted for another one, not the mean alone."
    many = [f"Each verdict is for one comparison alone; of {comparisons:,}, some can be wrong by chance."]
    return [*mixed_words(board), count, *(many if comparisons * ALPHA > 1 else [])]


def _head(board: Board, dataset: BoardDataset, end: float) -> Head:
    conditions = dataset.sources[0].conditions
    return Head(dataset.name, joined([conditions[key] for key in board.differing]), f"{100 * end:.1f}")


def _axis_end(differences: Sequence[DatasetDifference]) -> float:
    return max((abs(one.difference) + (one.half_width or 0) for one in differences), default=0) or 0.01


def _row(board: Board, pair: PairOverDatasets, ends: Sequence[float], *, relative: bool) -> BoardRow:
    cells = [
        _drawn(one, end, _detail(board, pair, dataset, one))
        for one, end, dataset in zip(pair.on, ends, board.datasets, strict=False)
    ]
    texts = [ahead_words(pair, board)]
    if len(board.datasets) >= FEWEST_FOR_A_MEAN:
        cells.append(_drawn_mean(pair.mean, ends[-1]))
        texts.append(value_text(mean_cells(pair.mean, _NUMBER)[1]))
        if relative:
            mean = mean_cells(pair.relative, _TIMES)[0]
            texts.append(f"{value_text(mean)} {interval_text(mean)}")
    return BoardRow(pair_title(board, pair), tuple(cells), (*texts, row_origins(board, pair)))


def _drawn(one: DatasetDifference, end: float, detail: str) -> DrawnDifference:
    cell, half = Cell(one.difference, one.half_width, form=_NUMBER), one.half_width or 0.0
    spread = interval_text(cell) or one.untested
    places = _places(one.difference, half, end)
    return DrawnDifference(value_text(cell), spread, detail, places, _SIDES[one.side])


def _drawn_mean(mean: MeanDifference | None, end: float) -> DrawnDifference:
    if mean is None:
        return DrawnDifference("none", "", "A dataset has no test of this pair.", (50, 50, 50), "")
    half = mean.half_width
    side = 0 if abs(mean.mean) <= half else 1 if mean.mean > 0 else -1
    ends = f"95 % interval of the mean: {_ends(mean.mean, half)}\npredicted on another dataset: "
    text, detail = number_text(mean.mean, _NUMBER), ends + _ends(mean.mean, mean.prediction)
    return DrawnDifference(text, f"± {100 * half:.2f}", detail, _places(mean.mean, half, end), _SIDES[side])


def _places(value: float, half_width: float, end: float) -> tuple[float, float, float]:
    def place(number: float) -> float:
        return round(min(max(50 * (1 + number / end), 0.0), 100.0), 2)

    return place(value), place(value - half_width), place(value + half_width)


def _detail(board: Board, pair: PairOverDatasets, dataset: BoardDataset, one: DatasetDifference) -> str:
    lines = [f"{pair_title(board, pair)} on {dataset.name}, points"]
    lines.append(f"no interval: {one.untested}" if one.half_width is None else _ends(one.difference, one.half_width))
    for key in (pair.a, pair.b):
        source = dataset.origin[key]
        commit = joined([text[:12] for text in commits(source, key)])
        lines.append(f"{board.methods[key]}: {source.name} from {source.place}, commit {commit}")
    return "\n".join(lines)


def _ends(mean: float, half_width: float) -> str:
    return value_text(Cell(interval=(mean - half_width, mean + half_width), form=_NUMBER))
