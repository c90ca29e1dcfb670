"""Findings about single rows: what a sign at a row means, and which methods a table has no row or no number of.

They stand below their table alone, since they say nothing about the experiment.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from results.answer.values import Finding
from results.findings.peeking import Peeking
from results.records.records import RunRecord
from results.spec.plan import LeftOut
from results.wording import joined


def of_left_out(left_out: Mapping[str, LeftOut], titles: Mapping[str, str]) -> Iterator[Finding]:
    """Say why rows are not tested against the others, one finding for each reason."""
    rows: dict[LeftOut, list[str]] = {}
    for key, title in titles.items():
        if key in left_out:
            rows.setdefault(left_out[key], []).append(title)
    for reason, of_reason in rows.items():
        yield Finding("limit", f"{reason.sign} {joined(of_reason)}: {reason.note}", "row")


def of_events(titles: Mapping[str, str], runs: Mapping[str, Sequence[RunRecord]]) -> Iterator[Finding]:
    """Say what the star at a row means, if any has one."""
    if any(run.events for key in titles for run in runs.get(key, ())):
        text = "* A training diverged, skipped steps, made equal embeddings or did not beat the untrained network."
        yield Finding("warning", text, "row")


def of_costs(without_steps: Sequence[str]) -> Iterator[Finding]:
    """Name the methods whose runs have no number of steps."""
    if without_steps:
        yield Finding("note", f"Steps were not recorded: {joined(without_steps)}.", "row")


def of_peeking(titles: Mapping[str, str], gains: Iterable[Peeking]) -> Iterator[Finding]:
    """Name the methods that gain nothing by peeking since there was nothing to choose, or that have no test curves."""
    known = {gain.method: gain for gain in gains}
    if hidden := [title for key, title in titles.items() if key in known and known[key].nothing_to_choose]:
        reason = "All trainings were cut off, so there was nothing to choose."
        yield Finding("note", f"Not shown: {joined(hidden)}.", "row", reason)
    if without := [title for key, title in titles.items() if key not in known]:
        yield Finding("note", f"No test curves (`test_curves: true` records them): {joined(without)}.", "row")
