"""Sentences on a board: what is on it, what its datasets say together, and what that means on another dataset."""

from collections import Counter
from collections.abc import Iterator, Sequence

from reports.board.boards import Board, BoardDataset
from reports.board.sources import Source
from reports.tables.mixed_origins import mixed_origins
from reports.wording import counted, joined, listed
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.datasets import FEWEST_FOR_A_MEAN, BoardVerdict, PairOverDatasets
from results.statistics.method_comparison import ALPHA
from results.statistics.search_deviation import WIDENING

ORDER: tuple[BoardVerdict, ...] = ("consistent", "same on both", "depends on the dataset", "cannot tell")
"""The verdicts, answers first."""

LITTLE, SOME = 0.6, 0.8
"""Shares of pairs with the same order on two datasets: below the first, an order says next to nothing elsewhere."""


def sorted_pairs(pairs: Sequence[PairOverDatasets]) -> list[PairOverDatasets]:
    """Sort pairs, answers first; pairs with the same verdict stay in their order."""
    return sorted(pairs, key=lambda pair: ORDER.index(pair.verdict))


def dataset_title(board: Board, dataset: BoardDataset) -> str:
    """Name a dataset of a board, with the conditions in which the datasets differ."""
    conditions = dataset.sources[0].conditions
    return joined([dataset.name, *(f"{conditions[key]}" for key in board.differing)])


def ahead_words(pair: PairOverDatasets, board: Board) -> str:
    """Say on how many datasets which method is ahead: `A on 3 of 4, one opposite`."""
    of_a, of_b = pair.ahead
    if of_a == of_b:
        return f"{of_a} of {len(pair.on)} each"
    first, most, least = (pair.a, of_a, of_b) if of_a > of_b else (pair.b, of_b, of_a)
    opposite = f", {'one' if least == 1 else least} opposite" if least else ""
    return f"{board.methods[first]} on {most} of {len(pair.on)}{opposite}"


def asked_words(board: Board, compare: str) -> str:
    """Say which pairs are on the board."""
    if compare == "all":
        return f"all pairs of {counted(len(board.methods), 'method')}"
    reference = board.by_rank[0] if compare == "best" else compare
    best = ", which has the best mean rank" if compare == "best" else ""
    return f"{board.methods[reference]}{best}, with {counted(len(board.methods) - 1, 'other method')}"


def board_headline(board: Board, pairs: Sequence[PairOverDatasets]) -> str:
    """Count the verdicts in a sentence."""
    counts, datasets = Counter(pair.verdict for pair in pairs), len(board.datasets)
    together: BoardVerdict = "consistent" if datasets >= FEWEST_FOR_A_MEAN else "same on both"
    where = "on both datasets" if together == "same on both" else f"over {datasets} datasets"
    alike = f"{_are(counts[together])} {'the same' if together == 'same on both' else 'consistent'} {where}"
    return (
        f"Of {len(pairs):,} comparisons, {alike}, {_are(counts['depends on the dataset'])} opposite on two, and "
        f"{counts['cannot tell']:,} cannot be told."
    )


def _are(count: int) -> str:
    return f"{count:,} {'is' if count == 1 else 'are'}"


def reading(board: Board, pairs: Sequence[PairOverDatasets], compare: str) -> str:
    """Explain the numbers of a board and its verdicts."""
    score = f"{board.score.embeddings} {HEADLINE_METRICS[board.score.metric]}"
    several = len(board.datasets) >= FEWEST_FOR_A_MEAN
    sentences = [
        f"Differences of {score} in percentage points, of {asked_words(board, compare)}, with 95 % intervals.",
        f"In common: {joined([f'{key} {text}' for key, text in board.conditions.items() if key != 'score'])}.",
        *mixed_words(board),
        *(["Consistent: all intervals and that of the mean lie on one side of zero."] if several else []),
        *(
            ["Mean: all datasets count equally. Predicted: where a difference newly measured on another such dataset, "
             "with the same budget, lies in 95 % of cases."]
            if several
            else ["Two datasets show directions only; a mean of two says nothing. Same on both: both intervals lie on "
                  "the same side of zero."]
        ),
        "Depends on the dataset: two intervals lie on opposite sides of zero. Intervals and verdicts hold for one "
        f"comparison alone and are not corrected for the {len(pairs):,} here.",
    ]  # fmt: skip
    return " ".join(sentences)


def mixed_words(board: Board) -> Iterator[str]:
    """Say in what the datasets of a mixed board differ."""
    if board.differing:
        named = [f"{one.name}: {joined([one.sources[0].conditions[key] for key in board.differing])}"
                 for one in board.datasets]  # fmt: skip
        yield (
            f"Mixed on request: the datasets differ in {listed(board.differing)} too ({'; '.join(named)}). What "
            "depends on the dataset here can depend on that."
        )


