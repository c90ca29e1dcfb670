"""Answers to claims from print and from stored runs: which experiment answers, and whether its conditions are equal.

A claim is answered by the comparison of one experiment that compares both methods, never by runs of several. Of several
experiments the one under the conditions of the claim's table is taken, then the one with the most complete searches,
then the one with the most runs, then the latest. Scores play no part in this choice.

A claim holds or is contradicted under its own conditions alone. Under others the verdict says what is seen here: a
frozen trunk, a part of the dataset or another network can turn a true difference around.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, get_args

from reports.published.eligibility import StoredExperiment, concerns, objections
from results.answer.answer_question import answer_on
from results.answer.deviations import setting_phrase
from results.answer.values import Answer, Pair
from results.published.claims import Claim
from results.published.print_alone import PrintAnswer, print_answer
from results.published.tables import PublishedCell, PublishedColumn, PublishedRow, published_table, published_tables
from results.spec.experiment_spec import Metric

ClaimVerdict = Literal[
    "holds",
    "contradicted",
    "seen here too",
    "not seen here",
    "the other way here",
    "cannot tell",
    "not compared",
    "not run",
]
"""`holds`: a is better under the conditions of the claim. `contradicted`: b is.

`seen here too`: a is better under other conditions. `the other way here`: b is. `not seen here`: under other conditions
the two are within the margin, of which more was claimed. `not compared`: there are runs of both methods, but no
experiment compares them in this score.
"""

_DIRECTIONS: dict[str, tuple[ClaimVerdict, ClaimVerdict]] = {
    "a better": ("holds", "seen here too"),
    "b better": ("contradicted", "the other way here"),
}


@dataclass(frozen=True)
class ExperimentAnswer:
    """What one experiment shows about a claim.

    Attributes:
        setting: Its setting as a phrase.
        pair: Method a compared with method b; its differences are a minus b, fractions of 1.
        answer: The experiment's answer on the claim's score, from which the pair is.
        verdict: Never `not compared` or `not run`.
        differences: How its conditions differ from those of the claim's table, as phrases; None if the claim names no
            published table, so that its conditions are not known.
    """

    experiment: str
    dataset: str
    setting: str
    score: str
    pair: Pair
    answer: Answer
    verdict: ClaimVerdict
    differences: tuple[str, ...] | None

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for answers to several claims that are one comparison: the same experiment, pair and score."""
        return self.experiment, frozenset((self.pair.a, self.pair.b)), self.score


@dataclass(frozen=True)
class AnsweredClaim:
    """A claim with its answers.

    Attributes:
        runs: What runs on the claim's dataset show, or on another one if that was asked for; None if there are none.
        not_compared: Experiments on the claim's dataset that have runs of both methods, but do not compare them in the
            claim's score.
        quoted: Sources of values that the claim's own source did not measure, by method.
    """

    claim: Claim
    printed: PrintAnswer
    runs: ExperimentAnswer | None
    quoted: dict[str, str]
    not_compared: tuple[str, ...] = ()

    @property
    def verdict(self) -> ClaimVerdict:
        """The verdict of the runs."""
        if self.runs is not None:
            return self.runs.verdict
        return "not compared" if self.not_compared else "not run"


def answer_claims(
    claims: Iterable[Claim], stored: Sequence[StoredExperiment], any_dataset: bool = False
) -> tuple[AnsweredClaim, ...]:
    """Answer claims.

    Args:
        stored: Experiments with runs, the latest first.
        any_dataset: Whether runs on other datasets may answer claims without runs on their own.
    """
    return tuple(_answered(claim, stored, any_dataset) for claim in claims)


