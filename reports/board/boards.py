"""From experiments on several datasets to a board: what may stand together, and what the datasets say together.

Experiments under unlike conditions stand on separate boards.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from results.answer.across_datasets import (
    PairOverDatasets,
    mean_ranks,
    pair_over_datasets,
    rank_correlation,
    same_order,
)
from results.answer.answer_question import answer_frame
from results.answer.answers import Answer
from results.findings.experiment import ExperimentAnswer, answer_of
from results.spec.data_choice import OWN_DATA
from results.store.experiment_results import MeasuredExperiment
from results.values import flat
from results.wording import counted, distinct, listed

_TITLES = {
    "cub200": "CUB-200-2011",
    "cars196": "Cars196",
    "sop": "Stanford Online Products",
    "inshop": "In-Shop",
    "inat2018": "iNaturalist 2018",
}


_OF_THE_DATA: Any = {"trunk": {"width"}, "images": {"resize", "evaluation_resize"}}
"""Conditions that follow from the data: the number of features, and how large images are before the crop."""


@dataclass(frozen=True)
class Source:
    """An experiment of a board.

    Attributes:
        name: Its name.
        place: The store, the file of a lab, or the record that it is from.
    """

    name: str
    place: str
    measured: MeasuredExperiment

    @cached_property
    def answer(self) -> ExperimentAnswer:
        """What it shows."""
        return answer_of(self.measured)

    @cached_property
    def trained(self) -> tuple[str, ...]:
        """The methods that train; a trunk that is only tested has no place on a board."""
        trained = {record.method for record in self.measured.records if record.iterations != 0}
        return tuple(key for key in self.answer.question.compared if key in trained)

    @property
    def title(self) -> str:
        """Title of the dataset; of a user's data the name of the experiment."""
        name = self.measured.plan.dataset
        title = self.name if name in OWN_DATA else _TITLES.get(name, name)
        return f"part of {title}" if self.measured.plan.experiment.dataset.subset else title

    @property
    def data(self) -> tuple[str, str]:
        """What tells datasets apart. Two parts of one dataset are one, and so are equal files under other names."""
        name, data = self.measured.plan.dataset, self.measured.plan.data
        content = data.content if data and data.content else self.measured.records[0].data_fingerprint
        return name, content if name in OWN_DATA else ""

    @property
    def conditions(self) -> dict[str, str]:
        """What experiments on one board have in common: score, protocol and every condition of the trainings."""
        experiment = self.measured.plan.experiment
        settings = flat(experiment.conditions.model_dump(mode="json", exclude=_OF_THE_DATA))
        common = {"score": self.answer.question.score_name, "protocol": experiment.protocol}
        return common | {key: str(value) for key, value in settings}

    @property
    def budget(self) -> str:
        """Searches, trials and runs of each method in words."""
        plan = self.measured.plan
        searches = plan.experiment.search.searches
        of_search = f"{searches} x {counted(plan.most_trials, 'trial')}, " if plan.trials else "given settings, "
        return f"{of_search}{counted(plan.reproductions, 'run')}" + (" each" if searches > 1 else "")


@dataclass(frozen=True)
class BoardDataset:
    """A dataset of a board: its experiment, if it is of one, and the answer on all pairs of the board's methods."""

    title: str
    source: Source | None
    answer: Answer


@dataclass(frozen=True)
class Board:
    """Experiments that stand together.

    Attributes:
        methods: Titles of the methods that are on all datasets, by key.
        left_out: Titles of the methods that are not, by key.
        conditions: What the experiments have in common.
    """

    datasets: tuple[BoardDataset, ...]
    methods: Mapping[str, str]
    left_out: Mapping[str, str]
    conditions: Mapping[str, str]

    @property
    def score_name(self) -> str:
        """The score of the board."""
        return self.datasets[0].answer.question.score_name

    @property
    def correlations(self) -> dict[tuple[str, str], float]:
        """Spearman's rank correlation of the methods between every two datasets, by their titles."""
        return {
            (one.title, other.title): rank_correlation(self._means(one), self._means(other))
            for one, other in combinations(self.datasets, 2)
        }

    @property
    def same_order(self) -> float:
        """How often two methods have the same order on two datasets."""
        return same_order({one.title: self._means(one) for one in self.datasets})

    @cached_property
    def mean_ranks(self) -> dict[str, float]:
        """The mean rank of each method over the datasets, best first."""
        ranks = np.mean([mean_ranks(self._means(one)) for one in self.datasets], axis=0)
        return {list(self.methods)[place]: float(ranks[place]) for place in np.argsort(ranks, kind="stable")}

    @property
    def best(self) -> tuple[str, ...]:
        """The methods with the best mean rank, several if they are tied."""
        ranks = self.mean_ranks
        return tuple(key for key, rank in ranks.items() if rank <= min(ranks.values()) + 1e-9)

    def claims_on_all(self) -> set[tuple[str, str]]:
        """The pairs of a better and a worse method that are claimed on every dataset."""
        return set.intersection(*(one.answer.claims for one in self.datasets))

    def pairs(self, compare: str = "all") -> tuple[PairOverDatasets, ...]:
        """Put the differences of `all` pairs together, or those of the `best` mean rank or of a named method.

        Of all pairs, the method with the better mean rank comes first.

        Raises:
            ValueError: Several methods are tied, so none is the best.
        """
        if compare == "all":
            return tuple(self._pair(a, b) for a, b in combinations(self.mean_ranks, 2))
        if compare == "best" and len(self.best) > 1:
            raise ValueError(f"{listed([self.methods[key] for key in self.best])} are tied, so none is the best")
        reference = self.best[0] if compare == "best" else compare
        return tuple(self._pair(reference, other) for other in self.methods if other != reference)

    def _pair(self, a: str, b: str) -> PairOverDatasets:
        pairs = [one.answer.pair(a, b) for one in self.datasets]
        return pair_over_datasets([pair for pair in pairs if pair is not None])

    def _means(self, dataset: BoardDataset) -> list[float]:
        """The means of the methods, higher for better ones."""
        return [dataset.answer.question.sign * dataset.answer.values[key].mean for key in self.methods]