def doubts(board: Board) -> Iterator[str]:
    """Say what the intervals of each dataset are made from, and which methods are missing."""
    for one in board.datasets:
        yield f"On {one.name}, {_unit_words(one)}"
        yield from (f"On {one.name}: {note}" for note in mixed_origins(*(source.measured for source in one.sources)))
    if board.left_out:
        yield f"Not on all datasets, so not on the board: {joined(list(board.left_out.values()))}."


def _unit_words(dataset: BoardDataset) -> str:
    if dataset.unit == "search":
        return "the intervals are over complete searches."
    if dataset.unit == "run":
        return "nothing was searched; the intervals are over runs of the given settings."
    if dataset.assumed is None:
        return (
            "one search of each method, and how far two such searches differ is not known, so there are no intervals."
        )
    return (
        f"one search of each method; the intervals take {WIDENING:g} times the {100 * dataset.assumed.deviation:.2f} "
        f"points by which searches differ in {dataset.assumed.record}."
    )


def unit_words(board: Board) -> Iterator[str]:
    """Say in which units the datasets could be averaged: only where a typical difference is not noise."""
    if len(board.datasets) < FEWEST_FOR_A_MEAN:
        return
    noisy = [one.name for one, unit in zip(board.datasets, board.units, strict=True) if unit is None]
    units = [f"{one.name} {100 * unit:.2f}" for one, unit in zip(board.datasets, board.units, strict=True) if unit]
    if noisy:
        yield (
            f"No mean in units of the datasets: the median difference of two methods is not beyond the noise of two "
            f"searches, or that is not known, on {listed(noisy)}. The mean in points is mostly that of the dataset "
            "with the largest differences."
        )
    else:
        yield f"Units of the datasets are the median differences of two methods, in points: {joined(units)}."


def agreement_words(board: Board) -> Iterator[str]:
    """Give the rank correlations, and what they mean for a reader with another dataset."""
    found = board.agreements
    if len(found) == 1:
        one = found[0]
        yield (
            f"The rank correlation of the {len(board.methods)} methods between {one.first} and {one.second} is "
            f"{one.correlation:.2f}."
        )
    else:
        named = [f"{one.first} and {one.second} {one.correlation:.2f}" for one in found]
        yield f"Rank correlations of the {len(board.methods)} methods: {'; '.join(named)}."
    share = sum(one.same_order for one in found) / len(found)
    meaning = (
        "so the order here says next to nothing about the order there: measure there"
        if share < LITTLE
        else f"and random orders agree as much in {100 * board.agreement_by_chance:.0f} %, so this may be chance: "
        "measure there"
        if board.agreement_by_chance > ALPHA
        else "so the order here is a hint, and near methods have to be measured there"
        if share < SOME
        else "so most of the order here can be expected on a dataset like these"
    )
    yield (
        "If you have another dataset: of two methods, the one ahead on one of these datasets is also ahead on another "
        f"of them in {100 * share:.0f} % of cases, where a coin has 50 %, {meaning}."
    )


def origin_words(board: Board) -> list[str]:
    """Name experiment, file or store, commits, budget and methods of each source, numbered as in the rows."""
    return [
        f"[{number}] {dataset.name}: {source.name} from {source.place}, {commit_words(source)}, "
        f"{source.budget}: {method_words(dataset, source, board)}."
        for number, (dataset, source) in enumerate(numbered_sources(board), start=1)
    ]


def numbered_sources(board: Board) -> list[tuple[BoardDataset, Source]]:
    """Return all experiments of a board, each with its dataset, in the order of their numbers."""
    return [(dataset, source) for dataset in board.datasets for source in dataset.sources]


def row_origins(board: Board, pair: PairOverDatasets) -> str:
    """Return the numbers of the experiments behind a row."""
    numbers = [
        str(number)
        for number, (dataset, source) in enumerate(numbered_sources(board), start=1)
        if source in (dataset.origin[pair.a], dataset.origin[pair.b])
    ]
    return ", ".join(numbers)


def method_words(dataset: BoardDataset, source: Source, board: Board) -> str:
    """Name the methods of a board that are from an experiment, if it has not all of them."""
    own = [title for key, title in board.methods.items() if dataset.origin[key] is source]
    return counted(len(own), "method") if len(own) == len(board.methods) else joined(own)


def commits(source: Source, method: str | None = None) -> list[str]:
    """Return the commits of an experiment's runs, or of those of a method, in the order of the runs."""
    of = [record for record in source.measured.records if method in (None, record.method)]
    return list(dict.fromkeys(record.provenance.commit for record in of))


def commit_words(source: Source) -> str:
    """Name the commits in short, or count them if they are more than two."""
    found = [commit[:12] for commit in commits(source)]
    return f"commit {listed(found)}" if len(found) < 3 else f"{len(found)} commits"
