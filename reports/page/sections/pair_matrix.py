"""The pairs that were asked for: all as a triangular matrix of verdicts, or each method beside one as a list."""

from dataclasses import replace

from reports.page.answer_content import ListedPair, PairCell, PairKind, PairMatrix
from reports.page.material import Material
from reports.page.sections.answer import family_of
from reports.page.sections.class_intervals import OverClasses
from reports.page.sections.headline import missing_units
from reports.wording import counted, listed, p_value, points
from results.statistics.comparison_result import ComparedPair, ComparisonResult

MOST_METHODS = 40
"""Largest number of methods with a matrix. Larger tables are in the files only."""

_OTHER_CLASSES = "Shown only for these test classes: the interval of the difference over drawn classes contains 0."


def pair_matrix(material: Material, classes: OverClasses | None = None) -> PairMatrix | None:
    """Build the matrix or the list of verdicts; None with fewer than two methods."""
    comparison = material.comparison
    if comparison is None or not comparison.pairs:
        return None
    cells = _Cells(material, comparison, classes)
    score, margin = material.scores[0].name, f"{100 * comparison.margin:g}"
    if comparison.reference is not None:
        title = material.titles[comparison.reference]
        others = tuple(
            cells.beside(comparison.reference, key) for key in comparison.best_first if key != comparison.reference
        )
        caption = f"{title} against each row, in {score}. {_caption(material, comparison)}"
        return PairMatrix(f"{title} and every other method", margin, caption.strip(), first=title, others=others)
    order, heading = comparison.best_first, "Every pair of methods"
    titles = tuple(material.titles[key] for key in order)
    if len(order) > MOST_METHODS:
        counts = f"{_counts(comparison)} The files have every pair; {len(order)} methods are too many for a matrix."
        return PairMatrix(heading, margin, counts, titles)
    rows = tuple(
        tuple(cells.of(higher, lower) for higher in order[:number]) for number, lower in enumerate(order) if number
    )
    caption = f"Each row against the methods above it, in {score}. A cell shows the numbers of its pair. "
    return PairMatrix(heading, margin, caption + _caption(material, comparison), titles, rows)


class _Cells:
    def __init__(self, material: Material, comparison: ComparisonResult, classes: OverClasses | None) -> None:
        self.material, self.comparison, self.classes = material, comparison, classes
        self.margin = f"{100 * comparison.margin:g} points"

    def beside(self, reference: str, other: str) -> ListedPair:
        """The row of a list."""
        cell, pair = self.of(reference, other), self._pair(reference, other)
        direction = {"better": "better", "worse": "worse", "untested": "not tested"}.get(cell.kind, "cannot tell")
        size = "" if pair.untested else self._size(pair) or "cannot tell"
        half_width = "" if pair.half_width is None else f"± {100 * pair.half_width:.2f}"
        mean = f"{100 * pair.difference:+.2f}".replace("-", "−")
        return ListedPair(self.material.titles[other], cell, direction, size, mean, half_width)

    def of(self, a: str, b: str) -> PairCell:
        """The verdict on a pair."""
        pair = self._pair(a, b)
        cell = self._untested(pair) if pair.untested else self._verdict(pair)
        gap = self.classes.gaps.get(b) if self.classes and a == self.classes.best else None
        if cell.kind == "better" and gap and gap.low is not None and gap.low <= 0:
            cell = replace(cell, detail=f"{cell.detail}\n{_OTHER_CLASSES}")
        return cell

    def _pair(self, a: str, b: str) -> ComparedPair:
        pair = self.comparison.pair(a, b)
        assert pair is not None
        return pair

    def _untested(self, pair: ComparedPair) -> PairCell:
        text = f"{self._names(pair)}: not tested"
        return PairCell("untested", text, f"{text}, because {self._reason(pair)}\n{points(abs(pair.difference))} apart")

    def _verdict(self, pair: ComparedPair) -> PairCell:
        kind, text, size = self._kind(pair), self._direction(pair), self._size(pair)
        low, high, adjusted = (
            pair.low or 0.0,
            pair.high or 0.0,
            pair.p_equal if pair.size == "within" else pair.p_better,
        )
        unit = "search" if self.comparison.unit == "search" else "run"
        units = counted(pair.units_a, unit)
        if pair.units_a != pair.units_b:
            units = f"{pair.units_a} and {counted(pair.units_b, unit)}"
        shares = tuple(share or 0.0 for share in (pair.share_better, pair.share_within, pair.share_worse))
        sure = (
            f"{100 * shares[0]:.0f} % better by more than {self.margin}, {100 * shares[1]:.0f} % within, "
            f"{100 * shares[2]:.0f} % worse by more"
        )
        lines = [
            f"{text}, {size}" if size else text,
            f"difference {points(abs(pair.difference))}, 95 % interval of this pair alone {100 * low:z.2f} to "
            f"{100 * high:z.2f}",
            f"{self.material.titles[pair.a]}: {sure}",
            f"{units}, adjusted {p_value(adjusted or 0.0)}",
        ]
        if kind == "open" and pair.smallest is not None:
            lines.append(f"could have shown {points(pair.smallest)}")
        return PairCell(kind, lines[0], "\n".join(lines), tuple(round(100 * share, 2) for share in shares), sure)

    def _kind(self, pair: ComparedPair) -> PairKind:
        if pair.better:
            return "better" if pair.better == pair.a else "worse"
        return "equal" if pair.size == "within" else "open"

    def _direction(self, pair: ComparedPair) -> str:
        if pair.better and pair.worse:
            return f"{self.material.titles[pair.better]} is better than {self.material.titles[pair.worse]}"
        return f"{self._names(pair)}: cannot tell which is better"

    def _size(self, pair: ComparedPair) -> str:
        if pair.size == "cannot tell":
            return ""
        return f"by more than {self.margin}" if pair.size == "beyond" else f"within {self.margin}"

    def _names(self, pair: ComparedPair) -> str:
        return f"{self.material.titles[pair.a]} and {self.material.titles[pair.b]}"

    def _reason(self, pair: ComparedPair) -> str:
        if pair.untested == "search not known":
            return "how far two searches of this size differ is not known"
        values, titles = self.comparison.values, self.material.titles
        missing = missing_units(self.material)
        if incomplete := [key for key in (pair.a, pair.b) if key in missing]:
            return listed([f"{titles[key]} has {missing[key].text}" for key in incomplete])
        if pair.untested == "single runs":
            single = [titles[key] for key in (pair.a, pair.b) if len(values[key].units) == 1]
            return f"{listed(single)} {'has' if len(single) == 1 else 'have'} a single run"
        return "a score is not a number"


def _caption(material: Material, comparison: ComparisonResult) -> str:
    family = family_of(material)
    if comparison.interim:
        family = f"Interim: searches or runs are missing, and verdicts can change. {family}"
    if not comparison.tested and comparison.unit == "single search" and not comparison.interim:
        return "How far two searches of this size differ is not known, so there are no verdicts about methods."
    return family


def _counts(comparison: ComparisonResult) -> str:
    better = sum(pair.better is not None for pair in comparison.pairs)
    equal = sum(pair.size == "within" and pair.better is None for pair in comparison.pairs)
    return (
        f"Of {len(comparison.pairs):,} pairs, {better:,} show which method is better, {equal:,} are equal within "
        f"{100 * comparison.margin:g} points, and {len(comparison.pairs) - better - equal:,} cannot be told."
    )
