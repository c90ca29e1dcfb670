"""Draws the papers' figures, and those of stored experiments, and writes their files; without torch."""

from pathlib import Path

from reports.figures.style import FigureError, png_of, svg_of
from reports.page.material import Material
from reports.paper_figures import PAPER_FIGURES, PaperFigure
from reproduce.errors import InputError, writing_to
from reproduce.outputs.find_runs import NamedExperiment
from results.atomic_files import write_atomically
from results.store.store import Store


def run_commands(figure: PaperFigure) -> str:
    """Return the commands that make the runs of a figure, for messages."""
    return " and ".join(f"`reproduce run {name}`" for name in figure.experiments)


def draw_paper_figure(name: str, store: Store, folder: Path) -> tuple[list[Path], str]:
    """Draw a paper's figure and write it as PNG and SVG, and its scores as CSV; return the files, and the caption."""
    figure = PAPER_FIGURES[name]
    materials = _materials(name, store)
    try:
        drawn, scores, note = figure.draw(materials)
    except FigureError as error:
        raise InputError(f"{name} cannot be drawn: {error}") from error
    texts = scores["values"].map(lambda values: " ".join(map(repr, values)))
    content: dict[str, str | bytes] = {
        f"{name}.png": png_of(drawn),
        f"{name}.svg": svg_of(drawn),
        f"{name}.csv": scores.assign(values=texts).to_csv(index=False, lineterminator="\n"),
    }
    with writing_to(folder):
        for file, text in content.items():
            write_atomically(folder / file, text)
    return [folder / file for file in content], f"{_caption(figure, materials)} {note}".strip()


def draw_own_figures(experiment: NamedExperiment, store: Store, folder: Path) -> list[tuple[str, str]]:
    """Draw the figures of a stored experiment's page, and write them; return their names and titles."""
    from reports.page.figures import page_figures
    from reproduce.outputs.page import gather

    figures = [one for one in page_figures(gather(experiment.name, experiment.fingerprint, store)) if one.png]
    with writing_to(folder):
        for figure in figures:
            figure.save(folder)
    return [(figure.name, figure.title) for figure in figures]


def _materials(name: str, store: Store) -> dict[str, Material]:
    """Collect the experiments of a figure that have runs, by panel; the key is empty for a file without panels."""
    # The material of a page has the searches, whose import takes seconds; the list of figures needs none.
    from reproduce.outputs.page import gather

    figure, latest = PAPER_FIGURES[name], store.latest_experiments()
    gathered = {own.partition("/")[2]: gather(own, latest[own], store) for own in figure.own_of(latest)}
    materials = {panel: material for panel, material in gathered.items() if material.records}
    if not materials:
        raise InputError(f"{name}: {store.url} has no tested runs for it; make them with {run_commands(figure)}")
    return materials


def _caption(figure: PaperFigure, materials: dict[str, Material]) -> str:
    """Write the caption: the figure in the paper, the experiments, and what differs from the suite's file."""
    origin = ", ".join(f"{material.name} ({material.measured.summary.dataset})" for material in materials.values())
    differences = [
        f"{material.name} differs from the suite's file: {'; '.join(material.deviations)}."
        for material in materials.values()
        if material.deviations
    ]
    head = f"{figure.paper}, {figure.number}: {figure.title}. Drawn from {origin}."
    return " ".join((head, figure.caption, *differences))
