"""From experiments on several datasets to a board: what may stand together, and what the datasets say together.

Experiments under unlike conditions stand on separate boards. On one dataset, experiments that differ in their methods
alone, such as those of two labs, are one; each method keeps its origin.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from reports.board.sources import Source
from results.spec.experiment_spec import PrimaryScore
from results.statistics.across_datasets import (
    Agreement,
    PairOverDatasets,
    agreement_by_chance,
    agreements,
    mean_ranks,
    pair_over_datasets,
)
from results.statistics.compare import compare_methods
from results.statistics.comparison import ComparisonResult, MethodValues, Unit
from results.statistics.deviations import SearchDeviation, nearest_search_deviation
from results.statistics.primary_comparison import resolution, unit_of


@dataclass(frozen=True)
class BoardDataset:
    """A dataset of a board.

    Attributes:
        sources: The experiments on it, which differ in their methods alone.
        origin: The experiment that each method is from.
        values: Values of the methods on the board.
    """

    sources: tuple[Source, ...]
    origin: Mapping[str, Source]
    values: Mapping[str, MethodValues]

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return self.sources[0].dataset

    @property
    def title(self) -> str:
        """Title of the dataset."""
        return self.sources[0].title

    @property
    def unit(self) -> Unit:
        """What the methods are compared by."""
        return unit_of(self.sources[0].measured.summary.experiment)

    @cached_property
    def assumed(self) -> SearchDeviation | None:
        """The assumed deviation of a search, if each method was searched once."""
        first = self.sources[0]
        if self.unit != "single search":
            return None
        return nearest_search_deviation(first.measured.summary.experiment, first.score)

    @cached_property
    def comparison(self) -> ComparisonResult:
        """All pairs of the methods on the board."""
        first = self.sources[0]
        step = resolution(first.measured, first.score)
        return compare_methods(self.values, self.unit, resolution=step, assumed=self.assumed)


@dataclass(frozen=True)
class Board:
    """Experiments that stand together.

    Attributes:
        methods: Titles of the methods that are on all datasets, by key.
        left_out: Titles of the methods that are not, by key.
        conditions: What the experiments have in common.
        differing: Names of the conditions in which they differ, if they were mixed on request.
    """

    datasets: tuple[BoardDataset, ...]
    methods: Mapping[str, str]
    left_out: Mapping[str, str]
    conditions: Mapping[str, str]
    differing: tuple[str, ...] = ()

    @property
    def score(self) -> PrimaryScore:
        """The score of the board."""
        return self.datasets[0].sources[0].score

    @cached_property
    def agreements(self) -> tuple[Agreement, ...]:
        """How far every two datasets agree on the order of the methods."""
        return agreements(self._by_dataset())

    @cached_property
    def agreement_by_chance(self) -> float:
        """How often random orders of the methods agree as much."""
        return agreement_by_chance(self._by_dataset())

    @cached_property
    def by_rank(self) -> list[str]:
        """The methods by their mean rank over the datasets, best first."""
        ranks = sum(mean_ranks(self._means(one)) for one in self.datasets)
        return [list(self.methods)[place] for place in np.argsort(ranks, kind="stable")]

    def pairs(self, compare: str = "all") -> tuple[PairOverDatasets, ...]:
        """Put the differences of `all` pairs together, or those of the `best` mean rank or of a named method.

        Of all pairs, the method with the better mean rank comes first.
        """
        if compare == "all":
            return tuple(self._pair(a, b) for a, b in combinations(self.by_rank, 2))
        reference = self.by_rank[0] if compare == "best" else compare
        return tuple(self._pair(reference, other) for other in self.methods if other != reference)

    def _pair(self, a: str, b: str) -> PairOverDatasets:
        pairs = [one.comparison.pair(a, b) for one in self.datasets]
        return pair_over_datasets([pair for pair in pairs if pair is not None])

    def _by_dataset(self) -> dict[str, list[float]]:
        return {one.name: self._means(one) for one in self.datasets}

    def _means(self, dataset: BoardDataset) -> list[float]:
        return [dataset.values[key].mean for key in self.methods]


@dataclass(frozen=True)
class Boards:
    """All boards that experiments give, and a line for every experiment that is on none of them."""

    boards: tuple[Board, ...]
    left_out: tuple[str, ...]


def boards_of(sources: Sequence[Source], *, mixed: bool = False) -> Boards:
    """Sort experiments into boards.

    Args:
        sources: The experiments. Of two on one dataset that differ in more than their methods, the first is taken.
        mixed: Whether protocols, trunks and embedding sizes may differ on a board. The scores never do.
    """
    groups = _grouped(sources, lambda one: one.conditions["score"] if mixed else tuple(one.conditions.values()))
    found: list[Board] = []
    lines: list[str] = []
    for group in groups:
        datasets = []
        for candidates in _grouped(group, lambda one: one.data):
            first = candidates[0]
            joined = [one for one in candidates if one is first or one.joins(first)]
            datasets.append(joined)
            lines += [_beside(one, first) for one in candidates if one not in joined]
        board = _board(datasets)
        if len(datasets) < 2:
            lines += _alone(group[0], sources)
        elif len(board.methods) < 2:
            lines.append(
                f"{_names(datasets)} have fewer than two trained methods in common; run the same methods on each"
            )
        else:
            found.append(board)
    return Boards(tuple(found), tuple(lines))


def _grouped(sources: Sequence[Source], key: Callable[[Source], object]) -> list[list[Source]]:
    groups: dict[object, list[Source]] = {}
    for source in sources:
        groups.setdefault(key(source), []).append(source)
    return list(groups.values())


def _names(datasets: Sequence[Sequence[Source]]) -> str:
    return ", ".join(group[0].dataset for group in datasets)


def _beside(source: Source, first: Source) -> str:
    return (
        f"{source.name} ({source.place}) is not drawn: {first.name} is on {first.dataset} too, with other settings or "
        "data; name one of them"
    )


def _alone(source: Source, sources: Sequence[Source]) -> Iterator[str]:
    """Say why an experiment is on no board: in what it differs from the others."""
    others = [one for one in sources if one.data != source.data]
    keys = [key for key in source.conditions if any(one.conditions[key] != source.conditions[key] for one in others)]
    own = ", ".join(f"{key} {source.conditions[key]}" for key in keys)
    reason = f"no other dataset has the same {', '.join(keys)}" if keys else "there is no other dataset"
    yield f"{source.name} on {source.dataset} stands alone{f' ({own})' if own else ''}: {reason}"


def _board(groups: Sequence[Sequence[Source]]) -> Board:
    origins = [_origins(group) for group in groups]
    titles = {key: title for group in groups for one in group for key, title in one.measured.summary.methods.items()}
    common = [key for key in origins[0] if all(key in own for own in origins)]
    # A key whose own code differs is another method.
    common = [key for key in common if len({own[key].measured.code_of(key) for own in origins}) == 1]
    datasets = tuple(
        BoardDataset(
            tuple(one for one in group if any(own[key] is one for key in common)) or tuple(group),
            {key: own[key] for key in common},
            {key: own[key].values[key] for key in common},
        )
        for group, own in zip(groups, origins, strict=True)
    )
    conditions = [group[0].conditions for group in groups]
    differing = tuple(key for key in conditions[0] if len({one[key] for one in conditions}) > 1)
    shared = {key: text for key, text in conditions[0].items() if key not in differing}
    left_out = {key: titles[key] for own in origins for key in own if key not in common}
    return Board(datasets, {key: titles[key] for key in common}, left_out, shared, differing)


def _origins(group: Sequence[Source]) -> dict[str, Source]:
    """The first experiment of a dataset that has a method, complete if there is one."""
    origins: dict[str, Source] = {}
    for one in group:
        for key, own in one.values.items():
            if key not in origins or (origins[key].values[key].missing and not own.missing):
                origins[key] = one
    return origins
