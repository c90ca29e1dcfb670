"""Answers to claims from print and from stored runs: which experiment answers, and whether its conditions are equal.

A claim is answered by one experiment that has runs of both methods under equal conditions, never by runs of several.
Of several experiments the one under the conditions of the claim's table is taken, then the one with the most runs, then
the latest. Scores play no part in this choice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from reports.published.eligibility import StoredExperiment, concerns, models_of, objections
from results.published.claims_file import Claim
from results.published.rows import row_origin
from results.published.tables import PublishedCell, PublishedColumn, PublishedRow, published_table, published_tables
from results.statistics.measured_noise import kept_measurements, nearest_noise, setting_phrase
from results.statistics.print_alone import ClaimVerdict, PrintAnswer, RunsAnswer, print_answer, runs_answer
from results.statistics.run_values import EmbeddingKind, run_values
from results.store.experiment_results import MeasuredExperiment


@dataclass(frozen=True)
class ExperimentAnswer:
    """What one experiment shows about a claim.

    Attributes:
        setting: Its setting as a phrase.
        differences: How its conditions differ from those of the claim's table, as phrases; None if the claim names no
            published table, so that its conditions are not known.
    """

    experiment: str
    dataset: str
    setting: str
    answer: RunsAnswer
    differences: tuple[str, ...] | None


@dataclass(frozen=True)
class AnsweredClaim:
    """A claim with its answers.

    Attributes:
        runs: What runs on the claim's dataset show; None if there are none.
        elsewhere: What runs on other datasets show, if they were asked for.
        quoted: Sources of values that the claim's own source did not measure, by method.
    """

    claim: Claim
    printed: PrintAnswer
    runs: ExperimentAnswer | None
    elsewhere: tuple[ExperimentAnswer, ...]
    quoted: dict[str, str]

    @property
    def verdict(self) -> ClaimVerdict:
        """The verdict of runs on the claim's dataset."""
        return "not run" if self.runs is None else self.runs.answer.verdict


def answer_claims(
    claims: Iterable[Claim], stored: Sequence[StoredExperiment], any_dataset: bool = False
) -> tuple[AnsweredClaim, ...]:
    """Answer claims.

    Args:
        stored: Experiments with runs, the latest first.
        any_dataset: Whether to look for runs on other datasets too, for claims without runs on their own.
    """
    measured = (*((one.name, one.measured) for one in stored), *kept_measurements())
    return tuple(_answered(claim, stored, measured, any_dataset) for claim in claims)


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
            if row.key == side.method and (cell := row.cells.get(column)) and cell.value == side.value is not None
        ]
        for side in (claim.a, claim.b)
    )
    # Rows of other networks may have equal values by chance.
    pairs = sorted(product(a, b), key=lambda pair: _likeness(pair[0][0], pair[1][0]), reverse=True)
    return pairs[0] if pairs else None


def _likeness(a: PublishedRow, b: PublishedRow) -> int:
    return (a.trunk == b.trunk) + (a.dimensions == b.dimensions) + (a.setting == b.setting)


def _answered(
    claim: Claim,
    stored: Sequence[StoredExperiment],
    measured: Iterable[tuple[str, MeasuredExperiment]],
    any_dataset: bool,
) -> AnsweredClaim:
    answers: dict[str, ExperimentAnswer] = {}
    for one in stored:
        if one.dataset == claim.dataset or any_dataset:
            answer = _experiment_answer(claim, one)
            if answer and (one.dataset not in answers or _rank(answer) > _rank(answers[one.dataset])):
                answers[one.dataset] = answer
    runs = answers.pop(claim.dataset, None)
    return AnsweredClaim(
        claim,
        print_answer(claim, nearest_noise(measured, claim.dataset, claim.metric, claim.kind)),
        runs,
        () if runs else tuple(answers.values()),
        _quoted(claim),
    )


def _rank(answer: ExperimentAnswer) -> tuple[bool, int]:
    pair = answer.answer.pair
    return answer.differences == (), min(pair.n_a, pair.n_b)


def _experiment_answer(claim: Claim, stored: StoredExperiment) -> ExperimentAnswer | None:
    experiment = stored.measured.summary.experiment
    a, b = claim.a.method, claim.b.method
    conditions = experiment.conditions_of(a)
    if not {a, b} <= set(experiment.rows) or experiment.conditions_of(b) != conditions:
        return None
    comparable = {row for row in experiment.rows if experiment.conditions_of(row) == conditions}
    kind: EmbeddingKind = "concatenated" if claim.kind == "concatenated" else "separated"
    try:
        values = run_values(
            [record for record in stored.measured.records if record.method in comparable], claim.metric, kind
        )
    except ValueError:  # A run was not evaluated with this score.
        return None
    if a not in values or b not in values:
        return None
    answer = runs_answer(values, a, b, claim.difference / 100, stored.measured.summary.constant)
    return ExperimentAnswer(
        stored.name, stored.dataset, setting_phrase(stored.measured), answer, _differences(claim, stored)
    )


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
        reasons += objections(table, row, cell, stored, models_of(stored.runs(cell.key or "")[0]))
    reasons += [f"the paper quotes the value of {method} from {source}" for method, source in _quoted(claim).items()]
    return tuple(dict.fromkeys(reasons))


def _quoted(claim: Claim) -> dict[str, str]:
    quoted = {}
    for row, cell in claimed_cells(claim) or ():
        origin = row_origin(claim.setting, row, claim.dataset)
        if origin.kind != "measured":
            quoted[cell.key or ""] = origin.quoted_from or "an unclear source"
    return quoted
