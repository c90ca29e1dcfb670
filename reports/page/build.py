"""Builds the content of an experiment's page, and the figures that are saved beside it."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from reports.page.content import FoldOrigin, MethodSource, PageContent
from reports.page.material import Material
from reports.page.sections.citing import citing
from reports.page.sections.class_intervals import over_classes
from reports.page.sections.drawn_figure import Drawn
from reports.page.sections.embedding_figures import embedding_figures, galleries, map_figures
from reports.page.sections.glossary import GLOSSARY
from reports.page.sections.headline import headline, limits
from reports.page.sections.origins import origins_of
from reports.page.sections.pair_matrix import pair_matrix
from reports.page.sections.published_values import compared_tables, papers_figures, published_values, published_verdicts
from reports.page.sections.ranking import ranking
from reports.page.sections.run_figures import run_figures
from reports.page.sections.search_figures import search_figures
from reports.page.sections.settings import protocol_facts
from reports.page.sections.table_sections import tables_of
from reports.page.sections.verdicts import verdicts_of
from reports.page.sections.warnings import warnings_of
from reports.page.shared_drawing import Begun, begin
from reports.published.join import ComparedTable
from reports.tables.result_table import missing_runs
from results.records.records import FoldResult
from results.spec.source_names import sources_of_training
from results.spec.training_spec import FoldSpec


@dataclass(frozen=True)
class BuiltPage:
    """The content of a page, and all figures as files."""

    content: PageContent
    figures: tuple[Drawn, ...]


def build_page(material: Material, helper: Executor | None = None) -> BuiltPage:
    """Build the page of an experiment.

    Args:
        material: The experiment with its records. Parts without data are left out of the page.
        helper: Another process, which draws a part of the figures meanwhile; None draws all of them here.

    Returns:
        The content, which names missing runs, and the figures.
    """
    begun = _begun(material, helper) if material.records else ()
    missing = missing_runs(material.measured)
    compared = compared_tables(material)
    of_runs, of_embeddings = _drawn_here(material, compared) if material.records else ((), ())
    summary, classes = material.measured.summary, over_classes(material)
    settings = {name: value for name, value in summary.experiment.without_folder().items() if name != "title"}
    content = PageContent(
        title=summary.title,
        subtitle=f"{material.name}: {_subtitle(material)}",
        made=material.made,
        missing=missing,
        highlights=_highlights(material),
        headline=headline(material),
        limits=limits(material),
        ranking=ranking(material),
        matrix=pair_matrix(material, classes),
        verdicts=(
            *warnings_of(material, partial=bool(missing)),
            *verdicts_of(material),
            *published_verdicts(compared, material.titles),
        ),
        tables=tables_of(material, compared, classes) if material.records else (),
        figures=(),
        galleries=galleries(material),
        protocol=protocol_facts(settings),
        origins=origins_of(
            material.measured.records,
            material.titles,
            _origins(material.measured.trainings),
            _users_sources(material.measured.trainings),
        ),
        commands=material.commands,
        citing=citing(material),
        sources=_sources(material),
        glossary=GLOSSARY,
    )
    # The helper draws while the other parts of the page are made, so its figures are wanted last.
    maps, of_searches = _drawn_there(begun) if material.records else ((), ())
    figures = (*of_runs, *maps, *of_embeddings, *of_searches)
    return BuiltPage(
        replace(content, figures=tuple(drawn.view for drawn in figures if drawn.view is not None)), figures
    )


def _begun(material: Material, helper: Executor | None) -> tuple[Begun, ...]:
    """Offer the figures that take longest to the helper: those with t-SNE, then those of the searches."""
    searched = [key for key in material.titles if key in material.searches]
    return (
        begin(helper, map_figures, material),
        *(begin(helper, search_figures, key, material.titles[key], material.searches[key]) for key in searched),
    )


def _drawn_here(material: Material, compared: Sequence[ComparedTable]) -> tuple[tuple[Drawn, ...], tuple[Drawn, ...]]:
    of_runs = (*papers_figures(material, compared), *run_figures(material, published_values(compared)))
    return of_runs, tuple(embedding_figures(material))


def _drawn_there(begun: Sequence[Begun]) -> tuple[tuple[Drawn, ...], tuple[Drawn, ...]]:
    # The helper begins with the first, so this process takes the last.
    maps, *of_searches = reversed([figures() for figures in reversed(begun)])
    return maps, tuple(figure for figures in of_searches for figure in figures)


def _subtitle(material: Material) -> str:
    dataset = material.measured.summary.dataset
    return f"which differences between methods are real on {dataset}, and the origin of every number."


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


def _sources(material: Material) -> tuple[tuple[str, MethodSource], ...]:
    return tuple((title, material.sources[key]) for key, title in material.titles.items() if key in material.sources)


def _origins(trainings: Mapping[str, tuple[FoldSpec, FoldResult]]) -> dict[str, FoldOrigin]:
    return {
        name: FoldOrigin(name, spec.seed, result.wall_time, _ending(result))
        for name, (spec, result) in trainings.items()
    }


def _users_sources(trainings: Mapping[str, tuple[FoldSpec, FoldResult]]) -> dict[str, tuple[str, ...]]:
    """Return the classes from users' files and modules by method, with the hashes of their sources."""
    sources = {spec.method.name: sources_of_training(spec) for spec, _ in trainings.values()}
    return {method: names for method, names in sources.items() if names}


def _ending(result: FoldResult) -> str:
    checkpoint = f"iteration {result.best_iteration} of {result.iterations} kept"
    reason = {
        "patience": "stopped by patience",
        "max_epochs": "stopped after the last epoch",
        "nan": f"diverged ({result.reason})",
        "untrained": "not trained",
    }[result.stopped_by]
    return reason if result.stopped_by == "untrained" else f"{checkpoint}, {reason}"
