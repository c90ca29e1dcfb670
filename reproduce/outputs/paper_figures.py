"""Draws the papers' figures from a store and writes their files, without torch."""

from pathlib import Path

from reports.figures.style import FigureError, png_of, svg_of
from reports.page.material import Material
from reports.paper_figures.registry import PAPER_FIGURES, PaperFigure
from reproduce.errors import InputError, writing_to
from reproduce.outputs.find_runs import NamedExperiment, find_experiments
from results.atomic_files import write_atomically
from results.store.store import Store


def run_commands(figure: PaperFigure, experiment: str | None = None) -> str:
    """Return the commands that make the runs of a figure, for messages."""
    names = figure.experiments if experiment is None else (experiment,)
    return " and ".join(f"`reproduce run {name}`" for name in names)


def draw_figure(name: str, store: Store, folder: Path, experiment: str | None = None) -> tuple[list[Path], str]:
    """Draw a figure and write it as PNG, SVG and, for a figure of scores, the scores as CSV.

    Args:
        name: Name of the figure.
        store: The store with the runs.
        folder: Where to write.
        experiment: A stored experiment that takes the place of the figure's own.

    Returns:
        The files, and the caption.
    """
    figure = PAPER_FIGURES[name]
    materials = _materials(name, store, experiment)
    try:
        drawn, scores, note = figure.draw(materials)
    except FigureError as error:
        raise InputError(f"{name} cannot be drawn: {error}") from error
    content: dict[str, str | bytes] = {f"{name}.png": png_of(drawn), f"{name}.svg": svg_of(drawn)}
    if scores is not None:
        texts = scores["values"].map(lambda values: " ".join(map(repr, values)))
        content[f"{name}.csv"] = scores.assign(values=texts).to_csv(index=False, lineterminator="\n")
    with writing_to(folder):
        for file, text in content.items():
            write_atomically(folder / file, text)
    caption = _caption(figure, materials, replaced=experiment is not None)
    return [folder / file for file in content], f"{caption} {note}".strip()


def _materials(name: str, store: Store, experiment: str | None) -> dict[str, Material]:
    """Collect the experiments of a figure that have runs, by panel; the key is empty for a file without panels."""
    # The material of a page has the searches, whose import takes seconds; the list of figures needs none.
    from reproduce.outputs.page import gather

    figure, latest = PAPER_FIGURES[name], store.latest_experiments()
    found = [NamedExperiment(own, latest[own]) for own in figure.own_of(latest)]
    if experiment is not None:
        found = find_experiments(store, [experiment])
    gathered = {one.name.partition("/")[2]: gather(one.name, one.fingerprint, store) for one in found}
    materials = {panel: material for panel, material in gathered.items() if material.records}
    if not materials:
        commands = run_commands(figure, experiment)
        raise InputError(f"{name}: {store.url} has no tested runs for it; make them with {commands}")
    return materials


def _caption(figure: PaperFigure, materials: dict[str, Material], *, replaced: bool) -> str:
    """Write the caption: the figure in the paper, the experiments, and what differs.

    If another experiment replaces the figure's own, what the suite says about its own points does not hold.
    """
    origin = ", ".join(f"{material.name} ({material.measured.summary.dataset})" for material in materials.values())
    if replaced:
        return f"As in {figure.paper}, {figure.number} ({figure.title}), drawn from {origin}."
    differences = [
        f"{material.name} differs from the suite's file: {'; '.join(material.deviations)}."
        for material in materials.values()
        if material.deviations
    ]
    head = f"{figure.paper}, {figure.number}: {figure.title}. Drawn from {origin}."
    return " ".join((head, figure.caption, *differences))