def board_of_answers(answers: Mapping[str, Answer]) -> Board | None:
    """Put answers about one score on several datasets on a board, by title; None without two methods on two of them."""
    compared = {title: found for title, found in answers.items() if found.compared}
    first = next(iter(compared.values()), None)
    common = [key for key in first.compared if all(key in one.compared for one in compared.values())] if first else []
    if len(compared) < 2 or len(common) < 2:
        return None
    return _board_of([(title, None, one) for title, one in compared.items()], common, {})


def _board_of(
    answers: Sequence[tuple[str, Source | None, Answer]], common: Sequence[str], conditions: Mapping[str, str]
) -> Board:
    """Compare the common methods on each dataset again, at the level of their number."""
    datasets = tuple(
        BoardDataset(title, source, answer_frame(found.frame, found.question.only(common)))
        for title, source, found in answers
    )
    known = {key: title for *_, found in answers for key, title in found.titles.items()}
    placed = [source.trained if source else found.compared for _, source, found in answers]
    left_out = {key: known[key] for keys in placed for key in keys if key not in common}
    return Board(datasets, distinct({key: known[key] for key in common}), left_out, conditions)


def boards_of(sources: Sequence[Source]) -> tuple[list[Board], list[str]]:
    """Sort experiments into boards; return them, and a line for every experiment that is on none of them.

    Of two experiments on one dataset under the same conditions the first is taken.
    """
    found: list[Board] = []
    lines: list[str] = []
    for group in _grouped(sources, lambda one: tuple(one.conditions.items())):
        datasets = []
        for first, *others in _grouped(group, lambda one: one.data):
            datasets.append(first)
            lines += [_second(one, first) for one in others]
        board = _board(datasets)
        if len(datasets) < 2:
            lines.append(_alone(group[0], sources))
        elif len(board.methods) < 2:
            names = ", ".join(one.title for one in datasets)
            lines.append(f"{names} have fewer than two trained methods in common; run the same methods on each")
        else:
            found.append(board)
    return found, lines


def _second(source: Source, first: Source) -> str:
    """Say that an experiment is not drawn, because another one of the same data is; both can have one name."""
    same = "has the same data" if first.data[1] else f"is on {first.title} too"
    if (source.name, source.place) != (first.name, first.place):
        return f"{source.name} ({source.place}) is not drawn: {first.name} {same}; name one of them"
    return (
        f"{source.name} with {source.budget} ({source.place}) is not drawn: that with {first.budget} {same}; name one "
        "of them by its identity, which `reproduce status` lists"
    )


def _grouped(sources: Sequence[Source], key: Callable[[Source], object]) -> list[list[Source]]:
    groups: dict[object, list[Source]] = {}
    for source in sources:
        groups.setdefault(key(source), []).append(source)
    return list(groups.values())


def _alone(source: Source, sources: Sequence[Source]) -> str:
    """Say why an experiment is on no board: in what it differs from the others."""
    others = [one for one in sources if one.data != source.data]
    keys = [
        key for key in source.conditions if any(one.conditions.get(key) != source.conditions[key] for one in others)
    ]
    own = ", ".join(f"{key} {source.conditions[key]}" for key in keys)
    reason = f"no other dataset has the same {', '.join(keys)}" if keys else "there is no other dataset"
    return f"{source.name} on {source.title} stands alone{f' ({own})' if own else ''}: {reason}"


def _board(sources: Sequence[Source]) -> Board:
    common = [key for key in sources[0].trained if all(key in one.trained for one in sources)]
    # A key whose own code differs is another method.
    common = [key for key in common if len({one.measured.code_of(key) for one in sources}) == 1]
    shared = _common_beginning([one.name for one in sources])
    answers = [(one.title.replace(shared, "", 1), one, one.answer) for one in sources]
    return _board_of(answers, common, sources[0].conditions)


def _common_beginning(names: Sequence[str]) -> str:
    """What names begin with alike, as `shop_` in `shop_shoes` and `shop_hats`, which is no part of a title."""
    ends = [place + 1 for place, sign in enumerate(names[0]) if sign in "_/"]
    common = [names[0][:end] for end in ends if all(name.startswith(names[0][:end]) for name in names)]
    return common[-1] if common and len(names) > 1 else ""
