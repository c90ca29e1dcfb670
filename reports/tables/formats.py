"""The table writers, by the name of the format on the command line."""

from collections.abc import Callable

from reports.tables.csv_and_json import to_csv, to_json
from reports.tables.html import to_html
from reports.tables.latex import to_latex, to_latex_document
from reports.tables.markdown import to_markdown
from reports.tables.table import Table

WRITERS: dict[str, Callable[[Table], str]] = {
    "markdown": to_markdown,
    "csv": to_csv,
    "latex": to_latex,
    "latex-document": to_latex_document,
    "html": to_html,
    "json": to_json,
}
