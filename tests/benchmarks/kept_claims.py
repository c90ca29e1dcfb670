"""Answers of a kept record to the papers' claims, as a short table for a page of the documentation."""

from collections import Counter
from collections.abc import Sequence

from reports.published.claim_answers import AnsweredClaim, ExperimentAnswer, answer_claims
from reports.published.eligibility import StoredExperiment
from reports.tables.claims_table import difference_words
from reports.tables.differences import size_words
from reproduce.config.deviations import deviations, mlrc_experiment
from results.published.claims_file import shipped_claims
from results.statistics.comparison_result import ComparedPair, Direction
from results.store.experiment_results import MeasuredExperiment


def claims_markdown(name: str, measured: MeasuredExperiment) -> str:
    """Return the papers' claims that the record can answer as Markdown: their number, and a row for each.

    Args:
        name: Name of the experiment that was run.
        measured: The kept record.
    """
    summary = measured.summary
    answers = answer_claims(shipped_claims(), [_stored(name, measured)])
    answered = [(one, one.runs) for one in answers if one.runs is not None]
    rows = [_row(one, runs, summary.methods) for one, runs in answered]
    head = [
        _summary([one for one, _ in answered]),
        "",
        "| Claim | Score | Claimed | Here | Answer |",
        "|---|---|--:|--:|---|",
    ]
    return "\n".join([*head, *rows])


def claims_elsewhere_markdown(name: str, measured: MeasuredExperiment) -> str:
    """Return what a record shows of claims about other datasets than its own: a row for each pair of methods and score.

    Nothing is said about the claimed sizes, since these belong to the claim's dataset.

    Args:
        name: Name of the experiment that was run.
        measured: The kept record.
    """
    summary = measured.summary
    alike: dict[tuple[str, ...], list[AnsweredClaim]] = {}
    for one in answer_claims(shipped_claims(), [_stored(name, measured)], any_dataset=True):
        if one.elsewhere:
            claim = one.claim
            same = (claim.source, claim.a.method, claim.b.method, claim.metric, claim.kind)
            alike.setdefault(same, []).append(one)
    pairs = [claims[0].elsewhere[0].answer.pair for claims in alike.values()]
    counts = Counter(_DIRECTIONS[pair.direction] for pair in pairs)
    head = [
        f"{len(pairs)} pairs: {', '.join(f'{number} {words}' for words, number in counts.items())}.",
        "",
        f"| Claim | Score | Claimed | On {summary.dataset} | Answer |",
        "|---|---|--:|--:|---|",
    ]
    rows = [_row_of_pair(claims, pair, summary.methods) for claims, pair in zip(alike.values(), pairs, strict=True)]
    return "\n".join([*head, *rows])


_DIRECTIONS: dict[Direction, str] = {
    "a better": "the same direction",
    "b better": "the other direction",
    "cannot tell": "cannot tell",
}


def _stored(name: str, measured: MeasuredExperiment) -> StoredExperiment:
    summary = measured.summary
    return StoredExperiment(name, measured, deviations(name, summary), mlrc_experiment(summary.dataset))


def _row_of_pair(claims: Sequence[AnsweredClaim], pair: ComparedPair, titles: dict[str, str]) -> str:
    claim = claims[0].claim
    differences = sorted({one.claim.difference for one in claims})
    sizes = " to ".join(f"{size:+.{claim.digits}f}" for size in dict.fromkeys((differences[0], differences[-1])))
    cells = (
        f"{claim.source}: {titles[claim.a.method]} > {titles[claim.b.method]}",
        claim.score,
        f"{sizes} ({', '.join(dict.fromkeys(one.claim.dataset for one in claims))})",
        difference_words(pair),
        _DIRECTIONS[pair.direction],
    )
    return _line(cells)


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
    return _line(cells)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _answer(runs: ExperimentAnswer) -> str:
    """Direction, size against the margin and claimed size: `holds; within 0.5; claimed size excluded`."""
    answer = runs.answer
    parts = [answer.verdict, answer.pair.untested or ""]
    if answer.pair.size != "cannot tell":
        parts.append(size_words(answer.pair, answer.comparison.margin))
    if answer.verdict != "contradicted" and answer.claimed == "excluded":
        parts.append("claimed size excluded")
    return "; ".join(part for part in parts if part)
