"""The table of a board: a row for each pair of methods, with its difference on each dataset."""

from collections.abc import Sequence

from reports.board.board_words import (
    agreement_words,
    ahead_words,
    commits,
    dataset_title,
    doubts,
    origin_words,
    reading,
    row_origins,
    sorted_pairs,
    unit_words,
)
from reports.board.boards import Board, BoardDataset
from reports.board.sources import Source
from reports.tables.table import POINTS, Cell, Column, NumberFormat, Row, Sheet, Table, Value
from results.statistics.datasets import FEWEST_FOR_A_MEAN, MeanDifference, PairOverDatasets

_ENDS = NumberFormat(digits=2, scale=100, signed=True, ends="to")
_TIMES = NumberFormat(digits=2, signed=True, ends="to")

_OF_PAIR = ("ahead_a", "ahead_b", "verdict")
_OF_MEAN = ("value", "low", "high", "prediction_low", "prediction_high")
_HEADER = (
    *("a", "b", "dataset", "metric", "variant", "protocol", "trunk", "embedding_size", "unit"),
    *("difference", "low", "high", "error", "degrees", "untested"),
    *(f"{part}_{side}" for side in "ab" for part in ("experiment", "from", "commits")),
    *(*_OF_PAIR, *(f"mean_{name}" for name in _OF_MEAN), *(f"relative_{name}" for name in _OF_MEAN)),
)


def board_table(board: Board, compare: str = "all") -> Table:
    """Build the table of a board.

    Args:
        board: The board.
        compare: `all` pairs, the method with the `best` mean rank with each other one, or the method of this name.
    """
    pairs = sorted_pairs(board.pairs(compare))
    return Table(
        title=f"{len(board.datasets)} datasets: which differences hold on all?",
        caption=reading(board, pairs, compare),
        columns=_columns(board),
        rows=tuple(Row.single(pair_title(board, pair), _cells(board, pair)) for pair in pairs),
        sheet=Sheet(_HEADER, tuple(_values(board, pair, place) for pair in pairs for place in range(len(pair.on)))),
        first="Methods",
        notes=tuple(agreement_words(board)),
        remarks=(*unit_words(board), *doubts(board), *origin_words(board)),
    )


def pair_title(board: Board, pair: PairOverDatasets) -> str:
    """Name the difference of a pair: `A − B`."""
    return f"{board.methods[pair.a]} − {board.methods[pair.b]}"


def _has_means(board: Board) -> bool:
    return len(board.datasets) >= FEWEST_FOR_A_MEAN


def _columns(board: Board) -> tuple[Column, ...]:
    datasets = [Column(dataset_title(board, one)) for one in board.datasets]
    means = [Column("mean"), Column("predicted")] if _has_means(board) else []
    if _has_means(board) and None not in board.units:
        means += [Column("mean, units"), Column("predicted, units")]
    words = [Column(name, numeric=False) for name in ("ahead", "verdict", "origin")]
    return (*datasets, *means, *words)


def _cells(board: Board, pair: PairOverDatasets) -> list[Cell]:
    cells = [Cell(one.difference, one.half_width, form=POINTS, kind="measured", note=one.untested) for one in pair.on]
    if _has_means(board):
        cells += mean_cells(pair.mean, _ENDS)
        if None not in board.units:
            cells += mean_cells(pair.relative, _TIMES)
    return [*cells, Cell(ahead_words(pair, board)), Cell(pair.verdict), Cell(row_origins(board, pair))]


def mean_cells(mean: MeanDifference | None, form: NumberFormat) -> list[Cell]:
    """Make the cells of a mean with its interval, and of a prediction."""
    if mean is None:
        return [Cell(), Cell()]
    return [
        Cell(mean.mean, interval=_around(mean.mean, mean.half_width), form=form, kind="measured"),
        Cell(interval=_around(mean.mean, mean.prediction), form=form, kind="measured"),
    ]


def _around(mean: float, half_width: float) -> tuple[float, float]:
    return mean - half_width, mean + half_width


def _values(board: Board, pair: PairOverDatasets, place: int) -> tuple[Value, ...]:
    """The values of a pair on one dataset, and over all."""
    dataset, one = board.datasets[place], pair.on[place]
    experiment = dataset.sources[0].measured.summary.experiment
    half = one.half_width
    ends = (None, None) if half is None else _around(one.difference, half)
    conditions = dataset.sources[0].conditions
    return (
        *(pair.a, pair.b, dataset.name, board.score.metric, board.score.embeddings),
        *(experiment.protocol, conditions["trunk"], experiment.embedding_size, dataset.unit),
        *(one.difference, *ends, one.error, one.degrees, one.untested or None),
        *_origin(dataset, pair.a),
        *_origin(dataset, pair.b),
        *(*pair.ahead, pair.verdict, *_numbers(pair.mean), *_numbers(pair.relative)),
    )


def _origin(dataset: BoardDataset, method: str) -> Sequence[Value]:
    source: Source = dataset.origin[method]
    return source.name, source.place, " ".join(commits(source, method))


def _numbers(mean: MeanDifference | None) -> Sequence[Value]:
    if mean is None:
        return (None,) * len(_OF_MEAN)
    return mean.mean, *_around(mean.mean, mean.half_width), *_around(mean.mean, mean.prediction)
