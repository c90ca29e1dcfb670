"""Does an answer hold? The verdict about a pair, asked again under one other condition at a time.

Each condition is a question of its own at the level of the first. One that was not measured says what measures it.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

from results.answer.answer_question import answer_on, early_answer
from results.answer.answers import Answer
from results.answer.compare import compare, compare_at_looks, record_of_searches
from results.answer.question import Question
from results.answer.typical import method_values
from results.answer.values import MethodValues, Pair
from results.findings.experiment import ExperimentAnswer, recipes
from results.records.frame import EMBEDDING_KINDS
from results.spec.ends import FEWEST_SEARCHES
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.plan import Recipe
from results.wording import counted

MOST_PAIRS = 3
"""Number of pairs of the leading method that are shown first."""

AS_ASKED = "as asked"

_MOST_COUNTED = 50
"""Of more verdicts only the first ones are asked again."""

_MOST_METHODS = 20
"""Of more methods, one decides little of a pooled variance."""

_OTHER_SCORE = {"map_at_r": "precision_at_1", "precision_at_1": "map_at_r", "r_precision": "map_at_r"}


@dataclass(frozen=True)
class Check:
    """A pair under a condition.

    Attributes:
        condition: The condition in words, such as `as single models`.
        answer: The answer that the pair is of, whose question writes its numbers.
        pair: The pair there, in the order of the first; None where nothing was computed anew.
        holds: Whether the verdict is the same there; None if it was not measured.
        note: What decides it, or why it was not measured.
        measure: The option of `run` that measures it; empty if there is none.
    """

    condition: str
    answer: Answer
    pair: Pair | None
    holds: bool | None
    note: str = ""
    measure: str = ""


def first_pairs(found: Answer) -> list[Pair]:
    """Return the first tested pairs of the leading method: the best, or the one that others are compared with."""
    if found.interim:
        return []
    tested = [pair for pair in found.shown_pairs if pair.untested is None]
    return [pair for pair in tested if leader(found) in (pair.a, pair.b)][:MOST_PAIRS]


def leader(found: Answer) -> str:
    """Return the method that others are compared with, or the best one."""
    return found.reference or found.best


def pairs_with_verdict(found: Answer) -> list[Pair]:
    """Return the pairs of which one is better, or ahead, or that are equal; none while searches are missing."""
    return [] if found.interim else [pair for pair in found.shown_pairs if pair.untested is None and pair.verdict]


def counted_pairs(found: Answer) -> list[Pair]:
    """Return all pairs with a verdict; of many, those among the first pairs: each costs dozens of comparisons."""
    pairs = pairs_with_verdict(found)
    return pairs if len(pairs) <= _MOST_COUNTED else [pair for pair in first_pairs(found) if pair.verdict]


class OtherConditions:
    """An answer with the answers to the same question under other conditions."""

    def __init__(self, found: Answer) -> None:
        self.found = found

    def of(self, pair: Pair) -> list[Check]:
        """Return a pair under every condition, as it was asked first, with the better method as a."""
        if self.found.interim or pair.untested:
            return []
        pair = pair if self.found.question.sign * pair.difference >= 0 else pair.turned()
        kinds = (
            *(self._as_asked, self._trained, self._after_a_trial, self._ranges, self._batches),
            *(self._other_models, self._other_score, self._classes),
            *(self._without_one_value, self._without_one_method, self._varying_searches),
        )
        return [check for kind in kinds for check in kind(pair)]

    def _as_asked(self, pair: Pair) -> Iterator[Check]:
        yield Check(AS_ASKED, self.found, pair, holds=True)

    def _trained(self, pair: Pair) -> Iterator[Check]:
        if (experiment := self.found.question.experiment) is None:
            return
        behind = [own.planned for own in _behind(pair) if own.planned.trained]
        if not behind:
            return
        condition = "trained to the end"
        if cut := [f"{planned.title} {planned.cut_off}" for planned in behind if planned.cut_off]:
            epochs = experiment.reproduction_epochs or experiment.conditions.training.max_epochs
            longer = f"--set reproduction_epochs={4 * epochs}" if experiment.protocol == "mlrc" else ""
            yield Check(condition, self.found, None, None, f"cut off: {', '.join(cut)}", longer)
        elif unknown := [planned.title for planned in behind if planned.cut_off is None]:
            yield Check(condition, self.found, None, None, f"not recorded for {', '.join(unknown)}")
        else:
            yield Check(condition, self.found, None, holds=True, note="no more than a fifth was cut off")

    def _after_a_trial(self, pair: Pair) -> Iterator[Check]:
        if self._early is not None and self._early_steps:
            check = self._same(f"after {counted(self._early_steps, 'step')}", self._early, pair)
            yield replace(check, note="where trials ended")

    def _ranges(self, pair: Pair) -> Iterator[Check]:
        behind = [own.planned for own in _behind(pair) if own.planned.searched]
        if (experiment := self.found.question.experiment) is None or not experiment.search.trials or not behind:
            return
        condition, pressed = "beyond the ranges", [f"{one.title} {one.pressed}" for one in behind if one.pressed]
        if experiment.search.searches < FEWEST_SEARCHES:
            note = f"fewer than three searches of each; settings at an end: {'; '.join(pressed) or 'none'}"
            yield Check(condition, self.found, None, None, note, f"--searches {FEWEST_SEARCHES}")
        elif pressed:
            probed = "" if experiment.search.probe_ends else "--set search.probe_ends=true"
            yield Check(condition, self.found, None, None, f"pressed: {'; '.join(pressed)}", probed)
        else:
            yield Check(condition, self.found, None, holds=True, note="no end holds the search up")

    def _batches(self, pair: Pair) -> Iterator[Check]:
        recipes_of_both = [self._recipes[key] for key in (pair.a, pair.b) if key in self._recipes]
        if len(recipes_of_both) < 2:
            return
        condition, images = "with equal batches", [recipe.images_of_a_class for recipe in recipes_of_both]
        if images[0] == images[1]:
            yield Check(condition, self.found, None, holds=True, note=f"images of a class: {images[0]} for both")
        else:
            titles = self.found.titles
            note = f"images of a class: {titles[pair.a]} {images[0]}, {titles[pair.b]} {images[1]}"
            searched = pair.of_a.planned.searched and pair.of_b.planned.searched
            measure = "--set search.equal_spaces=true" if searched else ""
            yield Check(condition, self.found, None, None, note, measure)

    def _other_models(self, pair: Pair) -> Iterator[Check]:
        if self._models > 1 and self.found.question.score in HEADLINE_METRICS:
            (kind,) = set(EMBEDDING_KINDS) - {self.found.question.embeddings}
            condition = "as single models" if kind == "separated" else "as joined models"
            yield self._same(condition, self._on(self.found.question.score, kind), pair)

    def _other_score(self, pair: Pair) -> Iterator[Check]:
        question = self.found.question
        other = _OTHER_SCORE.get(question.score, "")
        there = self.found.frame
        if ((there["metric"] == other) & (there["embeddings"] == question.embeddings)).any():
            yield self._same(f"in {HEADLINE_METRICS[other]}", self._on(other, question.embeddings), pair)

    def _classes(self, pair: Pair) -> Iterator[Check]:
        """With an interval over classes and searches together: both vary."""
        if pair.over_classes is None or pair.half_width is None or not pair.verdict:
            return
        width, bound = math.hypot(pair.over_classes, pair.half_width), self.found.question.bound or 0.0
        differs = bool(pair.better or pair.ahead)
        holds = abs(pair.difference) > width if differs else abs(pair.difference) + width <= bound
        there = replace(pair, half_width=width)
        if not holds:
            there = replace(there, direction="cannot tell", size="cannot tell", ahead=None)
        yield Check("over other test classes", self.found, there, holds)

    def _without_one_value(self, pair: Pair) -> Iterator[Check]:
        """Without the value of the two whose absence weakens the verdict most."""
        question, values = self.found.question, self.found.values
        if not pair.verdict or question.looks or question.sample.test in ("assumed", "welch"):
            return
        without: list[tuple[str, Mapping[str, MethodValues]]] = []
        if question.sample.paired:
            shared = [str(key) for key in next(iter(self.found.runs.values()))]
            for place, name in enumerate(shared):
                without.append((name, {key: _without(own, place) for key, own in values.items()}))
        else:
            for key in (pair.a, pair.b):
                own = values[key]
                for place in range(len(own.units)) if len(own.units) > 2 and not own.planned.constant else ():
                    name = f"that of {self.found.titles[key]} with {self.found.scaling.score(own.units[place])}"
                    without.append((name, {**values, key: _without(own, place)}))
        one = f"without one {question.sample.word}"
        yield from self._weakest(one, pair, [(name, question, own) for name, own in without])

    def _without_one_method(self, pair: Pair) -> Iterator[Check]:
        """Without the method whose absence weakens the verdict most: others are in a pooled variance."""
        question, compared = self.found.question, self.found.question.compared
        if not pair.verdict or question.looks or not 2 < len(compared) <= _MOST_METHODS:
            return
        others = [key for key in compared if key not in (pair.a, pair.b, self.found.reference)]
        pooled = question.sample.test in ("pooled", "paired")
        without = [(self.found.titles[key], *self._without_method(key)) for key in others if pooled]
        yield from self._weakest("without one other method", pair, without)

    def _weakest(
        self, condition: str, pair: Pair, without: list[tuple[str, Question, Mapping[str, MethodValues]]]
    ) -> Iterator[Check]:
        checks, sign = list[tuple[bool, float, Check]](), 1 if pair.difference > 0 else -1
        for name, question, values in without:
            for one in compare(question, values, only=(pair.a, pair.b)):
                there = (one if one.a == pair.a else one.turned()).limited()
                if there.untested is None:
                    holds, half_width = there.verdict == pair.verdict, there.half_width or 0.0
                    check = Check(condition, self.found, there, holds, f"{name} decides most")
                    surer = sign * there.difference / (half_width or 1.0)
                    if pair.size == "within" and not pair.better:
                        surer = -abs(there.difference) - half_width
                    checks.append((holds, surer, check))
        if checks:
            yield min(checks, key=itemgetter(0, 1))[2]

    def _varying_searches(self, pair: Pair) -> Iterator[Check]:
        """With searches that vary as those of a record, or that vary at all where settings were given."""
        if pair.better and pair.break_even is not None:
            room = f"by more than {self.found.scaling.two_digits(pair.break_even)}" if pair.break_even else "at all"
            note = f"gone if searches of the two vary {room}"
            yield Check("with a search of each", self.found, None, None, note)
        elif self._with_record is not None and (record := record_of_searches(self.found)):
            check = self._same("if searches vary as in a record", self._with_record, pair)
            deviation = self.found.scaling.gap_words(record.deviation, more=True)
            yield replace(check, note=f"by {deviation}, as in {record.record} ({record.setting})")

    def _same(self, condition: str, answer: Answer, pair: Pair) -> Check:
        there = answer.pair(pair.a, pair.b)
        if there is None or there.untested:
            return Check(condition, answer, None, None, there.untested or "" if there else "not compared there")
        return Check(condition, answer, there, there.verdict == pair.verdict)

    def _on(self, metric: str, embeddings: str) -> Answer:
        return answer_on(self.found, metric, embeddings, self.found.question.alpha)

    def _without_method(self, key: str) -> tuple[Question, Mapping[str, MethodValues]]:
        """The question about all methods but one, and their values: the same for every pair."""
        if key not in self._fewer:
            question = self.found.question
            asked = question.only([one for one in question.compared if one != key], question.compare)
            values = self.found.values if question.sample.paired else method_values(asked, self.found.runs)
            self._fewer[key] = asked, values
        return self._fewer[key]

    @cached_property
    def _fewer(self) -> dict[str, tuple[Question, Mapping[str, MethodValues]]]:
        return {}

    @cached_property
    def _early(self) -> Answer | None:
        return early_answer(self.found)

    @cached_property
    def _early_steps(self) -> int:
        records = self.found.measured.records if isinstance(self.found, ExperimentAnswer) else ()
        return next((run.early.steps for run in records if run.early), 0)

    @cached_property
    def _recipes(self) -> dict[str, Recipe]:
        if not isinstance(self.found, ExperimentAnswer):
            return {}
        return recipes(self.found.measured.plan, self.found.measured.runs)

    @cached_property
    def _models(self) -> int:
        records = self.found.measured.records if isinstance(self.found, ExperimentAnswer) else ()
        return max((len(run.fold_scores) for run in records), default=1)

    @cached_property
    def _with_record(self) -> Answer | None:
        """The answer if searches of losses are taken to vary by no less than those of the nearest record."""
        if (record := record_of_searches(self.found)) is None:
            return None
        question = replace(self.found.question, least_deviation=record.deviation)
        if question.looks:
            _, pairs = compare_at_looks(question, self.found.runs)
        else:
            pairs = compare(question, self.found.values)
        return replace(self.found, pairs=tuple(pair.limited() for pair in pairs))


def _behind(pair: Pair) -> list[MethodValues]:
    """The method that could be better than it looks: the worse one; both where none is called better."""
    if pair.better or pair.ahead:
        return [pair.of_b if (pair.better or pair.ahead) == pair.a else pair.of_a]
    return [pair.of_a, pair.of_b]


def _without(own: MethodValues, place: int) -> MethodValues:
    return replace(own, units=own.units[:place] + own.units[place + 1 :])
