"""`python -m tests.benchmarks.kept_tables`: draws the tables of kept records in README.md and docs/ again.

A page shows the record `results/measured/NAME.json` between the comments `table: NAME` and `end of table`, and what
it says about the papers' claims between `claims: NAME of EXPERIMENT` and `end of claims`. How often a method is called
different from itself stands between `same method` and `end of same method`, and the README's table of findings between
`findings` and `end of findings`.
"""

import re
from pathlib import Path

from reports.tables.markdown import to_markdown
from reports.tables.result_table import table_of
from results.experiment_results import FOLDER, MeasuredExperiment
from results.whole_files import write_whole
from tests.benchmarks.kept_claims import claims_markdown
from tests.benchmarks.kept_findings import findings_markdown
from tests.benchmarks.same_method import counts_markdown

_ROOT = Path(__file__).resolve().parents[2]
_MARKED = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end of table -->", flags=re.DOTALL)
_CLAIMS = re.compile(r"<!-- claims: (\w+) of (\S+) -->\n.*?<!-- end of claims -->", flags=re.DOTALL)

_SAME_METHOD = re.compile(r"<!-- same method -->\n.*?<!-- end of same method -->", flags=re.DOTALL)
_FINDINGS = re.compile(r"<!-- findings -->\n.*?<!-- end of findings -->", flags=re.DOTALL)


def pages_with_tables() -> list[Path]:
    """Pages that show a kept record."""
    pages = [_ROOT / "README.md", *sorted((_ROOT / "docs").glob("*.md"))]
    return [page for page in pages if _shows_a_record(page.read_text(encoding="utf-8"))]


def with_tables(text: str) -> str:
    """Return the text of a page with the tables of the records as they are now."""
    with_findings = _FINDINGS.sub(lambda _: _found(), text)
    with_counts = _SAME_METHOD.sub(lambda _: _counted(), with_findings)
    with_answers = _CLAIMS.sub(lambda match: _answered(match[1], match[2]), with_counts)
    return _MARKED.sub(lambda match: _drawn(match[1]) if _is_record(match[1]) else match[0], with_answers)


def _shows_a_record(text: str) -> bool:
    marked = _CLAIMS.search(text) or _SAME_METHOD.search(text) or _FINDINGS.search(text)
    return marked is not None or any(map(_is_record, _MARKED.findall(text)))


def _is_record(name: str) -> bool:
    return (FOLDER / f"{name}.json").exists()


def _drawn(name: str) -> str:
    table = to_markdown(table_of(MeasuredExperiment.kept(name))).strip()
    return f"<!-- table: {name} -->\n\n{table}\n\n<!-- end of table -->"


def _answered(name: str, experiment: str) -> str:
    claims = claims_markdown(experiment, MeasuredExperiment.kept(name))
    return f"<!-- claims: {name} of {experiment} -->\n\n{claims}\n\n<!-- end of claims -->"


def _counted() -> str:
    return f"<!-- same method -->\n\n{counts_markdown()}\n\n<!-- end of same method -->"


def _found() -> str:
    return f"<!-- findings -->\n\n{findings_markdown()}\n\n<!-- end of findings -->"


if __name__ == "__main__":
    for page in pages_with_tables():
        write_whole(page, with_tables(page.read_text(encoding="utf-8")))
