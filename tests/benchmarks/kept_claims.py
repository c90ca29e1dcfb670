"""Answers of a kept record to the papers' claims, as a short table for a page of the documentation."""

from collections import Counter
from collections.abc import Sequence

from reports.published.claim_answers import AnsweredClaim, ExperimentAnswer, answer_claims
from reports.published.eligibility import StoredExperiment
from reports.tables.claims_table import EQUAL, difference_words
from reproduce.config.deviations import deviations, mlrc_experiment
from results.experiment_results import MeasuredExperiment
from results.published.claims_file import shipped_claims


def claims_markdown(name: str, measured: MeasuredExperiment) -> str:
    """Return the papers' claims that the record can answer as Markdown: their number, and a row for each.

    Args:
        name: Name of the experiment that was run.
        measured: The kept record.
    """
    summary = measured.summary
    stored = StoredExperiment(name, measured, deviations(name, summary), mlrc_experiment(summary.dataset))
    answered = [(one, one.runs) for one in answer_claims(shipped_claims(), [stored]) if one.runs is not None]
    rows = [_row(one, runs, summary.methods) for one, runs in answered]
    head = [
        _summary([one for one, _ in answered]),
        "",
        "| Claim | Score | Claimed | Here | Answer |",
        "|---|---|--:|--:|---|",
    ]
    return "\n".join([*head, *rows])


def _summary(answered: Sequence[AnsweredClaim]) -> str:
    counts = Counter(one.verdict for one in answered)
    words = ", ".join(f"{number} {'hold' if verdict == 'holds' else verdict}" for verdict, number in counts.items())
    papers = len({one.claim.source for one in answered})
    return f"{len(answered)} claims from {papers} paper{'s' if papers > 1 else ''}: {words}."


def _row(one: AnsweredClaim, runs: ExperimentAnswer, titles: dict[str, str]) -> str:
    claim, pair = one.claim, runs.answer.pair
    compared = f"{titles[claim.a.method]} > {titles[claim.b.method]}{'†' if one.quoted else ''}"
    cells = (
        f"{claim.source}, {claim.place}: {compared}",
        claim.score,
        f"{claim.difference:+.{claim.digits}f}",
        difference_words(pair),
        _answer(runs),
    )
    return f"| {' | '.join(cells)} |"


def _answer(runs: ExperimentAnswer) -> str:
    answer = runs.answer
    if answer.pair.verdict == "equal":
        return f"{answer.verdict}: {EQUAL}"
    if answer.verdict == "holds" and answer.claimed not in (None, "inside"):
        return f"holds, {answer.claimed}"
    return answer.verdict
