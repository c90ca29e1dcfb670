"""Claims with their answers from print and from stored runs, and their table.

A claim is answered by the comparison of one experiment that compares both methods, never by runs of several. Of several
experiments the one under the conditions of the claim's table is taken, then the one with the most complete searches,
then the one with the most runs, then the one with the fewest departures from the claim's conditions, then the latest.
Scores play no part in this choice. The others are named with their verdicts.

A claim holds or is contradicted under its own conditions alone. Under others the verdict says what is seen here: a
frozen trunk, a part of the dataset or another network can turn a true difference around.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal, get_args

from reports.published.eligibility import StoredExperiment, concerns, objections
from reports.tables.differences import P_VALUE, shown_cell, size_words
from reports.tables.table import Cell, Column, Row, Table
from results.answer.answer_question import answer_on
from results.answer.answers import Answer
from results.answer.deviations import setting_phrase
from results.answer.values import Pair
from results.numbers import POINTS, NumberFormat
from results.published.claims import Claim, claimed_cells, quoted_values
from results.published.print_alone import PrintAnswer, PrintVerdict, print_answer
from results.published.tables import published_table
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.wording import counted, listed, verb

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
class RunsAnswer:
    """What one experiment shows about a claim.

    Attributes:
        stored: The experiment.
        answer: Its answer on the claim's score, from which the pair is.
        pair: Method a compared with method b; its differences are a minus b, fractions of 1.
        verdict: Never `not compared` or `not run`.
        differences: How its conditions differ from those of the claim's table, as phrases; None if the claim names no
            published table, so that its conditions are not known.
    """

    stored: StoredExperiment
    answer: Answer
    pair: Pair
    verdict: ClaimVerdict
    differences: tuple[str, ...] | None

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for answers to several claims that are one comparison: the same experiment, pair and score."""
        question = self.answer.question
        return self.stored.name, frozenset((self.pair.a, self.pair.b)), question.embeddings, question.score


@dataclass(frozen=True)
class AnsweredClaim:
    """A claim with its answers.

    Attributes:
        runs: What runs on the claim's dataset show, or on another one if that was asked for; None if there are none.
        not_compared: Experiments on the claim's dataset that have runs of both methods, but do not compare them in the
            claim's score.
        quoted: Sources of values that the claim's own source did not measure, by method.
        others: What other experiments on the dataset of `runs` show.
    """

    claim: Claim
    printed: PrintAnswer
    runs: RunsAnswer | None
    quoted: dict[str, str]
    not_compared: tuple[str, ...] = ()
    others: tuple[RunsAnswer, ...] = ()

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

    @cache  # Many claims ask an experiment about the same score.
    def found(place: int, metric: str, embeddings: str) -> Answer:
        return answer_on(stored[place].answer, metric, embeddings)

    return tuple(_answered(claim, stored, found, any_dataset) for claim in claims)


def _answered(
    claim: Claim, stored: Sequence[StoredExperiment], found: Callable[[int, str, str], Answer], any_dataset: bool
) -> AnsweredClaim:
    answers, not_compared = [], []
    for place, one in enumerate(stored):
        if one.dataset == claim.dataset or any_dataset:
            answer = _runs_answer(claim, one, partial(found, place))
            if answer is not None:
                answers.append(answer)
            elif one.dataset == claim.dataset and one.runs(claim.a) and one.runs(claim.b):
                not_compared.append(one.name)
    runs = max(answers, key=lambda answer: _rank(answer, claim), default=None)  # Of equal ones the first, the latest.
    others = [one for one in answers if runs and one is not runs and one.stored.dataset == runs.stored.dataset]
    return AnsweredClaim(claim, print_answer(claim), runs, quoted_values(claim), tuple(not_compared), tuple(others))


def _rank(answer: RunsAnswer, claim: Claim) -> tuple[bool, bool, int, int, int]:
    pair, found = answer.pair, answer.answer
    searches = [1]
    if found.sample.of_searches:
        searches = [side.count for side in (pair.of_a, pair.of_b) if not side.planned.constant]
    own_dataset = answer.stored.dataset == claim.dataset
    units, runs = min(searches, default=1), min(pair.of_a.runs, pair.of_b.runs)
    return own_dataset, answer.differences == (), units, runs, -len(answer.differences or ())


