"""Answers of a kept record to the papers' claims, and the ± that papers print, as tables of the documentation."""

from collections.abc import Sequence

from reports.published.claim_answers import AnsweredClaim, ExperimentAnswer, answer_claims
from reports.published.eligibility import StoredExperiment
from reports.tables.claims_table import difference_words, verdict_counts
from reports.tables.differences import size_words
from reproduce.config.deviations import deviations, mlrc_experiment
from results.published.claims_file import Claim, shipped_claims
from results.published.spreads import READINGS, pooled_spread, printed_spreads
from results.published.tables import PublishedColumn, published_table, published_tables
from results.statistics.print_alone import noise_of
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted


def claims_markdown(name: str, measured: MeasuredExperiment) -> str:
    """Return the papers' claims that the record can answer as Markdown: their number, and a row for each comparison.

    Args:
        name: Name of the experiment that was run.
        measured: The kept record.
    """
    return _markdown(name, measured, elsewhere=False)


def claims_elsewhere_markdown(name: str, measured: MeasuredExperiment) -> str:
    """Return what a record shows of claims about other datasets than its own, likewise.

    Nothing is said about the claimed sizes, since these belong to the claim's dataset.
    """
    return _markdown(name, measured, elsewhere=True)


def elsewhere_counts(name: str, measured: MeasuredExperiment) -> str:
    """Count what a record shows of claims about other datasets than its own, in words."""
    return verdict_counts([answer for claims in _answered(name, measured, elsewhere=True) for _, answer in claims])


def printed_deviations_markdown() -> str:
    """Return the pooled printed ± of every dataset and score of which more is better as Markdown."""
    columns = {column for name in published_tables() for column in published_table(name).columns}
    head = [
        "| dataset | score | embeddings | ± | deviation s | two equal single runs differ by | from |",
        "|---|---|---|--:|--:|--:|---|",
    ]
    return "\n".join([*head, *(row for column in sorted(columns) if (row := _row_of_spreads(column)))])


_TITLES = {"precision_at_1": "R@1", "map_at_r": "MAP@R", "map@1000": "mAP@1000", "nmi": "NMI"}
_KINDS = {"single": "one model", "concatenated": "concatenated", "separated": "separated"}


def _row_of_spreads(column: PublishedColumn) -> str:
    title = _TITLES.get(column.metric, column.metric.replace("recall@", "R@"))
    spreads = printed_spreads(column)
    if not spreads or (title == column.metric):
        return ""
    read = [found for reading in READINGS if (found := pooled_spread(spreads, reading))]
    noise, deviation = max((noise_of(*found, 1, 1), found[0]) for found in read)
    tables = ", ".join(dict.fromkeys(spread.table for spread in spreads))
    return _line(
        (column.dataset, title, _KINDS[column.kind], str(len(spreads)), f"{deviation:.2f}", f"{noise:.2f}", tables)
    )


_Alike = list[list[tuple[AnsweredClaim, ExperimentAnswer]]]
"""Claims with their answers; those that one comparison answers alike are together."""


def _answered(name: str, measured: MeasuredExperiment, elsewhere: bool) -> _Alike:
    summary = measured.summary
    stored = StoredExperiment(name, measured, deviations(name, summary), mlrc_experiment(summary.dataset))
    alike: dict[tuple[object, ...], list[tuple[AnsweredClaim, ExperimentAnswer]]] = {}
    for one in answer_claims(shipped_claims(), [stored], any_dataset=elsewhere):
        answer = next(iter(one.elsewhere), None) if elsewhere else one.runs
        if answer is not None:
            alike.setdefault((answer.verdict, answer.identity), []).append((one, answer))
    return list(alike.values())


def _markdown(name: str, measured: MeasuredExperiment, elsewhere: bool) -> str:
    summary, alike = measured.summary, _answered(name, measured, elsewhere)
    answers = [answer for claims in alike for _, answer in claims]
    papers = len({one.claim.source for claims in alike for one, _ in claims})
    where = summary.dataset if elsewhere else "Here"
    head = [
        f"From {counted(papers, 'paper')}, {verdict_counts(answers)}. Conditions: {answers[0].setting}.",
        "",
        f"| Claim | Score | Claimed | {where} | Answer | At an end of its ranges |",
        "|---|---|---|--:|---|---|",
    ]
    return "\n".join([*head, *(_row(claims, summary.methods, elsewhere) for claims in alike)])


def _row(claims: Sequence[tuple[AnsweredClaim, ExperimentAnswer]], titles: dict[str, str], elsewhere: bool) -> str:
    claim, answer = claims[0][0].claim, claims[0][1]
    cells = (
        f"{titles[claim.a.method]} > {titles[claim.b.method]}",
        claim.score,
        _of_datasets([one for one, _ in claims]) if elsewhere else _of_places([one for one, _ in claims]),
        difference_words(answer.pair),
        _answer(answer, [] if elsewhere else [one.claim for one, own in claims if own.excludes(one.claim)]),
        ", ".join(dict.fromkeys(titles[end.method] for end in answer.range_ends)),
    )
    return _line(cells)


def _of_places(claims: Sequence[AnsweredClaim]) -> str:
    """Claimed sizes with their places: `+1.5 (Proxy-ISA, Table 1), +1.0† (Proxy-ISA, Table 4)`."""
    return ", ".join(
        f"{_size(one.claim)}{'†' if one.quoted else ''} ({one.claim.source}, {one.claim.place})" for one in claims
    )


def _of_datasets(claims: Sequence[AnsweredClaim]) -> str:
    """Range of the claimed sizes with papers and datasets: `+0.2 to +2.4 (Proxy-ISA: cub200, sop)`."""
    by_size = sorted((one.claim for one in claims), key=lambda claim: claim.difference)
    sizes = " to ".join(dict.fromkeys((_size(by_size[0]), _size(by_size[-1]))))
    papers = ", ".join(dict.fromkeys(one.claim.source for one in claims))
    return f"{sizes} ({papers}: {', '.join(dict.fromkeys(one.claim.dataset for one in claims))})"


def _size(claim: Claim) -> str:
    return f"{claim.difference:+.{claim.digits}f}"


def _answer(experiment: ExperimentAnswer, excluded: Sequence[Claim]) -> str:
    """Direction, size against the margin and claimed sizes: `seen here too; within 0.5; +1.6 excluded`."""
    answer = experiment
    parts = [experiment.verdict, answer.pair.untested or ""]
    if answer.pair.size != "cannot tell":
        parts.append(size_words(answer.pair, answer.comparison.margin))
    if excluded and answer.pair.better != answer.pair.b:
        parts.append(f"{', '.join(dict.fromkeys(map(_size, excluded)))} excluded")
    return "; ".join(part for part in parts if part)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
