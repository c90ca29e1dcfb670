"""`python -m tests.benchmarks.kept_tables`: draws the tables of kept records in README.md and docs/ again.

What is drawn stands on a page between the comments `KIND` and `end of KIND`; `_MARKDOWN` has the kinds. `table: NAME`
is in `results/measured/NAME.json.xz`. `claims: NAME of EXPERIMENT`, and the same with `claims elsewhere`, are the
papers' claims that it answers. `board: NAMES` is that of several records.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from reports.tables.formats import to_markdown
from reports.tables.result_table import table_of
from reports.tables.table import with_notes
from results.store.experiment_results import FOLDER, MeasuredExperiment
from results.whole_files import write_whole
from tests.benchmarks.board_calibration import board_calibration_markdown, board_markdown
from tests.benchmarks.calibration import calibration_markdown
from tests.benchmarks.deviations import deviations_markdown
from tests.benchmarks.kept_claims import claims_elsewhere_markdown, claims_markdown, printed_deviations_markdown
from tests.benchmarks.kept_findings import board_scores_markdown, findings_markdown, starts_markdown
from tests.benchmarks.search_variance import search_variance_markdown

_ROOT = Path(__file__).resolve().parents[2]


def pages_with_tables() -> list[Path]:
    """Pages that show a kept record."""
    pages = [_ROOT / "README.md", *sorted((_ROOT / "docs").glob("*.md"))]
    return [page for page in pages if any(map(_is_kept, _MARKED.finditer(page.read_text(encoding="utf-8"))))]


def with_tables(text: str) -> str:
    """Return the text of a page with the tables of the records as they are now."""
    return _MARKED.sub(lambda marked: _drawn(marked) if _is_kept(marked) else marked[0], text)


def _is_kept(marked: re.Match[str]) -> bool:
    """Whether it is drawn from a kept record; other programs draw tables too."""
    return marked["kind"] != "table" or (FOLDER / f"{marked['what']}.json.xz").exists()


def _drawn(marked: re.Match[str]) -> str:
    text = _MARKDOWN[marked["kind"]](marked["what"])
    return f"{marked['opening']}\n\n{text}\n\n<!-- end of {marked['kind']} -->"


def _table(name: str) -> str:
    return to_markdown(with_notes(table_of(MeasuredExperiment.kept(name)), "short")).strip()


def _claims(draw: Callable[[str, MeasuredExperiment], str], what: str) -> str:
    name, experiment = what.split(" of ")
    return draw(experiment, MeasuredExperiment.kept(name))


_MARKDOWN: dict[str, Callable[[str], str]] = {
    "table": _table,
    "claims elsewhere": partial(_claims, claims_elsewhere_markdown),
    "claims": partial(_claims, claims_markdown),
    "printed deviations": lambda _: printed_deviations_markdown(),
    "board calibration": lambda _: board_calibration_markdown(),
    "board": board_markdown,
    "calibration": lambda _: calibration_markdown(),
    "deviations": lambda _: deviations_markdown(),
    "findings": lambda _: findings_markdown(),
    "scores of the board": lambda _: board_scores_markdown(),
    "search variance": lambda _: search_variance_markdown(),
    "starts": lambda _: starts_markdown(),
}
_MARKED = re.compile(
    rf"(?P<opening><!-- (?P<kind>{'|'.join(_MARKDOWN)})(?:: (?P<what>[^>]+))? -->)\n.*?<!-- end of (?P=kind) -->",
    flags=re.DOTALL,
)


if __name__ == "__main__":
    for page in pages_with_tables():
        write_whole(page, with_tables(page.read_text(encoding="utf-8")))
