"""What decides which loss is better? Pairs of losses in kept records, under two values of one condition at a time.

`python -m benchmarks.kept_tables` draws the table and the figure. A verdict is that of the statistics alone: also where
it is none about methods, since a loss was held up.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from reports.figures.style import BLUE, GREY, INK, new_figure, styled
from reports.tables.table import Cell, Column, Row, Table
from results.answer.answer_question import answer_frame, answer_on, early_answer
from results.answer.answers import Answer
from results.findings.experiment import answer_of
from results.numbers import NumberFormat
from results.store.experiment_results import MeasuredExperiment
from results.wording import joined

LOSSES = ("reality_check_glyphs", "reality_check_handwriting", "reality_check_birds_subset")
LOSSES_2026 = ("reality_check_2026_glyphs", "reality_check_2026_handwriting", "reality_check_2026_birds_subset")
TO_THE_END = "reality_check_glyphs_tested_to_the_end"
WIDENED = "reality_check_glyphs_ends_probed"
FOUR_TO_THE_END = "reality_check_glyphs_4_tested_to_the_end"
SIX_SEARCHES = ("search_variance_glyphs", "search_variance_handwriting", "search_variance_birds_subset")

Sides = tuple[Answer, Answer]


@dataclass(frozen=True)
class Shift:
    """What a condition changes in the differences between losses.

    Attributes:
        condition: Its two values in words.
        where: The records that were compared.
        differences: Differences of all pairs under both values, (pairs, 2), fractions of 1.
        verdicts: Pairs whose verdict is another one.
    """

    condition: str
    where: str
    differences: npt.NDArray[np.float64]
    verdicts: int

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.differences)

    @property
    def orders(self) -> int:
        """Pairs of which the other loss is ahead."""
        return int((self.differences.prod(axis=1) < 0).sum())

    @property
    def changes(self) -> npt.NDArray[np.float64]:
        """By how much the difference of each pair changes."""
        return np.asarray(np.abs(self.differences[:, 1] - self.differences[:, 0]))

    @property
    def sizes(self) -> npt.NDArray[np.float64]:
        """How far the losses of each pair lie apart, mean of both values."""
        return np.asarray(np.abs(self.differences).mean(axis=1))


def shifts() -> list[Shift]:
    """Return what each condition changes, the largest share of other orders last."""
    found = [
        _shift("another three searches", ((name, _halves(name)) for name in SIX_SEARCHES)),
        _shift("joined or single models", ((name, _two(name, _single)) for name in (*LOSSES, *LOSSES_2026))),
        _shift("MAP@R or P@1", ((name, _two(name, _precision)) for name in (*LOSSES, *LOSSES_2026))),
        _shift("steps: at most 400 or to the end", [(TO_THE_END, _two(TO_THE_END, early_of))]),
        _shift("ranges: as given, or wider with half more trials", [(WIDENED, _records(TO_THE_END, WIDENED))]),
        _shift(
            "network: EfficientNet-Lite0 or Lite2, frozen",
            [
                (
                    "reality_check_2026_birds",
                    _records("reality_check_2026_birds_subset", "reality_check_2026_birds_lite2_subset"),
                )
            ],
        ),
        _shift(
            "1 or 4 images of a class in a batch",
            [("reality_check_2026_glyphs", _records("reality_check_2026_glyphs", "reality_check_2026_glyphs_4", "_4"))],
        ),
        _shift(
            "cards' batches or 4 images for all, to the end",
            [("reality_check_glyphs_4", _records(TO_THE_END, FOUR_TO_THE_END, "_4"))],
        ),
        _shift(
            "dataset: glyphs or handwriting", ((pair[0], _records(*pair)) for pair in (LOSSES[:2], LOSSES_2026[:2]))
        ),
        _shift(
            "dataset and network: glyphs from scratch or birds frozen",
            ((pair[0], _records(*pair)) for pair in (LOSSES[::2], LOSSES_2026[::2])),
        ),
    ]
    return sorted(found, key=lambda one: one.orders / one.pairs)


def what_decides(found: list[Shift]) -> Table:
    """Build the table: of all pairs of losses, how many change their order or verdict, and by how many points."""
    points = NumberFormat(digits=1, scale=100)
    return Table(
        title="What decides which loss is better?",
        caption=(
            "Pairs of losses under two values of one condition, but for those of the same runs. Medians, in points."
        ),
        columns=(
            *(Column("pairs"), Column("other order"), Column("other verdict")),
            *(Column("the difference changes by"), Column("losses differ by")),
        ),
        rows=tuple(
            Row(
                one.condition,
                (
                    *(Cell(one.pairs), _share(one.orders, one), _share(one.verdicts, one)),
                    *(Cell(float(np.median(of)), form=points) for of in (one.changes, one.sizes)),
                ),
            )
            for one in found
        ),
        first="Condition",
    )


@styled
def decides_figure(found: list[Shift]) -> Figure:
    """Draw median and quartiles of both: what a condition changes, and how far losses lie apart."""
    figure = new_figure(0.9 + 0.42 * len(found))
    axes = figure.add_subplot()
    for row, one in enumerate(found):
        for values, colour, offset, label in (
            (one.changes, BLUE, -0.12, "the condition changes a difference by"),
            (one.sizes, GREY, 0.12, "two losses differ by"),
        ):
            low, middle, high = (100 * float(end) for end in np.quantile(values, (0.25, 0.5, 0.75)))
            axes.plot([low, high], [row + offset] * 2, color=colour, linewidth=2.4)
            axes.plot(middle, row + offset, "o", color=colour, markersize=5.5, label=label if row == 0 else None)
    axes.set_yticks(range(len(found)), [one.condition for one in found], color=INK)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.grid(axis="x")
    axes.set_xlabel("points (median and quartiles over pairs of losses)")
    figure.legend(loc="outside upper right", ncols=2)
    return figure


def _share(count: int, of: Shift) -> Cell:
    return Cell(count / of.pairs, written=f"{count} ({100 * count / of.pairs:.0f} %)")


def _shift(condition: str, sources: Iterator[tuple[str, Sides]] | list[tuple[str, Sides]]) -> Shift:
    names, differences, verdicts = list[str](), list[tuple[float, float]](), 0
    for name, (one, other) in sources:
        names.append(name)
        losses = [key for key in one.compared if key in other.compared and _is_loss(one, key)]
        for place, a in enumerate(losses):
            for b in losses[place + 1 :]:
                if all(one.values[key].mean == other.values[key].mean for key in (a, b)):
                    continue  # The same runs of both losses: such a pair cannot move.
                pairs = one.pair(a, b), other.pair(a, b)
                if all(pair is not None and pair.untested is None for pair in pairs):
                    first, second = (pair for pair in pairs if pair is not None)
                    differences.append((first.difference, second.difference))
                    verdicts += (first.better or first.ahead) != (second.better or second.ahead)
    return Shift(condition, joined(names), np.array(differences), verdicts)


def _is_loss(found: Answer, key: str) -> bool:
    planned = found.question.methods[key]
    return planned.searched and planned.trained and not planned.constant


@cache
def _kept(name: str) -> Answer:
    return answer_of(MeasuredExperiment.kept(name))


def _records(name: str, other: str, suffix: str = "") -> Sides:
    """Two records of the same losses; `suffix` is what the second one adds to their keys, or to some of them."""
    one, found = _kept(name), _kept(other)
    if suffix:
        found = _of_methods(found, {key: key.removesuffix(suffix) for key in found.question.methods})
        one = _of_methods(one, {key: key for key in one.question.methods if key in found.question.methods})
    return one, found


def _of_methods(found: Answer, names: Mapping[str, str]) -> Answer:
    """Answer the same for some methods alone, under new names."""
    methods = {names[key]: planned for key, planned in found.question.methods.items() if key in names}
    frame = found.frame[found.frame["method"].isin(names)]
    return answer_frame(frame.assign(method=frame["method"].replace(names)), replace(found.question, methods=methods))


def _two(name: str, other: Callable[[Answer], Answer]) -> Sides:
    found = _kept(name)
    return found, other(found)


def _single(found: Answer) -> Answer:
    return answer_on(found, found.question.score, "separated", found.question.alpha)


def _precision(found: Answer) -> Answer:
    return answer_on(found, "precision_at_1", found.question.embeddings, found.question.alpha)


def early_of(found: Answer) -> Answer:
    """Answer the same about the models after a trial's steps."""
    early = early_answer(found)
    assert early is not None, "its trainings went on beyond those of its trials"
    return early


def _halves(name: str) -> Sides:
    """The first three searches of a record with six, and the others."""
    found = _kept(name)
    methods = {key: replace(own, searches=3) for key, own in found.question.methods.items()}
    question = replace(found.question, methods=methods, units=3)
    frames: Mapping[bool, Answer] = {
        late: answer_frame(found.frame[(found.frame["search"] >= 3) == late], question) for late in (False, True)
    }
    return frames[False], frames[True]
