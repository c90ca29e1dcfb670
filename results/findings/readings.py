"""Readings of a recipe that print leaves open: variants of one card, tried as one family."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from results.answer.finding import Finding
from results.answer.values import Pair
from results.spec.experiment_spec import Variant
from results.wording import counted, listed


@dataclass(frozen=True)
class Readings:
    """The readings of one card that have a score, with the range of their means, fractions of 1."""

    card: str
    rows: tuple[str, ...]
    low: float
    high: float

    @property
    def range(self) -> str:
        """The range in percent, such as `12.3 to 28.1`."""
        return _range([self.low, self.high])


def readings_of(variants: Iterable[Variant], means: Mapping[str, float]) -> tuple[Readings, ...]:
    """Return the families of two readings or more, from the means of the rows that have one."""
    families: dict[str, list[str]] = {}
    for variant in variants:
        if variant.reading and variant.key in means:
            families.setdefault(PurePath(variant.of).stem, []).append(variant.key)
    return tuple(
        Readings(card, tuple(rows), min(means[row] for row in rows), max(means[row] for row in rows))
        for card, rows in families.items()
        if len(rows) > 1
    )


def reading_findings(
    families: Sequence[Readings], means: Mapping[str, float], titles: Mapping[str, str], pairs: Sequence[Pair]
) -> Iterator[Finding]:
    """Say how much the reading of each recipe decides, beside the range of the other methods."""
    for family in families:
        others = [mean for row, mean in means.items() if row not in family.rows]
        text = f"The reading of {family.card} decides {100 * (family.high - family.low):.1f} points: its "
        text += f"{len(family.rows)} readings have {family.range} %"
        text += f", {counted(len(others), 'other row')} {_range(others)} %." if others else "."
        yield Finding("limit", text, "comparison", _verdicts(family, titles, pairs))


def _verdicts(family: Readings, titles: Mapping[str, str], pairs: Sequence[Pair]) -> str:
    within = [pair for pair in pairs if pair.a in family.rows and pair.b in family.rows]
    better = sum(pair.better is not None for pair in within)
    found: dict[str, set[str]] = {}
    for pair in pairs:
        if (pair.a in family.rows) != (pair.b in family.rows):
            of_reading = pair if pair.a in family.rows else pair.turned()
            found.setdefault(of_reading.b, set()).add(of_reading.direction)
    sentences = [f"Of {counted(len(within), 'pair')} of readings {better} differ."] if within else []
    if depending := [titles[other] for other, verdicts in found.items() if len(verdicts) > 1]:
        sentences.append(f"The verdict against {listed(depending)} depends on the reading.")
    elif found:
        sentences.append("No verdict against another row depends on the reading.")
    return " ".join(sentences)


def _range(means: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{100 * mean:.1f}" for mean in (min(means), max(means))))
