"""Renders an experiment's page as one HTML file that contains everything and loads nothing from the network."""

import base64
import hashlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.image import imsave

from reports.page.content import FigurePart, FigureView, MethodOrigin, PageContent, Part, RunEnvironment, Verdict
from reports.tables.table import interval_text, value_text

_SVG_LIMIT = 400_000
"""Number of characters above which a figure is embedded as PNG, which is then smaller and faster to draw than SVG."""


def data_uri(content: bytes, media_type: str) -> str:
    """Encode `content` as a data URI."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


_WITHOUT_LOOK = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
"""Parts of an SVG file that change nothing in the picture."""


def embedded(svg: str, png: bytes) -> str:
    """Encode a figure as SVG, or as PNG if the SVG is very large."""
    if len(svg) > _SVG_LIMIT:
        return data_uri(png, "image/png")
    return data_uri(compact_svg(svg).encode(), "image/svg+xml")


def compact_svg(svg: str) -> str:
    """Shorten matplotlib's SVG without a visible change: comments and spaces go, and so do far decimals of places."""
    text = re.sub(r"\s*\n\s*", " ", _WITHOUT_LOOK.sub("", svg))
    # Numbers below 10 can be scales, so they keep all decimals.
    text = re.sub(r"(\d\d\.\d\d)\d+", r"\1", text)
    text = re.sub(r'(?<= d=")[^"]*', lambda path: re.sub(r" ?([MLQCz]) ?", r"\1", path[0]), text)
    return text.replace("> <", "><").strip()


def thumbnail_uri(image: np.ndarray, side: int = 112) -> str:
    """Shrink an image and encode it as a data URI of a PNG.

    Pixels are averaged over whole blocks, so a small image does not change.

    Args:
        image: uint8, height x width or height x width x 3.
    """
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or 0 in image.shape:
        actual = f"{image.dtype} of shape {image.shape}"
        raise ValueError(f"a thumbnail needs uint8 pixels, height x width (x 3), not {actual}")
    block = max(1, round(max(image.shape[:2]) / side))
    height, width = (size // block * block for size in image.shape[:2])
    if not height or not width:
        block, height, width = 1, *image.shape[:2]
    blocks = image[:height, :width].reshape(height // block, block, width // block, block, -1)
    small = blocks.mean(axis=(1, 3)).round().astype(np.uint8)
    buffer = io.BytesIO()
    colours = small if small.shape[2] == 3 else np.repeat(small[..., :1], 3, axis=2)
    imsave(buffer, colours, format="png")
    return data_uri(buffer.getvalue(), "image/png")


_FOLDER = Path(__file__).parent / "templates"

_GROUPS = {
    "warning": ("!", "Read this first"),
    "best": ("▸", "Highest means"),
    "settings": ("◦", "The settings found, not the methods"),
    "budget": ("◦", "What this experiment can show"),
    "inside": ("✓", "Published values inside our prediction intervals"),
    "outside": ("✗", "Published values outside our prediction intervals"),
    "alone": ("?", "Published values beside a single run"),
}

_OF_PAPERS = ("inside", "outside", "alone")

SHOWN, OF_PAPERS_SHOWN, BEST_SHOWN = 8, 3, 1
"""Number of sentences of one kind that are always visible: in general, about published values, and about highest means,
of which the first is the primary score. Further ones are collapsed."""


@dataclass(frozen=True)
class VerdictGroup:
    """The verdicts of one kind, with their sign and heading, and how many of them are always visible."""

    kind: str
    sign: str
    title: str
    verdicts: tuple[Verdict, ...]
    shown: int = SHOWN


def render_page(content: PageContent) -> str:
    """Render an experiment's page as HTML; see `render_template`."""
    return render_template(
        "page.html",
        page=content,
        groups=verdict_groups([verdict for verdict in content.verdicts if verdict.kind not in _OF_PAPERS]),
        papers=verdict_groups([verdict for verdict in content.verdicts if verdict.kind in _OF_PAPERS]),
        parts_of={part: [section for section in content.tables if section.part == part] for part in get_args(Part)},
        known=[origin.key for origin in content.origins],
        figures_of={
            part: figure_groups([figure for figure in content.figures if figure.part == part], part)
            for part in get_args(FigurePart)
        },
        environments=environments_of(content.origins),
    )


def render_template(name: str, **values: object) -> str:
    """Render a page from its template and values, in one file with styles and script.

    Every text of the values is escaped. The page's content security policy forbids all requests, and all scripts except
    the page's own.
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
    return templates.get_template(name).render(
        **values,
        style=(_FOLDER / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data_uri=lambda text, media_type: data_uri(text.encode(), media_type),
    )


def verdict_groups(verdicts: Sequence[Verdict]) -> list[VerdictGroup]:
    """Group the verdicts by kind, warnings first. Kinds without verdicts are left out."""
    grouped = []
    for kind, (sign, title) in _GROUPS.items():
        of_kind = tuple(verdict for verdict in verdicts if verdict.kind == kind)
        if of_kind:
            shown = OF_PAPERS_SHOWN if kind in _OF_PAPERS else BEST_SHOWN if kind == "best" else SHOWN
            grouped.append(VerdictGroup(kind, sign, title, of_kind, shown))
    return grouped


def figure_groups(figures: Sequence[FigureView], part: str) -> list[tuple[str, list[tuple[str, FigureView]]]]:
    """Group the figures of a part by fold, in the order of the first figure of each fold. Each has its anchor."""
    groups: dict[str, list[tuple[str, FigureView]]] = {}
    for number, figure in enumerate(figures, start=1):
        groups.setdefault(figure.fold, []).append((f"{part}-figure-{number}", figure))
    return list(groups.items())


def environments_of(origins: Sequence[MethodOrigin]) -> list[RunEnvironment]:
    """Return the different environments of the runs, in the order of their first run. Most pages have one."""
    return list(dict.fromkeys(run.environment for origin in origins for run in origin.runs))


def duration(seconds: float) -> str:
    """Format seconds, such as 14.4 s, 3 min 5 s or 2 h 10 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"
