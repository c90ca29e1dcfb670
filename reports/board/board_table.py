"""The tables and the page of a board: the ranking of the methods, then what is the same on all datasets."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from reports.board.boards import Board, BoardDataset
from reports.tables.formats import templates, to_html
from reports.tables.table import PERCENT, POINTS, Cell, Column, NumberFormat, Row, Table, measured_cell
from results.answer.across_datasets import FEWEST_FOR_A_MEAN, BoardVerdict, PairOverDatasets, surviving
from results.answer.answers import Answer
from results.answer.intervals import Interval
from results.answer.values import Pair
from results.findings.origin import origin_findings
from results.wording import capitalized, counted, few, joined, listed, place_words, verb

ORDER: tuple[BoardVerdict, ...] = ("consistent", "hint: same on both", "depends on the dataset", "cannot tell")
"""The verdicts, answers first."""

_NAMED_CONDITIONS = ("protocol", "trunk.name", "trunk.weights", "trunk.frozen", "embedding_size")
"""Conditions that the caption names; the others are equal too."""


def ranking_table(board: Board) -> Table:
    """Build the ranking: mean and possible ranks on each dataset, and over all, the best mean rank first."""
    count, on_all = len(board.methods), board.claims_on_all()
    columns = [
        Column(name, group=one.title)
        for one in board.datasets
        for name in (board.score_name.rpartition(" ")[2], "rank")
    ]
    rows = []
    for key, mean_rank in board.mean_ranks.items():
        cells = []
        for dataset in board.datasets:
            own = dataset.answer.values[key]
            cells += [measured_cell(Interval(own.mean, None, len(own.units)), PERCENT)]
            cells += [Cell(place_words(dataset.answer.rank_intervals.get(key, (1, count))))]
        worse, better = (sum(pair[of] == key for pair in on_all) for of in (1, 0))
        over = (Cell(mean_rank, form=NumberFormat(digits=1)), Cell(place_words((1 + worse, count - better))))
        rows.append(Row(board.methods[key], (*cells, *over), key))
    titles = joined([one.title for one in board.datasets])
    over_columns = (Column("mean rank"), Column("rank on all"))
    common = joined([f"{key} {board.conditions[key]}" for key in _NAMED_CONDITIONS if key in board.conditions])
    return Table(
        title=f"{counted(count, 'method')} on {counted(len(board.datasets), 'dataset')}: {titles}",
        caption=f"{capitalized(board.score_name)} in percent, the best mean rank first. Rank: "
        "the places that a method can have by the dataset's comparison, for all methods together at 95 %. On all: by "
        f"what every dataset shows.{f' In common: {common}.' if common else ''}",
        columns=(*columns, *over_columns),
        rows=tuple(rows),
        notes=(headline(board), *_agreement(board)),
    )


def headline(board: Board) -> str:
    """Name the leaders: the methods that can be the best on each dataset, and the best mean rank."""
    best, rank = [board.methods[key] for key in board.best], min(board.mean_ranks.values())
    every = len(board.methods)
    of = f"of {counted(every, 'method')}"
    lead = f"{few(best, of)} {'has' if len(best) == 1 else 'share'} the best mean rank ({rank:.1f})"
    if len(best) == every:
        lead = f"The {counted(every, 'method')} {verb(every, 'are')} tied: all have the mean rank {rank:.1f}"
    parts = []
    for dataset in board.datasets:
        worse = {loser for _, loser in dataset.answer.claims}
        leaders = [title for key, title in board.methods.items() if key not in worse]
        whom = f"any of the {counted(every, 'method')}" if len(leaders) == every else few(leaders, of)
        parts.append(f"on {dataset.title} {whom} can be the best")
    return f"{lead}; {'; '.join(parts)}."


def pairs_table(board: Board, compare: str = "all", *, decided: bool = False) -> Table:
    """Build the table of pairs: the difference on each dataset, answers first. `decided` leaves out "cannot tell".

    `compare` asks for `all` pairs, for the method with the `best` mean rank with each other one, or for this method's.
    """
    found = board.pairs(compare)
    pairs = sorted(zip(found, surviving(found), strict=True), key=lambda one: ORDER.index(one[0].verdict))
    means = [Column("mean"), Column("predicted")] if len(board.datasets) >= FEWEST_FOR_A_MEAN else []
    columns = (*(Column(one.title) for one in board.datasets), *means, Column("verdict", numeric=False))
    return Table(
        title="Which differences hold on all datasets?",
        caption=f"Differences of {board.score_name} in percentage points, with 95 % intervals. "
        f"{_OVER_ALL if means else _OVER_TWO} Intervals and verdicts are for one row alone. * survives Holm's "
        f"correction over the {counted(len(pairs), 'row')}.",
        columns=columns,
        rows=tuple(
            Row(f"{board.methods[pair.a]} − {board.methods[pair.b]}", _cells(board, pair), sign="*" if survives else "")
            for pair, survives in pairs
            if not decided or pair.verdict != "cannot tell"
        ),
        first="Methods",
        notes=(_counts(pairs), *_failed(board)),
        remarks=(*_limits(board), *_origins(board)),
    )


def board_page(board: Board, compare: str = "all", made: str = "") -> str:
    """Draw the page of a board as HTML. `made` is the footer's sentence on when and by what it was drawn."""
    ranking, pairs = ranking_table(board), pairs_table(board, compare)
    tables = (replace(ranking, title="Ranking", notes=ranking.notes[1:]), pairs)  # The page begins with the others.
    return (
        templates(Path(__file__).parent)
        .get_template("board.html")
        .render(title=ranking.title, headline=headline(board), tables=list(map(to_html, tables)), made=made)
    )