def _runs_answer(claim: Claim, stored: StoredExperiment, on: Callable[[str, str], Answer]) -> RunsAnswer | None:
    if claim.metric not in HEADLINE_METRICS:
        return None  # Experiments compare headline scores alone.
    found = on(claim.metric, "concatenated" if claim.kind == "concatenated" else "separated")
    pair = found.pair(claim.a, claim.b)
    if pair is None:
        return None
    differences = _differences(claim, stored)
    verdict: ClaimVerdict = "cannot tell"
    if not found.interim:
        verdict = _verdict(claim, pair, found.question.bound or 0.0, its_conditions=differences == ())
    return RunsAnswer(stored, found, pair, verdict, differences)


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
    if not concerns(table, stored.name, stored.measured.plan):
        reasons.append(f"not the settings of {table.name}")
        stored = replace(stored, departures=())
    for row, cell in cells:
        reasons += objections(table, row, cell, stored)
    reasons += [
        f"the paper quotes the value of {method} from {source}" for method, source in quoted_values(claim).items()
    ]
    return tuple(dict.fromkeys(reasons))


_CAPTION = (
    "A claim says that the first method is better. Claimed: the printed difference in percentage points. Noise: two "
    "equal methods with these numbers of runs differ by more in 5 % of cases. It is from the ± of the two values, else "
    "from the ± that papers print for the same dataset and score. The chance of the search is no part of a ±, so "
    "beyond noise is about the printed settings. Gone at: the deviation of searches, in points, beyond which it is no "
    "longer beyond noise. Runs: what the runs in the store show. Each claim is judged by "
    "itself; nothing is corrected for the number of claims."
)
_CAPTION_OF_RUNS = (
    "The verdict is that of the experiment's one comparison on this score, corrected for all pairs that it compares; "
    "on another score than its primary one at a fifth of the level. Size: the difference against the experiment's "
    "margin; interim while searches or runs of the experiment are missing. Ours: the difference with its own 95 % "
    "interval, which is not corrected. Claimed size: excluded if this interval does not hold it, and nothing held a "
    "method up. Holds, contradicted: the conditions are the claim's. Seen here too, the other way "
    "here, not seen here: they are other ones, and say nothing about those of the claim. Not seen here: the two are "
    "within the margin, of which more was claimed. Would have shown: the smallest true difference that would be called "
    "better with a probability of 80 %."
)
_OF_CLAIM = ("dataset", "score", "claimed", "noise", "print alone", "gone at", "runs")
_OF_RUNS = ("size", "ours", "claimed size", "p", "would have shown", "n", "experiment")
_NUMBERS = {"claimed", "noise", "gone at", "ours", "p", "would have shown", "n"}


def claims_table(answered: Sequence[AnsweredClaim], title: str) -> Table:
    """Build the table of claims: a row each, with columns about runs only if there are any."""
    with_runs = any(one.runs for one in answered)
    names = (*_OF_CLAIM, *(_OF_RUNS if with_runs else ()))
    return Table(
        title=title,
        caption=" ".join((_CAPTION, *([_CAPTION_OF_RUNS] if with_runs else []))),
        columns=tuple(Column(name, numeric=name in _NUMBERS) for name in names),
        rows=tuple(replace(row, cells=row.cells[: len(names)]) for row in map(_row, answered)),
        first="Claim",
        notes=(_summary(answered), *dict.fromkeys(note for one in answered for note in _notes(one))),
        remarks=tuple(_remarks(answered)),
    )


def _head(one: AnsweredClaim) -> str:
    claim = one.claim
    origin = ", ".join(part for part in (claim.source, claim.place) if part)
    pair = f"{claim.a} > {claim.b}"
    return f"{origin}: {pair}" if origin else pair


def _row(one: AnsweredClaim) -> Row:
    claim, printed = one.claim, one.printed
    cells = (
        Cell(claim.dataset),
        Cell(claim.score),
        Cell(claim.points, form=NumberFormat(digits=claim.digits, signed=True), kind="published"),
        Cell(printed.noise, form=NumberFormat(digits=2)),
        Cell(printed.verdict),
        Cell(printed.break_even, form=NumberFormat(digits=2)),
        Cell(one.verdict),
    )
    return Row(_head(one), (*cells, *_answer_cells(claim, one.runs)), sign="†" if one.quoted else "")


