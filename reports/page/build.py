"""Builds the content of an experiment's page, and the figures that are saved beside it."""

from dataclasses import dataclass

from reports.page.content import PageContent
from reports.page.material import Material
from reports.page.sections.answer import limits, verdicts_of
from reports.page.sections.citing import citing
from reports.page.sections.class_intervals import over_classes
from reports.page.sections.drawn_figure import Drawn
from reports.page.sections.embedding_figures import embedding_figures, galleries, map_figures
from reports.page.sections.headline import headline
from reports.page.sections.origins import origins_of, protocol_facts
from reports.page.sections.pair_matrix import pair_matrix
from reports.page.sections.published_values import compared_tables, papers_figures, published_values, published_verdicts
from reports.page.sections.ranking import ranking
from reports.page.sections.run_figures import run_figures, search_figures
from reports.page.sections.table_sections import tables_of
from reports.page.sections.warnings import warnings_of
from reports.published.join import ComparedTable
from reports.tables.result_table import missing_runs


@dataclass(frozen=True)
class BuiltPage:
    """The content of a page, and all figures as files."""

    content: PageContent
    figures: tuple[Drawn, ...]


def build_page(material: Material) -> BuiltPage:
    """Build the page of an experiment. Parts without data are left out of the page, and missing runs are named."""
    missing, compared = missing_runs(material.measured), compared_tables(material)
    figures = _figures(material, compared) if material.records else ()
    summary, classes = material.measured.summary, over_classes(material)
    settings = {name: value for name, value in summary.experiment.without_folder().items() if name != "title"}
    content = PageContent(
        title=summary.title,
        subtitle=f"{material.name}: which differences between methods are real on {summary.dataset}, "
        "and the origin of every number.",
        made=material.made,
        missing=missing,
        highlights=_highlights(material),
        headline=headline(material),
        limits=limits(material),
        ranking=ranking(material),
        matrix=pair_matrix(material, classes),
        verdicts=(
            *warnings_of(material, unfinished=bool(missing)),
            *verdicts_of(material),
            *published_verdicts(compared, material.titles),
        ),
        tables=tables_of(material, compared, classes) if material.records else (),
        figures=tuple(drawn.view for drawn in figures if drawn.view is not None),
        galleries=galleries(material),
        protocol=protocol_facts(settings),
        origins=origins_of(material.measured, material.titles),
        commands=material.commands,
        citing=citing(material),
        sources=tuple(
            (title, material.sources[key]) for key, title in material.titles.items() if key in material.sources
        ),
    )
    return BuiltPage(content, figures)


def _figures(material: Material, compared: tuple[ComparedTable, ...]) -> tuple[Drawn, ...]:
    searched = [key for key in material.titles if key in material.searches]
    return (
        *papers_figures(material, compared),
        *run_figures(material, published_values(compared)),
        *map_figures(material),
        *embedding_figures(material),
        *(figure for key in searched for figure in search_figures(key, material.titles[key], material.searches[key])),
    )


def _highlights(material: Material) -> tuple[tuple[str, str], ...]:
    runs = [run for method_runs in material.records.values() for run in method_runs]
    numbers = [(len(runs), "run", "runs"), (material.measured.summary.trials, "trial per method", "trials per method")]
    if runs:
        numbers += [
            (material.folds, "model per run", "models per run"),
            (runs[0].test_classes, "test class", "test classes"),
            (runs[0].test_images, "test image", "test images"),
        ]
    run, planned = len(material.records), len(material.titles)
    methods = ("method" if planned == 1 else "methods", str(run) if run == planned else f"{run} of {planned}")
    return (methods, *((one if number == 1 else many, f"{number:,}") for number, one, many in numbers))