def claimed_cells(claim: Claim) -> tuple[tuple[PublishedRow, PublishedCell], tuple[PublishedRow, PublishedCell]] | None:
    """Return the row and cell of a's and of b's value in the published table that the claim names.

    Returns:
        The cells; None if the claim names no published table, or if the table does not have the values.
    """
    if claim.setting not in published_tables():
        return None
    table, column = published_table(claim.setting), PublishedColumn(claim.dataset, claim.metric, claim.kind)
    a, b = (
        [
            (row, cell)
            for row in table.rows
            if row.key == method and value is not None
            if (cell := row.cells.get(column)) and cell.value == float(value)
        ]
        for method, value in ((claim.a, claim.value_a), (claim.b, claim.value_b))
    )
    # Rows of other networks may have equal values by chance.
    pairs = sorted(product(a, b), key=lambda pair: _likeness(pair[0][0], pair[1][0]), reverse=True)
    return pairs[0] if pairs else None


def _likeness(a: PublishedRow, b: PublishedRow) -> int:
    return (a.trunk == b.trunk) + (a.dimensions == b.dimensions) + (a.setting == b.setting)


def _answered(claim: Claim, stored: Sequence[StoredExperiment], any_dataset: bool) -> AnsweredClaim:
    answers, not_compared = [], []
    for one in stored:
        if one.dataset == claim.dataset or any_dataset:
            answer = _experiment_answer(claim, one)
            if answer is not None:
                answers.append(answer)
            elif one.dataset == claim.dataset and one.runs(claim.a) and one.runs(claim.b):
                not_compared.append(one.name)
    runs = max(answers, key=lambda answer: _rank(answer, claim), default=None)  # Of equal ones the first, the latest.
    return AnsweredClaim(claim, print_answer(claim), runs, _quoted(claim), tuple(not_compared))


def _rank(answer: ExperimentAnswer, claim: Claim) -> tuple[bool, bool, int, int]:
    pair, found = answer.pair, answer.answer
    by_search = found.question.unit == "search"
    searches = [side.count for side in (pair.of_a, pair.of_b) if not side.planned.constant] if by_search else [1]
    own_dataset = answer.dataset == claim.dataset
    return own_dataset, answer.differences == (), min(searches, default=1), min(pair.of_a.runs, pair.of_b.runs)


def _experiment_answer(claim: Claim, stored: StoredExperiment) -> ExperimentAnswer | None:
    metrics: tuple[Metric, ...] = get_args(Metric)
    metric = next((known for known in metrics if known == claim.metric), None)
    if metric is None:
        return None  # Experiments compare headline scores alone.
    found = answer_on(stored.answer, metric, "concatenated" if claim.kind == "concatenated" else "separated")
    pair = found.pair(claim.a, claim.b)
    if pair is None:
        return None
    differences = _differences(claim, stored)
    return ExperimentAnswer(
        stored.name,
        stored.dataset,
        setting_phrase(stored.measured.summary.experiment),
        f"{found.question.embeddings} {metric}",
        pair,
        found,
        _verdict(claim, pair, found.question.margin, its_conditions=differences == ()),
        differences,
    )


def _verdict(claim: Claim, pair: Pair, margin: float, *, its_conditions: bool) -> ClaimVerdict:
    if pair.direction in _DIRECTIONS:
        own, other = _DIRECTIONS[pair.direction]
        return own if its_conditions else other
    claimed_more = claim.points / 100 > margin
    return "not seen here" if not its_conditions and pair.size == "within" and claimed_more else "cannot tell"


def _differences(claim: Claim, stored: StoredExperiment) -> tuple[str, ...] | None:
    cells = claimed_cells(claim)
    if cells is None:
        return None
    table = published_table(claim.setting)
    reasons = [] if stored.dataset == claim.dataset else [f"dataset {stored.dataset}"]
    if not concerns(table, stored.name, stored.measured.summary):
        reasons.append(f"not the settings of {table.name}")
        stored = replace(stored, deviations=())
    for row, cell in cells:
        reasons += objections(table, row, cell, stored)
    reasons += [f"the paper quotes the value of {method} from {source}" for method, source in _quoted(claim).items()]
    return tuple(dict.fromkeys(reasons))


def _quoted(claim: Claim) -> dict[str, str]:
    return {
        row.key or "": cell.origin.quoted_from or "an unclear source"
        for row, cell in claimed_cells(claim) or ()
        if cell.origin.kind != "measured"
    }
