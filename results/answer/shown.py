"""An answer as frames, and as it shows itself in a notebook."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pandas as pd

from results.wording import place_words

if TYPE_CHECKING:
    from results.answer.values import Answer

_MOST_ROWS = 30
"""Of more methods or pairs a notebook shows the first and the last ones."""


def methods_frame(found: Answer) -> pd.DataFrame:
    """Return a row per method: mean and half width as fractions of 1, counts, and the places that it can have."""
    rows = []
    for key in [*found.order, *(key for key in found.intervals if key not in found.compared)]:
        own, interval, places = found.values[key], found.intervals[key], found.final_ranks.get(key)
        left_out = found.left_out[key].note if key in found.left_out else found.missing.get(key, "")
        numbers = (interval.mean, interval.half_width, len(own.units), len(own.failed), own.runs)
        rows.append((key, found.titles[key], *numbers, *(places or (None, None)), left_out))
    columns = ("method", "title", "mean", "half_width", "n", "failed", "runs", "rank_low", "rank_high", "why_not")
    frame = pd.DataFrame(rows, columns=list(columns)).astype({"rank_low": "Int64", "rank_high": "Int64"})
    return frame.set_index("method")


def differences_frame(found: Answer) -> pd.DataFrame:
    """Return a row per pair that was asked for: difference and half width as fractions of 1, p values and verdicts."""
    tests = ("half_width", "p", "p_better", "smallest", "break_even", "size", "untested")
    rows = [
        (pair.a, pair.b, pair.difference, pair.better, *(getattr(pair, name) for name in tests))
        for pair in found.shown_pairs
    ]
    return pd.DataFrame(rows, columns=["a", "b", "difference", "better", *tests])


def notebook_html(found: Answer) -> str:
    """Return methods, pairs and findings as HTML, with numbers in percent or points."""
    unit = "%" if found.question.scale == "percent" else "points"
    methods, titles, pairs, ranks = methods_frame(found), found.titles, found.shown_pairs, found.final_ranks
    shown = pd.DataFrame(
        {
            "": methods["title"],
            f"{found.question.score_name}, {unit}": list(map(_number, methods["mean"], methods["half_width"])),
            "rank": [place_words(ranks[key]) if key in ranks else "" for key in methods.index],
            "n": [f"{n} ({failed} failed)" if failed else n for n, failed in methods[["n", "failed"]].values],
        }
    )
    compared = pd.DataFrame(
        {
            "": [f"{titles[pair.a]} − {titles[pair.b]}" for pair in pairs],
            "difference": [_number(pair.difference, pair.half_width, "+") for pair in pairs],
            "verdict": [
                f"{titles[one.better]} better" if one.better else one.untested or one.direction for one in pairs
            ],
            "could have seen": [_number(pair.smallest) for pair in pairs],
        }
    )
    tables = [one.to_html(index=False, border=0, max_rows=_MOST_ROWS) for one in (shown, compared) if len(one)]
    said = "".join(f"<li>{html.escape(finding.sentences)}</li>" for finding in found.findings)
    title = f"<p><strong>{html.escape(found.title)}</strong></p>" if found.title else ""
    return f"{title}{''.join(tables)}<ul>{said}</ul>"


def _number(value: float | None, width: float | None = None, sign: str = "") -> str:
    spread = "" if pd.isna(width) else f" ± {100 * (width or 0):.2f}"
    return "" if pd.isna(value) else f"{100 * (value or 0):{sign}.2f}{spread}"
