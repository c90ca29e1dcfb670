"""A page about measured records that the repository keeps, for the tests of the page."""

import numpy as np

from reports.figures.intervals import MethodRuns, interval_plot
from reports.figures.style import svg_of
from reports.page.content import Command, FigureView, Gallery, GalleryRow, PageContent, TableSection, Thumbnail, Verdict
from reports.page.material import Material
from reports.page.render import data_uri, thumbnail_uri
from reports.page.sections.answer import limits
from reports.page.sections.headline import headline
from reports.page.sections.origins import origins_of, protocol_facts
from reports.page.sections.pair_matrix import pair_matrix
from reports.page.sections.published_values import PublishedValue
from reports.page.sections.ranking import ranking
from reports.page.sections.table_sections import scores_table
from reports.tables.result_table import table_of
from results.statistics.intervals import student_t_interval
from results.statistics.published_verdict import PublishedMean
from results.store.experiment_results import MeasuredExperiment

PUBLISHED = {"contrastive": 0.2653, "proxy_anchor": 0.3891}
"""Values that no paper printed: they are here to be shown inside and outside an interval."""


def measured(name: str = "quickstart_one_search") -> MeasuredExperiment:
    return MeasuredExperiment.kept(name)


def runs_of(experiment: MeasuredExperiment, method: str, variant: str = "concatenated") -> tuple[float, ...]:
    own = sorted((r for r in experiment.records if r.method == method), key=lambda record: record.run)
    return tuple(getattr(record, variant).map_at_r for record in own)


def method_runs(experiment: MeasuredExperiment) -> list[MethodRuns]:
    rows = []
    for key, title in experiment.summary.methods.items():
        values = runs_of(experiment, key)
        rows.append(MethodRuns(title, values, student_t_interval(values), PUBLISHED.get(key)))
    return rows


def sample_verdicts() -> tuple[Verdict, ...]:
    return (
        Verdict("warning", "The budget is a small part of the protocol's: an example, not a finding."),
        Verdict("inside", "A published value lies inside our prediction interval."),
    )


def sample_gallery(queries: int = 3, neighbours: int = 5) -> Gallery:
    generator = np.random.default_rng(0)

    def picture() -> str:
        small = generator.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        return thumbnail_uri(np.kron(small, np.ones((8, 8, 1), dtype=np.uint8)))

    rows = []
    for query in range(queries):
        found = tuple(
            Thumbnail(picture(), f"class {query if rank % 2 else query + 7}", rank % 2 == 1, f"cosine 0.{90 - rank}")
            for rank in range(neighbours)
        )
        rows.append(GalleryRow(Thumbnail(picture(), f"class {query}", None, f"class MAP@R {3 * query + 2}.0 %"), found))
    return Gallery("Proxy-Anchor, run 0: hardest classes", tuple(rows), "Nearest first, among all test images.")


def sample_content(name: str = "quickstart_one_search", **changes: object) -> PageContent:
    experiment = measured(name)
    methods, material = experiment.summary.methods, Material(name, experiment)
    rows = method_runs(experiment)
    published = {
        (key, ("concatenated", "map_at_r")): PublishedValue(PublishedMean(value), "made up for the test")
        for key, value in PUBLISHED.items()
    }
    scores = scores_table(table_of(experiment), experiment, published)
    interval_figure = svg_of(interval_plot(rows, "concatenated MAP@R"))
    fields = {
        "title": experiment.summary.title,
        "subtitle": "Which differences between methods are real, under the Metric Learning Reality Check's protocol.",
        "made": "Made from results/measured on 2026-11-21.",
        "highlights": (
            ("methods", str(len(methods))),
            ("runs", str(len(experiment.records))),
            ("trials per method", str(experiment.summary.trials)),
            ("folds", "4"),
        ),
        "headline": headline(material),
        "limits": limits(material),
        "ranking": ranking(material),
        "matrix": pair_matrix(material),
        "verdicts": sample_verdicts(),
        "tables": (TableSection(scores),),
        "figures": (
            FigureView(
                "Concatenated MAP@R by method",
                data_uri(interval_figure.encode(), "image/svg+xml"),
                "Means of the methods with their 95 % intervals; the numbers are in the table above.",
                "Dots below a mean are its single runs. An orange tick is a published value.",
            ),
        ),
        "galleries": (sample_gallery(),),
        "protocol": protocol_facts(experiment.summary.experiment.without_folder()),
        "origins": origins_of(experiment, methods),
        "commands": (
            Command("make quickstart", "Everything on this page, from nothing:"),
            Command("python -m reproduce table quickstart", "The table alone, from the store:"),
        ),
    }
    return PageContent(**{**fields, **changes})
