"""An experiment's page: one HTML file that carries everything it shows and asks the network for nothing."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reports.page.content import FigureView, MethodOrigin, PageContent, RunEnvironment, Verdict
from reports.page.data_uris import data_uri
from reports.tables.cell_text import interval_text, value_text

_FOLDER = Path(__file__).parent / "templates"

_GROUPS = {
    "warning": ("!", "To know first"),
    "best": ("▸", "Highest means"),
    "real": ("≠", "Differences that are real"),
    "open": ("≈", "Not told apart"),
    "inside": ("✓", "Published values inside our intervals"),
    "outside": ("✗", "Published values outside our intervals"),
}

SHOWN = 8
"""Sentences of one kind that are shown before the rest is folded away."""


@dataclass(frozen=True)
class VerdictGroup:
    """The verdicts of one kind, with the sign and heading they stand under."""

    kind: str
    sign: str
    title: str
    verdicts: tuple[Verdict, ...]


def render_page(content: PageContent) -> str:
    """The whole page as HTML.

    Every text of `content` is escaped. The page's own policy forbids every request and every script but its own, so
    that it stays as it is wherever it is opened.
    """
    templates = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"duration": duration, "value_text": value_text, "interval_text": interval_text}
    script = (_FOLDER / "page.js").read_text(encoding="utf-8")
    return templates.get_template("page.html").render(
        page=content,
        groups=verdict_groups(content.verdicts),
        figure_groups=figure_groups(content.figures),
        environments=environments_of(content.origins),
        style=(_FOLDER / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        shown=SHOWN,
        data_uri=lambda text, media_type: data_uri(text.encode(), media_type),
    )


def verdict_groups(verdicts: Sequence[Verdict]) -> list[VerdictGroup]:
    """The verdicts by kind, what a reader must know first at the top; kinds without any are left out."""
    grouped = []
    for kind, (sign, title) in _GROUPS.items():
        of_kind = tuple(verdict for verdict in verdicts if verdict.kind == kind)
        if of_kind:
            grouped.append(VerdictGroup(kind, sign, title, of_kind))
    return grouped


def figure_groups(figures: Sequence[FigureView]) -> list[tuple[str, list[tuple[str, FigureView]]]]:
    """Figures with their names as anchors, neighbours of one fold together; those that are shown have none."""
    groups: list[tuple[str, list[tuple[str, FigureView]]]] = []
    for number, figure in enumerate(figures, start=1):
        if not groups or groups[-1][0] != figure.fold:
            groups.append((figure.fold, []))
        groups[-1][1].append((f"figure-{number}", figure))
    return groups


def environments_of(origins: Sequence[MethodOrigin]) -> list[RunEnvironment]:
    """The different environments of the runs, in the order of their first run; most pages have one."""
    return list(dict.fromkeys(run.environment for origin in origins for run in origin.runs))


def duration(seconds: float) -> str:
    """Seconds as a person says them: 14.4 s, 3 min 5 s, 2 h 10 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
