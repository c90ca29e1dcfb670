"""Readings of a recipe that print leaves open: variants of one card, tried as one family."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath

from results.answer.finding import Finding
from results.answer.values import Answer
from results.wording import counted, listed


def readings_of(found: Answer) -> dict[str, dict[str, float]]:
    """Return the families of two readings or more by card: the means of the rows that have one."""
    families: dict[str, dict[str, float]] = {}
    for variant in found.measured.summary.experiment.variants if found.measured else ():
        if variant.reading and variant.key in found.intervals:
            family = families.setdefault(PurePath(variant.of).stem, {})
            family[variant.key] = found.intervals[variant.key].mean
    return {card: rows for card, rows in families.items() if len(rows) > 1}


def reading_findings(found: Answer) -> Iterator[Finding]:
    """Say how much the reading of each recipe decides, beside the range of the other rows."""
    for card, rows in readings_of(found).items():
        others = [interval.mean for row, interval in found.intervals.items() if row not in rows]
        decided = 100 * (max(rows.values()) - min(rows.values()))
        text = (
            f"The reading of {card} decides {decided:.1f} points: its {len(rows)} readings have {span(rows.values())} %"
        )
        text += f", {counted(len(others), 'other row')} {span(others)} %." if others else "."
        yield Finding("limit", text, "comparison", " ".join(_verdicts(rows, found)))


def _verdicts(rows: Mapping[str, float], found: Answer) -> Iterator[str]:
    within = [pair for pair in found.pairs if pair.a in rows and pair.b in rows]
    if within:
        yield f"Of {counted(len(within), 'pair')} of readings {sum(pair.better is not None for pair in within)} differ."
    verdicts: dict[str, set[str]] = {}
    for pair in found.pairs:
        if (pair.a in rows) != (pair.b in rows):
            of_reading = pair if pair.a in rows else pair.turned()
            verdicts.setdefault(of_reading.b, set()).add(of_reading.direction)
    if depending := [found.titles[other] for other, directions in verdicts.items() if len(directions) > 1]:
        yield f"The verdict against {listed(depending)} depends on the reading."
    elif verdicts:
        yield "No verdict against another row depends on the reading."


def span(means: Iterable[float]) -> str:
    """Write the range of some means in percent, such as `12.3 to 28.1`."""
    in_order = sorted(means)
    return " to ".join(dict.fromkeys(f"{100 * mean:.1f}" for mean in (in_order[0], in_order[-1])))
