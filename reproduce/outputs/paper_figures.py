"""Draws the papers' figures from a store and writes their files, without torch."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from reports.figures.names_in_text import names_in_text, names_words
from reports.figures.style import FigureError, png_of, svg_of
from reports.page.material import Material
from reports.paper_figures.paper_figure import PaperFigure
from reports.paper_figures.registry import PAPER_FIGURES
from reproduce.errors import InputError
from reproduce.outputs.find_runs import NamedExperiment, find_experiments
from reproduce.storage import StoragePaths
from results.store.store import IncompleteExperimentError, Store
from results.whole_files import write_whole


@dataclass(frozen=True)
class DrawnFigure:
    """A figure that was drawn and saved.

    Attributes:
        files: The PNG file, the SVG file and, for a figure of scores, the CSV file.
        caption: The caption in plain text.
    """

    files: tuple[Path, ...]
    caption: str


def paper_figure(name: str) -> PaperFigure:
    """Return a figure by its name; raise InputError with the known names if there is none."""
    if name not in PAPER_FIGURES:
        raise InputError(f"there is no figure {name!r}; the figures are {', '.join(PAPER_FIGURES)}")
    return PAPER_FIGURES[name]


def stored_runs(store: Store) -> dict[str, int]:
    """Return the number of tested runs of every experiment in the store, by NAME or NAME/PANEL."""
    counts = {}
    for name, fingerprint in store.latest_experiments().items():
        with suppress(IncompleteExperimentError):
            counts[name] = len(store.experiment_runs(fingerprint))
    return counts


def run_commands(figure: PaperFigure, experiment: str | None = None) -> str:
    """Return the commands that make the runs of a figure, for messages."""
    names = figure.experiments if experiment is None else (experiment,)
    return " and ".join(f"`reproduce run {name}`" for name in names)


def draw_figure(
    figure: PaperFigure, store: Store, where: StoragePaths, folder: Path, experiment: str | None = None
) -> DrawnFigure:
    """Draw a figure and write it as PNG, SVG and, for a figure of scores, the scores as CSV.

    A stored `experiment` takes the place of the figure's own.
    """
    materials = figure_materials(figure, store, where, experiment)
    try:
        drawn = figure.draw(materials)
        values = None if figure.scores is None else figure.scores.values(materials)
        caption = _caption(figure, materials, replaced=experiment is not None)
    except FigureError as error:
        raise InputError(f"{figure.name} cannot be drawn: {error}") from error
    caption = " ".join(part for part in (caption, names_words(names_in_text(drawn))) if part)
    return DrawnFigure(_written(figure.name, folder, svg_of(drawn), png_of(drawn), values), caption)


def figure_materials(
    figure: PaperFigure, store: Store, where: StoragePaths, experiment: str | None = None
) -> dict[str, Material]:
    """Collect the experiments of a figure that have runs, by panel; the key is empty for a file without panels."""
    # The material of a page has the searches, whose import takes seconds; the list of figures needs none.
    from reproduce.outputs.page import gather

    if experiment is not None:
        found = find_experiments(store, [experiment])
    else:
        latest = store.latest_experiments()
        found = [NamedExperiment(name, latest[name]) for name in figure.own_of(latest)]
    materials = {}
    for stored in found:
        material = gather(stored.name, stored.fingerprint, store)
        if material.records:
            materials[stored.name.partition("/")[2]] = material
    if not materials:
        commands = run_commands(figure, experiment)
        raise InputError(f"{figure.name}: {store.url} has no tested runs for it; make them with {commands}")
    return materials


def _caption(figure: PaperFigure, materials: dict[str, Material], *, replaced: bool) -> str:
    """Write the caption: the figure in the paper, the experiments, what the points are, and what differs.

    If another experiment replaces the figure's own, what the suite says about its own points does not hold.
    """
    drawn_from = ", ".join(f"{material.name} ({material.measured.summary.dataset})" for material in materials.values())
    if replaced:
        notes = [f"As in {figure.paper}, {figure.number} ({figure.title}), drawn from {drawn_from}."]
        notes += [figure.caption] if figure.scores is None else []
    else:
        notes = [f"{figure.paper}, {figure.number}: {figure.title}. Drawn from {drawn_from}.", figure.caption]
        notes += [
            f"{material.name} differs from the suite's file: {'; '.join(material.deviations)}."
            for material in materials.values()
            if material.deviations
        ]
    if figure.scores is not None:
        notes.append(figure.scores.note(materials))
    return " ".join(notes)


def _written(name: str, folder: Path, svg: str, png: bytes, values: pd.DataFrame | None) -> tuple[Path, ...]:
    content: dict[str, str | bytes] = {"png": png, "svg": svg}
    if values is not None:
        content["csv"] = values.to_csv(index=False, lineterminator="\n")
    paths = tuple(folder / f"{name}.{suffix}" for suffix in content)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, content.values(), strict=True):
            write_whole(path, text)
    except OSError as error:
        reason = f"{folder}: cannot be written ({error.strerror or error})"
        raise InputError(f"{reason}; choose another folder with --to") from error
    return paths
