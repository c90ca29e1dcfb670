"""Renders a page from its template as one HTML file that contains everything and loads nothing from the network."""

import base64
import hashlib
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reports.page.drawn_figure import data_uri
from reports.tables.formats import WRITERS, to_html
from reports.tables.table import Table

_FOLDER = Path(__file__).parent / "templates"
_FILES = (("csv", "csv", "text/csv"), ("md", "markdown", "text/markdown"), ("tex", "latex", "application/x-tex"))
"""Suffix, format and media type of the files that a page offers of each table."""

MOST_ROWS = 1_000
"""Tables with more rows are offered as CSV alone, to keep the page small."""


class Download(NamedTuple):
    """A file that the page contains."""

    name: str
    media_type: str
    text: str


def downloads_of(table: Table, name: str) -> tuple[Download, ...]:
    """Return a table in the formats that a page offers."""
    files = _FILES[:1] if len(table.rows) > MOST_ROWS else _FILES
    return tuple(Download(f"{name}.{suffix}", media_type, WRITERS[form](table)) for suffix, form, media_type in files)


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
    templates.filters["duration"] = duration
    script = (_FOLDER / "page.js").read_text(encoding="utf-8")
    return templates.get_template(name).render(
        **values,
        style=(_FOLDER / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        table_html=to_html,
        data_uri=lambda text, media_type: data_uri(text.encode(), media_type),
    )


def duration(seconds: float) -> str:
    """Write seconds, such as 14.4 s, 3 min 5 s or 2 h 10 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"
