"""Builds an experiment's page: plain values for its template, in one HTML file that loads nothing from the network."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from reports.headline import headline
from reports.page.figures import PageFigure, page_figures
from reports.page.material import Material, version
from reports.page.ranking import matrix, ranking, reading_of_marks
from reports.published.eligibility import StoredExperiment, concerns
from reports.published.join import ComparedTable, join, published_layout
from reports.tables.differences import asked_pairs, compared_words, differences
from reports.tables.formats import WRITERS, escape_latex, templates, to_html
from reports.tables.holds import holds_table, what_stands
from reports.tables.method_tables import costs, hyperparameters, peeking_table, recipes
from reports.tables.result_table import table_of
from reports.tables.table import Table
from reports.tables.tests_in_words import adjustment_words, variance_words
from results.findings.experiment import ExperimentAnswer
from results.published.tables import published_table, published_tables
from results.records.provenance import Provenance
from results.values import flat
from results.wording import capitalized, counted, every, in_words, plural, things

_LEVELS = ("limit", "warning", "note")
_FOLDER = Path(__file__).parent / "templates"
_FILES = (("csv", "csv", "text/csv"), ("md", "markdown", "text/markdown"), ("tex", "latex", "application/x-tex"))
"""Suffix, format and media type of the files that a page offers of each table."""


class PageTable(NamedTuple):
    """A table with the files that the page offers of it: their names and data URIs."""

    table: Table
    downloads: tuple[tuple[str, str], ...]


def build_page(material: Material) -> tuple[str, tuple[PageFigure, ...]]:
    """Return the page of an experiment as HTML, and all its figures. Parts without data are left out.

    Every text is escaped. The page's content security policy forbids all requests, and all scripts except its own.
    """
    figures = tuple(page_figures(material))
    environment, script = templates(_FOLDER), (_FOLDER / "page.js").read_text(encoding="utf-8")
    environment.filters |= {
        "duration": in_words,
        "latex": lambda text: escape_latex(text.unescape()),
        "counted": counted,
        "every": every,
        "things": things,
        "plural": plural,
    }
    html = environment.get_template("page.html").render(
        **page_values(material, figures),
        style=(_FOLDER / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        table_html=to_html,
    )
    return html, figures


def page_values(material: Material, figures: tuple[PageFigure, ...] = ()) -> dict[str, Any]:
    """Return the values of the page's template."""
    answer = material.answer
    found = answer if isinstance(answer, ExperimentAnswer) else None
    return {
        "material": material,
        "headline": headline(answer),
        "stands": what_stands(answer),
        "holds": _table_if_any(material, holds_table(answer), "holds"),
        "findings": {level: [one for one in answer.findings if one.level == level] for level in _LEVELS},
        "ranking": ranking(material),
        "matrix": matrix(answer),
        "reading_of_marks": reading_of_marks(answer),
        "pairs": _table_if_any(material, differences(answer), "differences"),
        "asked": capitalized(asked_pairs(answer)) if answer.compared else "",
        "compared": compared_words(answer) if answer.compared else "",
        "variance": variance_words(answer) if answer.compared else "",
        "adjustment": adjustment_words(answer.question),
        "exceptions": answer.sample.may_err,
        "scores": _table(material, table_of(answer), "table", "results"),
        "figures": {
            section: [figure for figure in figures if figure.section == section]
            for section in dict.fromkeys(figure.section for figure in figures)
        },
        "version": version(),
        **_of_experiment(material, found),
    }


def _of_experiment(material: Material, found: ExperimentAnswer | None) -> dict[str, Any]:
    """What only an experiment has: its runs and trainings, settings, and the tables of papers; empty without one."""
    measured = found.measured if found else None
    compared = _published(material, found) if found else []
    environments, environment_of = _environments(material)
    settings = flat(measured.plan.experiment.without_folder()) if measured else ()
    cut_off = list(measured.cut_offs.values()) if measured else []
    return {
        "measured": measured,
        "published": [
            PageTable(table := published_layout(one), _downloads(table, one.published.name))
            for one in (replace(one, rows=tuple(row for row in one.rows if row.was_run)) for one in compared)
            if one.rows
        ],
        "not_compared": [one for one in compared if not any(row.was_run for row in one.rows)],
        "recipes": _table_if_any(material, recipes(found), "recipes") if found else None,
        "details": list(filter(None, _details(material, found))) if found else [],
        "settings": {key: _setting(value) for key, value in settings if value not in ([], None)},
        "cut_off": (sum(cut for cut, _ in cut_off), sum(trained for _, trained in cut_off)),
        "environments": environments,
        "environment_of": environment_of,
    }


def _setting(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _downloads(table: Table, name: str) -> tuple[tuple[str, str], ...]:
    encoded = {suffix: base64.b64encode(WRITERS[form](table).encode()).decode() for suffix, form, _ in _FILES}
    return tuple((f"{name}.{suffix}", f"data:{kind};base64,{encoded[suffix]}") for suffix, _, kind in _FILES)


def _table(material: Material, table: Table, name: str, kind: str = "") -> PageTable:
    """A table without the title of the experiment, and without the findings, which the page shows once."""
    table = replace(table, label=f"{material.label or material.name} {kind or name}")
    shown = {finding.sentences for finding in material.answer.findings}
    title = capitalized(table.title.removeprefix(f"{material.answer.question.title}: "))
    notes, remarks = (tuple(note for note in of if note not in shown) for of in (table.notes, table.remarks))
    return PageTable(replace(table, title=title, notes=notes, remarks=remarks), _downloads(table, name))


def _table_if_any(material: Material, table: Table, name: str) -> PageTable | None:
    return _table(material, table, name) if table.rows else None


def _details(material: Material, found: ExperimentAnswer) -> Iterator[PageTable | None]:
    yield _table_if_any(material, hyperparameters(found, material.published), "hyperparameters")
    yield _table_if_any(material, peeking_table(found), "peeking")
    yield _table_if_any(material, costs(found), "costs")


def _published(material: Material, found: ExperimentAnswer) -> list[ComparedTable]:
    """The published tables that concern the experiment; one without any value of ours if it says why."""
    stored = StoredExperiment(material.name, found, material.departures)
    tables = [
        join(table, [stored])
        for table in map(published_table, published_tables())
        if concerns(table, material.name, found.measured.plan)
    ]
    return [table for table in tables if table.notes]


def _environments(material: Material) -> tuple[list[Provenance], dict[str, int]]:
    """The different environments of the runs, and the number of its environment by the fingerprint of a run."""
    found: dict[str, Provenance] = {}
    numbers = {}
    for run in (run for runs in material.records.values() for run in runs):
        environment = run.provenance.model_copy(update={"finished_at": ""})
        found.setdefault(key := environment.model_dump_json(), environment)
        numbers[run.fingerprint] = list(found).index(key) + 1
    return list(found.values()), numbers
