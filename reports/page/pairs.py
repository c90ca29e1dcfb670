"""The pairs of all methods as a matrix: what a row shows against each column, and its words."""

from dataclasses import dataclass

from reports.tables.differences import size_words
from results.answer.values import Answer, Pair


@dataclass(frozen=True)
class PairMark:
    """What a pair shows of its first method, drawn as a sign.

    Attributes:
        sign: ▲ if it is better, ▼ if it is worse, filled if by more than the margin, = within the margin, · if it
            cannot be told, – without a test.
        kind: `better`, `worse`, `equal`, or `open`, by which a style sheet colours it.
        words: The methods, their difference with its interval, and the verdict, in a few lines.
        short: The difference in points.
    """

    sign: str
    kind: str
    words: str
    short: str


def pair_mark(found: Answer, pair: Pair) -> PairMark:
    """Say what a pair shows of its method a."""
    margin, title = found.question.margin, found.titles[pair.a]
    if pair.better:
        kind = "better" if pair.better == pair.a else "worse"
        verdict, sign = f"{title} is {kind}", ("▲▼" if pair.size == "beyond" else "△▽")[kind == "worse"]
    else:
        kind, sign = ("equal", "=") if pair.size == "within" else ("open", "–" if pair.untested else "·")
        verdict = pair.untested or pair.direction
    if not pair.untested and pair.size != "cannot tell":
        verdict += f", {size_words(pair, margin)} points"
    half = "" if pair.half_width is None else f" ± {100 * pair.half_width:.2f}"
    short = f"{100 * pair.difference:+z.2f}"
    return PairMark(sign, kind, f"{title} − {found.titles[pair.b]}\n{short}{half} points\n{verdict}", short)


@dataclass(frozen=True)
class Matrix:
    """A mark for each method, in a row, against each other one, in a column; None on the diagonal."""

    rows: tuple[tuple[str, tuple[PairMark | None, ...]], ...]


def matrix(found: Answer) -> Matrix | None:
    """Return the marks of all pairs, the method with the highest mean first; None if not all pairs are compared."""
    if found.question.compare != "all" or not found.pairs:
        return None
    order = found.order
    return Matrix(
        tuple(
            (
                found.titles[key],
                tuple(pair_mark(found, pair) if (pair := found.pair(key, other)) else None for other in order),
            )
            for key in order
        )
    )


def reading_of_marks(found: Answer) -> str:
    """Say what the signs mean."""
    margin = f"{100 * found.question.margin:g} points"
    untested = "; – not tested" if any(pair.untested for pair in found.pairs) else ""
    return (
        f"▲ the method of the row is better, ▼ worse; filled: by more than {margin}; = equal within {margin}; · cannot "
        f"tell{untested}. Each sign has its difference with the 95 % interval: point at it or tap it."
    )