def _cells(board: Board, pair: PairOverDatasets) -> list[Cell]:
    cells = [
        Cell(one.difference, one.half_width, form=POINTS, kind="measured", note=_note(dataset.answer, one))
        for dataset, one in zip(board.datasets, pair.on, strict=True)
    ]
    if pair.mean is not None:
        widths = (pair.mean.half_width, pair.mean.prediction)
        cells += [Cell(pair.mean.mean, width, form=POINTS, kind="measured") for width in widths]
    elif len(board.datasets) >= FEWEST_FOR_A_MEAN:
        cells += [Cell(), Cell()]
    return [*cells, Cell(pair.verdict)]


def _note(found: Answer, pair: Pair) -> str:
    """Why a pair has no test, or what failures make of it."""
    return pair.untested or (f"({found.with_failed_words(pair)})" if pair.means_disagree else "")


def _counts(pairs: Sequence[tuple[PairOverDatasets, bool]]) -> str:
    counts, holding = Counter(pair.verdict for pair, _ in pairs), sum(survives for _, survives in pairs)
    said = [f"{counts[verdict]:,} {verdict}" for verdict in ORDER if counts[verdict]]
    many = f" {holding or 'None'} survive a correction over all {len(pairs):,}." if len(pairs) > 1 else ""
    return f"Of {counted(len(pairs), 'pair')}: {listed(said)}.{many}"


def _failed(board: Board) -> Iterator[str]:
    for dataset in board.datasets:
        for key, failed in dataset.answer.failed.items():
            units = counted(dataset.answer.values[key].count, "search")
            yield (
                f"On {dataset.title}, {len(failed)} of {units} of {board.methods[key]} found no good setting "
                f"({listed([f'{100 * value:.1f}' for value in failed])}) and is set aside."
            )


def _agreement(board: Board) -> Iterator[str]:
    """Give the rank correlations, and what they mean for a reader with another dataset."""
    named = [
        f"{listed(titles)} {'none, as all methods of one are tied' if math.isnan(found) else f'{found:.2f}'}"
        for titles, found in board.correlations.items()
    ]
    yield (
        f"Rank correlation: {'; '.join(named)}. Of two methods, the one ahead on one of these datasets is also ahead "
        f"on another in {100 * board.same_order:.0f} % of cases. A coin has 50 %."
    )


_OVER_ALL = (
    "Consistent: all intervals and that of the mean lie on one side of zero. Mean: all datasets count equally. "
    "Predicted: where a difference newly measured on another such dataset, with the same budget, lies in about 95 % of "
    "cases. Depends on the dataset: two intervals lie on opposite sides of zero."
)
_OVER_TWO = (
    "Hint: both intervals lie on the same side of zero, which a third dataset can still turn around. Depends on the "
    "dataset: the intervals lie on opposite sides."
)


def _limits(board: Board) -> Iterator[str]:
    """Say what the intervals of each dataset are made from, and which methods are missing."""
    units: dict[str, list[str]] = {}
    for one in board.datasets:
        units.setdefault(_unit_words(one), []).append(one.title)
    yield from (f"On {listed(titles)}, {words}" for words, titles in units.items())
    for one in board.datasets:
        findings = origin_findings(one.source.measured) if one.source else ()
        yield from (f"On {one.title}: {finding.sentences}" for finding in findings)
    if board.left_out:
        code = " with the same code" if board.conditions else ""
        yield f"Not on all datasets{code}, so not on the board: {joined(list(board.left_out.values()))}."


def _unit_words(dataset: BoardDataset) -> str:
    unit, assumed = dataset.answer.question.unit, dataset.answer.question.assumed
    if unit == "search":
        return "the intervals are over complete searches."
    if unit == "run":
        return "nothing was searched; the intervals are over runs of the given settings."
    if assumed is None:
        return "one search of each method, and how far two differ is not known, so there are no intervals."
    return f"one search of each method; the intervals take {assumed.words} as the deviation between searches."


def _origins(board: Board) -> Iterator[str]:
    """Name experiment, file or store, commits and budget of each dataset."""
    for dataset in board.datasets:
        if (source := dataset.source) is None:
            continue
        found = list(dict.fromkeys(record.provenance.commit[:12] for record in source.measured.records))
        commits = f"commit {listed(found)}" if len(found) < 3 else f"{counted(len(found), 'commit')}"
        yield f"{dataset.title}: {source.name} from {source.place}, {commits}, {source.budget}."
