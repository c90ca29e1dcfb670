"""Kept records, and a page about one of them."""

from unittest import mock

from reports.page import page
from reports.page.material import Command, Material, MethodSource
from reports.page.page import build_page
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.page_material import search


def measured(name: str = "quickstart_one_search") -> MeasuredExperiment:
    return MeasuredExperiment.kept(name)


def runs_of(experiment: MeasuredExperiment, method: str, variant: str = "concatenated") -> tuple[float, ...]:
    own = sorted((r for r in experiment.records if r.method == method), key=lambda record: record.run)
    return tuple(getattr(record, variant).map_at_r for record in own)


def sample_page(name: str = "quickstart_one_search", **changes: object) -> str:
    """The page of a kept record, with a search, commands and sources."""
    parts = {
        "searches": {"contrastive": search()},
        "commands": (Command("make quickstart", "Everything on this page, from nothing:"),),
        "sources": {"contrastive": MethodSource("A paper.", ("https://arxiv.org/abs/1234.56789",))},
        "made": "Made from results/measured.",
    }
    html, _ = build_page(Material(name, answer_of(measured(name)), **{**parts, **changes}))
    return html


def tables_page(name: str) -> str:
    """The page of a kept record without its figures, which take most of the time."""
    with mock.patch.object(page, "page_figures", return_value=()):
        html, _ = build_page(Material(name, answer_of(measured(name))))
    return html
