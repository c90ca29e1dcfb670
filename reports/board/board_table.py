"""The tables and the page of a board: the leaders, what is the same everywhere, then each dataset."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reports.board.boards import Board, BoardDataset
from reports.board.sources import Source
from reports.tables.formats import to_html
from reports.tables.table import PERCENT, POINTS, Cell, Column, Row, Sheet, Table, Value, measured_cell
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.across_datasets import FEWEST_FOR_A_MEAN, BoardVerdict, OverDatasets, PairOverDatasets
from results.statistics.compare import ALPHA
from results.statistics.deviations import WIDENING
from results.statistics.finding import origin_findings
from results.statistics.intervals import Interval
from results.wording import counted, joined, listed

ORDER: tuple[BoardVerdict, ...] = ("consistent", "same on both", "depends on the dataset", "cannot tell")
"""The verdicts, answers first."""

_HEADER = (
    *("a", "b", "dataset", "metric", "embeddings", "difference", "low", "high", "degrees", "untested"),
    *("experiment_a", "from_a", "commits_a", "experiment_b", "from_b", "commits_b"),
    *("verdict", "mean", "mean_low", "mean_high", "predicted_low", "predicted_high"),
)


def sorted_pairs(pairs: Sequence[PairOverDatasets]) -> list[PairOverDatasets]:
    """Sort pairs, answers first; pairs with the same verdict stay in their order."""
    return sorted(pairs, key=lambda pair: ORDER.index(pair.verdict))


def board_table(board: Board, compare: str = "all") -> Table:
    """Build the table of a board: a row for each pair of methods, with its difference on each dataset.

    Args:
        board: The board.
        compare: `all` pairs, the method with the `best` mean rank with each other one, or the method of this name.
    """
    pairs = sorted_pairs(board.pairs(compare))
    means = [Column("mean"), Column("predicted")] if len(board.datasets) >= FEWEST_FOR_A_MEAN else []
    return Table(
        title=f"{len(board.datasets)} datasets: which differences hold on all?",
        caption=_reading(board, pairs, compare),
        columns=(*(Column(_heading(board, one)) for one in board.datasets), *means, Column("verdict", numeric=False)),
        rows=tuple(Row(f"{board.methods[pair.a]} − {board.methods[pair.b]}", _cells(board, pair)) for pair in pairs),
        sheet=Sheet(_HEADER, tuple(line for pair in pairs for line in _values(board, pair))),
        first="Methods",
        notes=(*_leaders(board), _headline(board, pairs), *_agreement(board)),
        remarks=(*_limits(board), *_origins(board)),
    )


def means_table(board: Board) -> Table:
    """Build the table of the methods' means on each dataset, the best mean rank first."""
    rows = []
    for key in board.by_rank:
        cells = []
        for dataset in board.datasets:
            own, highest = dataset.values[key], dataset.comparison.highest
            pair = None if key == highest else dataset.comparison.pair(highest, key)
            tied = pair is not None and pair.untested is None and pair.better is None
            interval = Interval(own.mean, None, len(own.units))
            cells.append(measured_cell(interval, PERCENT, "best" if pair is None else "tied" if tied else ""))
        rows.append(Row(board.methods[key], cells, key))
    columns = tuple(Column(_heading(board, one)) for one in board.datasets)
    caption = f"Means of {_score(board)} in percent, the best mean rank first."
    return Table("The methods on each dataset", caption, columns, tuple(rows))