def _answer_cells(claim: Claim, answer: RunsAnswer | None) -> list[Cell]:
    """The cells about runs; nothing is said about the claimed size under other conditions, or of an interim answer."""
    if answer is None:
        return [Cell()] * len(_OF_RUNS)
    pair, found = answer.pair, answer.answer
    size = "interim" if found.interim else found.ahead_words(pair) or size_words(pair, found.question)
    counts = [len(side.units) for side in (pair.of_a, pair.of_b)]
    return [
        Cell(pair.untested or size),
        Cell(pair.difference, pair.half_width, form=POINTS, kind="measured"),
        Cell(pair.claimed_size(claim.points / 100) if answer.differences == () and not found.interim else None),
        Cell(pair.p_better, form=P_VALUE),
        shown_cell(pair.smallest, found.question),
        Cell(counts[0], written=f"{', '.join(map(str, dict.fromkeys(counts)))} {found.sample.values}"),
        Cell(answer.stored.name),
    ]


def _summary(answered: Sequence[AnsweredClaim]) -> str:
    others = [print_answer(one.claim, "standard deviation").verdict for one in answered]
    alone, other = (
        ", ".join(f"{found.count(verdict)} {verdict}" for verdict in get_args(PrintVerdict) if verdict in found)
        for found in ([one.printed.verdict for one in answered], others)
    )
    if other != alone:
        alone += f" (if a ± of unstated meaning is a deviation, {other})"
    here = [one.runs for one in answered if one.runs is not None]
    without = Counter(one.verdict for one in answered if one.runs is None)
    counts = [verdict_counts(here)] if here else []
    counts += [f"{counted(count, 'claim')} {verdict}" for verdict, count in sorted(without.items())]
    return f"{counted(len(answered), 'claim')}. Print alone: {alone}. Runs: {'; '.join(counts)}."


def verdict_counts(answers: Iterable[RunsAnswer]) -> str:
    """Count the verdicts of distinct comparisons: `10 claims answered by 8 comparisons: 2 hold, 6 cannot tell`."""
    claims = list(answers)
    distinct = dict.fromkeys((answer.verdict, answer.identity) for answer in claims)
    verdicts = Counter(verdict for verdict, _ in distinct)
    words = [f"{number} {'hold' if verdict == 'holds' else verdict}" for verdict, number in verdicts.most_common()]
    comparisons = counted(len({identity for _, identity in distinct}), "comparison")
    return f"{counted(len(claims), 'claim')} answered by {comparisons}: {', '.join(words)}"


def _notes(one: AnsweredClaim) -> Iterator[str]:
    """Say under which conditions the experiments were run, and what their verdicts rest on."""
    if one.not_compared:
        have = verb(len(one.not_compared), "have")
        yield f"{_head(one)}: {listed(one.not_compared)} {have} both, but no comparison in {one.claim.score}."
    if (answer := one.runs) is None:
        return
    if one.others:
        others = [f"{other.stored.name} ({other.verdict})" for other in one.others]
        yield f"{_head(one)}: answered by {answer.stored.name}; {listed(others)} could answer too."
    if answer.answer.sample.test == "assumed":
        assumed = answer.answer.question.assumed
        rests = f", whose deviation is taken as twice that in {assumed.record}" if assumed else ""
        yield f"{answer.stored.name}: one search of each method{rests}."
    if answer.differences:
        claimed = f"than those of {one.claim.setting}" if one.claim.setting else "than the claim's"
        yield f"{answer.stored.name}, other conditions {claimed}: {'; '.join(answer.differences)}."
    elif answer.differences is None:
        setting = setting_phrase(answer.stored.measured.plan.experiment)
        yield f"{answer.stored.name} is {setting}; the claim names no published table to compare it with."


def _remarks(answered: Sequence[AnsweredClaim]) -> list[str]:
    lines = list(dict.fromkeys(line for one in answered if (line := _origin(one))))
    if any(one.printed.noise for one in answered):
        lines.append(
            "A value without ± and without a stated number of runs counts as one run. A ± that does not state its "
            "meaning or its number of runs is read in the way that gives the most noise."
        )
    quotes = sorted({f"{method} from {source}" for one in answered for method, source in one.quoted.items()})
    if quotes:
        lines.append(
            "† The source of the claim did not measure both values under its own conditions. It quotes "
            f"{'; '.join(quotes)}."
        )
    return lines


def _origin(one: AnsweredClaim) -> str:
    """Say where a deviation is from; empty for the values' own ±."""
    claim, printed = one.claim, one.printed
    if printed.deviation is None or printed.own:
        return ""
    tables = listed(list(dict.fromkeys(spread.table for spread in printed.source)))
    deviation = f"s = {printed.deviation:.2f} points"
    return f"{len(printed.source)} printed ± for {claim.score} on {claim.dataset}: {deviation}, from {tables}."
