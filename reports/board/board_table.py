"""The tables, the figure and the page of a board: the ranking of the methods, then what is the same on all datasets."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reports.board.board_findings import of_agreement, of_failed, of_units
from reports.board.boards import Board, BoardDataset
from reports.figures.score_figures import Places, rank_plot
from reports.figures.style import files_of
from reports.page.figures import PageFigure
from reports.tables.formats import templates, to_html
from reports.tables.table import Cell, Column, Row, Table, measured_cell
from results.answer.across_datasets import FEWEST_FOR_A_MEAN, BoardVerdict, PairOverDatasets, side_of, surviving
from results.answer.answers import Answer
from results.answer.intervals import Interval
from results.answer.values import Pair
from results.numbers import NumberFormat
from results.wording import capitalized, counted, few, joined, listed, place_words, some, verb

ORDER: tuple[BoardVerdict, ...] = ("consistent", "hint: same on both", "depends on the dataset", "cannot tell")
"""The verdicts, answers first."""

_NAMED_CONDITIONS = ("protocol", "trunk.name", "trunk.weights", "trunk.frozen", "embedding_size")
"""Conditions that the caption names; the others are equal too."""


MOST_DATASETS = 4
"""Of more datasets the tables count what each shows; their files have the numbers."""


def ranking_table(board: Board, *, with_headline: bool = True) -> Table:
    """Build the ranking: mean and possible ranks on each dataset, and over all, the best mean rank first.

    Of many datasets it says on how many a method can be the best. `with_headline` makes the headline the first note.
    """
    count, on_all = len(board.methods), board.claims_on_all()
    score = board.score_name.rpartition(" ")[2]
    columns = [Column(name, group=one.title) for one in board.datasets for name in (score, "rank")]
    rows = []
    for key, mean_rank in board.mean_ranks.items():
        cells = []
        for dataset in board.datasets:
            own = dataset.answer.values[key]
            cells += [measured_cell(Interval(own.mean, None, own.n), dataset.answer.scaling.score_format(more=True))]
            cells += [Cell(place_words(dataset.answer.rank_intervals.get(key, (1, count))))]
        worse = sum(loser == key for _, loser in on_all)
        better = sum(winner == key for winner, _ in on_all)
        cells += [Cell(mean_rank, form=NumberFormat(digits=1)), Cell(place_words((1 + worse, count - better)))]
        rows.append(Row(board.methods[key], cells, key))
    titles = some([one.title for one in board.datasets], 6)
    over = (Column("mean rank"), Column("rank on all"))
    common = joined([f"{key} {board.conditions[key]}" for key in _NAMED_CONDITIONS if key in board.conditions])
    question = board.datasets[0].answer.question
    unit = " in percent" if question.scaling.unit else ""
    lower = ", lower is better" if question.lower_is_better else ""
    full = Table(
        title=f"{counted(count, 'method')} on {counted(len(board.datasets), 'dataset')}: {titles}",
        caption=f"{capitalized(board.score_name)}{unit}{lower}, the best mean rank first. Rank: "
        "the places that a method can have by the dataset's comparison, for all methods together at 95 %. On all: by "
        f"what every dataset shows.{f' In common: {common}.' if common else ''}",
        columns=(*columns, *over),
        rows=tuple(rows),
        notes=(*([headline(board)] if with_headline else []), *(one.sentences for one in of_agreement(board))),
    )
    if len(board.datasets) <= MOST_DATASETS:
        return full
    leaders = Counter(key for one in board.datasets for key in _leaders(board, one))
    of_row = [[Cell(leaders[row.key])] for row in full.rows]
    return _short(full, [Column("can be the best on")], of_row, [column.title for column in over])


def _short(full: Table, columns: Sequence[Column], cells: Sequence[Sequence[Cell]], kept: Sequence[str]) -> Table:
    """A table of new columns and of those of a full one that are kept, by title; its files have the full one."""
    rest = full.with_columns(kept)
    rows = tuple(replace(row, cells=[*own, *row.cells]) for row, own in zip(rest.rows, cells, strict=True))
    return replace(rest, columns=(*columns, *rest.columns), rows=rows)


def _leaders(board: Board, dataset: BoardDataset) -> list[str]:
    """The methods that can be the best on a dataset: none is shown to be better."""
    worse = {loser for _, loser in dataset.answer.claims}
    return [key for key in board.methods if key not in worse]


def headline(board: Board) -> str:
    """Name the leaders: the methods that can be the best on each dataset, and the best mean rank."""
    if len(board.datasets) <= MOST_DATASETS:
        parts = [f"on {one.title} {_leaders_words(board, one)} can be the best" for one in board.datasets]
        return f"{_best_rank(board)}; {'; '.join(parts)}."
    first = board.best[0]
    count = sum(first in _leaders(board, one) for one in board.datasets)
    of = f"{count} of the {counted(len(board.datasets), 'dataset')}"
    return f"{_best_rank(board)}; {board.methods[first]} can be the best on {of}."


def _best_rank(board: Board) -> str:
    best, rank, count = [board.methods[key] for key in board.best], min(board.mean_ranks.values()), len(board.methods)
    if len(best) == count:
        return f"The {counted(count, 'method')} {verb(count, 'are')} tied: all have the mean rank {rank:.1f}"
    names = few(best, f"of {counted(count, 'method')}")
    return f"{names} {'has' if len(best) == 1 else 'share'} the best mean rank ({rank:.1f})"


def _leaders_words(board: Board, dataset: BoardDataset) -> str:
    leaders, methods = [board.methods[key] for key in _leaders(board, dataset)], counted(len(board.methods), "method")
    return f"any of the {methods}" if len(leaders) == len(board.methods) else few(leaders, f"of {methods}")


def pairs_table(board: Board, compare: str = "all", *, decided: bool = False) -> Table:
    """Build the table of pairs: the difference on each dataset, answers first. `decided` leaves out "cannot tell".

    `compare` asks for `all` pairs, for the method with the `best` mean rank with each other one, or for this method's.
    """
    found = board.pairs(compare)
    pairs = sorted(zip(found, surviving(found), strict=True), key=lambda one: ORDER.index(one[0].verdict))
    means = [Column("mean"), Column("predicted")] if len(board.datasets) >= FEWEST_FOR_A_MEAN else []
    verdict = Column("verdict", numeric=False)
    shown = [one for one in pairs if not decided or one[0].verdict != "cannot tell"]
    scaling = board.datasets[0].answer.scaling
    full = Table(
        title="Which differences hold on all datasets?",
        caption=f"Differences of {board.score_name} {scaling.gaps_in}, with 95 % intervals. "
        f"{_OVER_ALL if means else _OVER_TWO} Intervals and verdicts are for one row alone. * survives Holm's "
        f"correction over the {counted(len(pairs), 'row')}.",
        columns=(*(Column(one.title) for one in board.datasets), *means, verdict),
        rows=tuple(
            Row(
                scaling.of_two(board.methods[pair.a], board.methods[pair.b]),
                _cells(board, pair),
                sign="*" if survives else "",
            )
            for pair, survives in shown
        ),
        first="Methods",
        notes=(_counts(pairs), *(one.sentences for one in of_failed(board))),
        remarks=(*(one.sentences for one in of_units(board)), *_origins(board)),
    )
    if len(board.datasets) <= MOST_DATASETS:
        return full
    counts = [Column("datasets above"), Column("below"), Column("open")]
    sides = [Counter(map(side_of, pair.on)) for pair, _ in shown]
    of_row = [[Cell(of[side]) for side in (1, -1, 0)] for of in sides]
    return _short(full, counts, of_row, [column.title for column in (*means, verdict)])


def places_of(answer: Answer, methods: Mapping[str, str]) -> dict[str, Places]:
    """Return the places that methods, given as keys with titles, can have among them, and those of their means."""
    by_mean = sorted(methods, key=lambda key: -answer.question.sign * answer.values[key].mean)
    known = {key: answer.rank_intervals.get(key, (1, len(by_mean))) for key in methods}
    return {title: Places(known[key][0], 1 + by_mean.index(key), known[key][1]) for key, title in methods.items()}


def ranks_figure(board: Board) -> PageFigure | None:
    """Draw the places that each method can have on each dataset; None for more datasets than a page is wide."""
    if len(board.datasets) > MOST_DATASETS:
        return None
    methods = {key: board.methods[key] for key in board.mean_ranks}
    drawn = rank_plot({one.title: places_of(one.answer, methods) for one in board.datasets})
    return PageFigure("ranks", "Places on each dataset", files_of(drawn))


def board_page(board: Board, compare: str = "all", made: str = "", figure: PageFigure | None = None) -> str:
    """Draw the page of a board as HTML.

    Args:
        board: The board.
        compare: Which pairs the table of pairs has.
        made: The footer's sentence on when and by what it was drawn.
        figure: The figure of ranks.
    """
    ranking, pairs = ranking_table(board, with_headline=False), pairs_table(board, compare)
    return (
        templates(Path(__file__).parent)
        .get_template("board.html")
        .render(
            title=ranking.title,
            headline=headline(board),
            ranking=to_html(replace(ranking, title="Ranking")),
            figure=figure,
            pairs=to_html(pairs),
            made=made,
        )
    )


def _cells(board: Board, pair: PairOverDatasets) -> list[Cell]:
    cells = [
        Cell(
            one.difference,
            one.half_width,
            form=dataset.answer.scaling.gap_format(more=True, signed=True),
            kind="measured",
            note=_note(dataset.answer, one),
        )
        for dataset, one in zip(board.datasets, pair.on, strict=True)
    ]
    if pair.mean is not None:
        widths = (pair.mean.half_width, pair.mean.prediction)
        form = board.datasets[0].answer.scaling.gap_format(more=True, signed=True)
        cells += [Cell(pair.mean.mean, width, form=form, kind="measured") for width in widths]
    elif len(board.datasets) >= FEWEST_FOR_A_MEAN:
        cells += [Cell(), Cell()]
    return [*cells, Cell(pair.verdict)]


def _note(found: Answer, pair: Pair) -> str:
    """Why a pair has no test, what failures make of it, or how far the lead of one goes."""
    note = found.with_failed_words(pair) if pair.means_disagree else found.ahead_words(pair)
    return pair.untested or (f"({note})" if note else "")


def _counts(pairs: Sequence[tuple[PairOverDatasets, bool]]) -> str:
    counts, holding = Counter(pair.verdict for pair, _ in pairs), sum(survives for _, survives in pairs)
    of_verdicts = [f"{counts[verdict]:,} {verdict}" for verdict in ORDER if counts[verdict]]
    many = f" {holding or 'None'} survive a correction over all {len(pairs):,}." if len(pairs) > 1 else ""
    return f"Of {counted(len(pairs), 'pair')}: {listed(of_verdicts)}.{many}"


_OVER_ALL = (
    "Consistent: all intervals and that of the mean lie on one side of no difference. Mean: all datasets count "
    "equally. Predicted: where a difference newly measured on another such dataset, with the same budget, lies in "
    "about 95 % of cases. Depends on the dataset: two intervals lie on opposite sides of it."
)
_OVER_TWO = (
    "Hint: both intervals lie on the same side of no difference, which a third dataset can still turn around. Depends "
    "on the dataset: the intervals lie on opposite sides."
)


def _origins(board: Board) -> Iterator[str]:
    """Name experiment, file or store, commits and budget of each dataset."""
    for dataset in board.datasets:
        if (source := dataset.source) is None:
            continue
        found = list(dict.fromkeys(record.provenance.commit[:12] for record in source.measured.records))
        commits = f"commit {listed(found)}" if len(found) < 3 else f"{counted(len(found), 'commit')}"
        yield f"{dataset.title}: {source.name} from {source.place}, {commits}, {source.budget}."
