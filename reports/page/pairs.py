"""The pairs of all methods as a matrix: what a row shows against each column, and its words."""

from dataclasses import dataclass

from reports.tables.differences import open_words, size_words, wider_over_classes
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
    elif pair.size == "within":
        kind, sign, verdict = "equal", "=", "equal"
    else:
        kind, sign, verdict = "open", "–" if pair.untested else "·", open_words(found, pair)
    if pair.size != "cannot tell":
        verdict += f", {size_words(pair, margin)} points"
    half = "" if pair.half_width is None else f" ± {100 * pair.half_width:.2f}"
    short = f"{100 * pair.difference:+z.2f}"
    difference = f"{short}{half} points{wider_over_classes(pair)}"
    return PairMark(sign, kind, f"{title} − {found.titles[pair.b]}\n{difference}\n{verdict}", short)


def matrix(found: Answer) -> list[tuple[str, list[PairMark | None]]]:
    """Return a row for each method: its title and a mark against each one, None for itself.

    Without all pairs there are no rows.
    """
    if found.question.compare != "all" or not found.pairs:
        return []
    marks = {(pair.a, pair.b): pair_mark(found, pair) for one in found.pairs for pair in (one, one.turned())}
    return [(found.titles[key], [marks.get((key, other)) for other in found.order]) for key in found.order]


def reading_of_marks(found: Answer) -> str:
    """Say what the signs mean."""
    margin = f"{100 * found.question.margin:g} points"
    untested = "; – not tested" if any(pair.untested for pair in found.pairs) else ""
    return ("Interim. " if found.interim else "") + (
        f"▲ the method of the row is better, ▼ worse; filled: by more than {margin}; = equal within {margin}; · cannot "
        f"tell{untested}. Each sign has its difference with the 95 % interval: point at it or tap it."
    )
