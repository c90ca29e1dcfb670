"""All pairs of methods as a triangular matrix of verdicts."""

from dataclasses import dataclass
from typing import Literal

from reports.page.material import Material
from results.statistics.comparison_result import ComparedPair
from results.wording import counted, p_value

PairKind = Literal["better", "worse", "equal", "open", "untested"]
"""Verdict on the first method of a pair, which is that of the column."""

MOST_METHODS = 40
"""Largest number of methods with a matrix."""


@dataclass(frozen=True)
class PairCell:
    """Verdict on a pair of methods.

    Attributes:
        text: Direction and size.
        detail: The numbers of the pair.
        shares: How sure it is that the first method is better by more than the margin, within it, worse by more, in
            percent; empty without a test.
    """

    kind: PairKind
    text: str
    detail: str
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class PairMatrix:
    """Verdicts on all pairs of methods, best first: for every method but the first, those against all above it."""

    titles: tuple[str, ...]
    rows: tuple[tuple[PairCell, ...], ...]

    @property
    def kinds(self) -> set[PairKind]:
        """The verdicts that occur."""
        return {cell.kind for row in self.rows for cell in row}

    @property
    def tested(self) -> bool:
        """Whether any pair was tested."""
        return self.kinds != {"untested"}


def pair_matrix(material: Material) -> PairMatrix | None:
    """Build the matrix; None if not all pairs are compared, or with too many methods."""
    comparison = material.comparison
    if comparison is None or not comparison.pairs or comparison.reference is not None:
        return None
    order = comparison.best_first
    if len(order) > MOST_METHODS:
        return None
    rows = tuple(
        tuple(_cell(material, pair) for higher in order[:number] if (pair := comparison.pair(higher, lower)))
        for number, lower in enumerate(order)
        if number
    )
    return PairMatrix(tuple(material.titles[key] for key in order), rows)


def _cell(material: Material, pair: ComparedPair) -> PairCell:
    names = f"{material.titles[pair.a]} and {material.titles[pair.b]}"
    apart = f"{100 * abs(pair.difference):.2f} points"
    if pair.untested:
        return PairCell("untested", f"{names}: not tested", f"{names}: not tested, {pair.untested}\n{apart} apart")
    assert material.comparison is not None
    margin, size = f"{100 * material.comparison.margin:g} points", ""
    if pair.size != "cannot tell":
        size = f", by more than {margin}" if pair.size == "beyond" else f", within {margin}"
    if pair.better and pair.worse:
        kind: PairKind = "better" if pair.better == pair.a else "worse"
        text = f"{material.titles[pair.better]} is better than {material.titles[pair.worse]}"
    else:
        kind = "equal" if pair.size == "within" else "open"
        text = f"{names}: cannot tell which is better"
    shares = tuple(round(100 * (share or 0), 2) for share in (pair.share_better, pair.share_within, pair.share_worse))
    units = counted(pair.units_a, material.unit)
    units = units if pair.units_a == pair.units_b else f"{pair.units_a} and {counted(pair.units_b, material.unit)}"
    adjusted = pair.p_equal if kind == "equal" else pair.p_better
    lines = [
        text + size,
        f"difference {apart}, 95 % interval of this pair alone {100 * (pair.low or 0):z.2f} to "
        f"{100 * (pair.high or 0):z.2f}",
        f"{material.titles[pair.a]}: {shares[0]:.0f} % better by more than {margin}, {shares[1]:.0f} % within, "
        f"{shares[2]:.0f} % worse by more",
        f"{units}, adjusted {p_value(adjusted or 0.0)}",
    ]
    if kind == "open" and pair.smallest is not None:
        lines.append(f"could have shown {100 * pair.smallest:.2f} points")
    return PairCell(kind, lines[0], "\n".join(lines), shares)