def board_page(board: Board, compare: str = "all", made: str = "") -> str:
    """Draw the page of a board as HTML. `made` is the footer's sentence on when and by what it was drawn."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    names = joined([one.title for one in board.datasets])
    title = f"{counted(len(board.methods), 'method')} on {len(board.datasets)} datasets: {names}"
    tables = [to_html(means_table(board)), to_html(board_table(board, compare))]
    return templates.get_template("board.html").render(title=title, tables=tables, made=made)


def _score(board: Board) -> str:
    return f"{board.score.embeddings} {HEADLINE_METRICS[board.score.metric]}"


def _heading(board: Board, dataset: BoardDataset) -> str:
    """Name a dataset, with the conditions in which the datasets differ."""
    conditions = dataset.sources[0].conditions
    return joined([dataset.title, *(conditions[key] for key in board.differing)])


def _around(mean: float, half_width: float) -> tuple[float, float]:
    return mean - half_width, mean + half_width


def _cells(board: Board, pair: PairOverDatasets) -> list[Cell]:
    cells = [
        Cell(one.difference, one.half_width, form=POINTS, kind="measured", note=one.untested or "") for one in pair.on
    ]
    if len(board.datasets) >= FEWEST_FOR_A_MEAN:
        cells += _mean_cells(pair.mean)
    return [*cells, Cell(pair.verdict)]


def _mean_cells(mean: OverDatasets | None) -> list[Cell]:
    if mean is None:
        return [Cell(), Cell()]
    return [Cell(mean.mean, width, form=POINTS, kind="measured") for width in (mean.half_width, mean.prediction)]


def _values(board: Board, pair: PairOverDatasets) -> Iterator[tuple[Value, ...]]:
    """The values of a pair on each dataset, and over all."""
    together: tuple[Value, ...] = (None,) * 5
    if (mean := pair.mean) is not None:
        together = (mean.mean, *_around(mean.mean, mean.half_width), *_around(mean.mean, mean.prediction))
    for dataset, one in zip(board.datasets, pair.on, strict=True):
        origins: list[Value] = []
        for method in (pair.a, pair.b):
            source = dataset.origin[method]
            origins += [source.name, source.place, " ".join(_commits(source, method))]
        yield (
            *(pair.a, pair.b, dataset.name, board.score.metric, board.score.embeddings),
            *(one.difference, one.low, one.high, one.degrees, one.untested, *origins, pair.verdict, *together),
        )


def _leaders(board: Board) -> Iterator[str]:
    """Name the method with the best mean rank, and who leads on each dataset."""
    yield f"{board.methods[board.by_rank[0]]} has the best mean rank over the datasets."
    for dataset in board.datasets:
        comparison = dataset.comparison
        pairs = [pair for key in comparison.methods if (pair := comparison.pair(comparison.highest, key))]
        tied = sum(pair.better is None for pair in pairs)
        yield (
            f"On {dataset.title}, {board.methods[comparison.highest]} is highest; {counted(tied, 'other')} of "
            f"{len(pairs)} are not shown to be worse."
        )


def _headline(board: Board, pairs: Sequence[PairOverDatasets]) -> str:
    """Count the verdicts in a sentence."""
    counts = Counter(pair.verdict for pair in pairs)
    said = [f"{counts[verdict]:,} {verdict}" for verdict in ORDER if counts[verdict]]
    many = f" Each verdict is for one comparison alone; of {len(pairs):,}, some can be wrong by chance."
    return f"Of {counted(len(pairs), 'comparison')}: {listed(said)}.{many if len(pairs) * ALPHA > 1 else ''}"


def _agreement(board: Board) -> Iterator[str]:
    """Give the rank correlations, and what they mean for a reader with another dataset."""
    found, titles = board.agreements, {one.name: one.title for one in board.datasets}
    named = [f"{titles[one.first]} and {titles[one.second]} {one.correlation:.2f}" for one in found]
    yield f"Rank correlation of the {len(board.methods)} methods: {'; '.join(named)}."
    share = sum(one.same_order for one in found) / len(found)
    yield (
        f"Of two methods, the one ahead on one of these datasets is also ahead on another in {100 * share:.0f} % of "
        f"cases. A coin has 50 %; random orders agree as much in {100 * board.agreement_by_chance:.0f} % of draws."
    )


def _reading(board: Board, pairs: Sequence[PairOverDatasets], compare: str) -> str:
    """Explain the numbers of a board and its verdicts."""
    methods = counted(len(board.methods), "method")
    asked = f"all pairs of {methods}" if compare == "all" else f"one method with each other one of {methods}"
    common = joined([f"{key} {text}" for key, text in board.conditions.items() if key != "score"])
    mixed = ""
    if board.differing:
        named = "; ".join(_heading(board, one) for one in board.datasets)
        mixed = (
            f" Mixed on request: the datasets differ in {listed(board.differing)} too ({named}). What depends on the "
            "dataset here can depend on that."
        )
    return (
        f"Differences of {_score(board)} in percentage points, of {asked}, with 95 % intervals. In common: {common}."
        f"{mixed} {_OVER_ALL if len(board.datasets) >= FEWEST_FOR_A_MEAN else _OVER_TWO} Depends on the dataset: two "
        "intervals lie on opposite sides of zero. Intervals and verdicts hold for one comparison alone and are not "
        f"corrected for the {len(pairs):,} here."
    )


_OVER_ALL = (
    "Consistent: all intervals and that of the mean lie on one side of zero. Mean: all datasets count equally. "
    "Predicted: where a difference newly measured on another such dataset, with the same budget, lies in 95 % of cases."
)
_OVER_TWO = (
    "Two datasets show directions only; a mean of two says nothing. Same on both: both intervals lie on the same side "
    "of zero."
)


def _limits(board: Board) -> Iterator[str]:
    """Say what the intervals of each dataset are made from, and which methods are missing."""
    for one in board.datasets:
        yield f"On {one.title}, {_unit_words(one)}"
        findings = origin_findings(*(source.measured for source in one.sources))
        yield from (f"On {one.title}: {finding.sentences}" for finding in findings)
    if board.left_out:
        left_out = joined(list(dict.fromkeys(board.left_out.values())))
        yield f"Not on all datasets, or with other code of its own on some, so not on the board: {left_out}."


def _unit_words(dataset: BoardDataset) -> str:
    if dataset.unit == "search":
        return "the intervals are over complete searches."
    if dataset.unit == "run":
        return "nothing was searched; the intervals are over runs of the given settings."
    if dataset.assumed is None:
        return "one search of each method, and how far two differ is not known, so there are no intervals."
    return (
        f"one search of each method; the intervals take {WIDENING:g} times the {100 * dataset.assumed.deviation:.2f} "
        f"points by which searches differ in {dataset.assumed.record}."
    )


def _origins(board: Board) -> Iterator[str]:
    """Name experiment, file or store, commits, budget and methods of each source."""
    for dataset in board.datasets:
        for source in dataset.sources:
            own = [title for key, title in board.methods.items() if dataset.origin[key] is source]
            methods = counted(len(own), "method") if len(own) == len(board.methods) else joined(own)
            found = [commit[:12] for commit in _commits(source)]
            commits = f"commit {listed(found)}" if len(found) < 3 else f"{len(found)} commits"
            yield f"{dataset.title}: {source.name} from {source.place}, {commits}, {source.budget}: {methods}."


def _commits(source: Source, method: str | None = None) -> list[str]:
    """Return the commits of an experiment's runs, or of those of a method, in the order of the runs."""
    of = [record for record in source.measured.records if method in (None, record.method)]
    return list(dict.fromkeys(record.provenance.commit for record in of))
