"""Writes an experiment's page and figures from its store and its folder of artifacts, without torch.

What draws the page is imported when a page is drawn: a run whose page is current does not wait for it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

from reports.page.content import MethodSource
from reports.page.material import Material
from reproduce.config.deviations import deviations, mlrc_experiment
from reproduce.config.method_card import suite_card
from reproduce.errors import InputError
from reproduce.outputs.page_inputs import forget, is_current, page_fingerprint, remember
from reproduce.outputs.rerun_commands import rerun_commands
from reproduce.outputs.search_histories import histories
from reproduce.outputs.tables import published_names
from reproduce.quick_imports import quick_imports
from reproduce.storage import StoragePaths, open_store
from results.records.artifacts import FigureData, Recording, figure_data_path, recording_path, weights_path
from results.store.experiment_results import MeasuredExperiment
from results.store.store import IncompleteExperimentError, Store
from results.whole_files import file_name, write_whole

if TYPE_CHECKING:
    from reports.page.sections.drawn_figure import Drawn

import re
import subprocess

import yaml

_ROOT = Path(__file__).resolve().parents[2]
_PUBLIC = re.compile(r"https://(?:www\.)?(?:github\.com|gitlab\.com|codeberg\.org)/[\w./-]+")
"""Addresses whose commits have pages at ADDRESS/commit/COMMIT. None of them has a name or a password in it."""


def repository_address(checkout: Path = _ROOT) -> str:
    """Return the address of the repository.

    Args:
        checkout: The folder with `CITATION.cff`.

    Returns:
        `repository-code` of `CITATION.cff`; if it is not set, the address from which the checkout was cloned. Empty if
        neither is a public address on GitHub, GitLab or Codeberg.
    """
    address = _cited(checkout) or _cloned_from(checkout)
    address = address.strip().removesuffix("/").removesuffix(".git")
    return address if _PUBLIC.fullmatch(address) else ""


def _cited(checkout: Path) -> str:
    file = checkout / "CITATION.cff"
    content = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return str(content.get("repository-code", ""))


def _cloned_from(checkout: Path) -> str:
    if not (checkout / ".git").exists():
        return ""
    command = ["git", "-C", str(checkout), "config", "--get", "remote.origin.url"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


_PAGE = "index.html"
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, BadZipFile)


def write_page(name: str, fingerprint: str, store: Store, where: StoragePaths, folder: Path) -> Path:
    """Write the page of an experiment, and its figures as PNG and SVG.

    The page is `folder`/NAME/index.html, and the figures are in `folder`/NAME/figures. The slash of a panel's name
    becomes an underscore. The page is written completely or not at all. Figures of an earlier page are replaced.

    Args:
        name: The experiment's name in the store.
        fingerprint: The experiment's fingerprint.
        store: The store.
        where: Paths of the store and the artifacts.
        folder: Folder for pages.

    Returns:
        The file of the page.

    Raises:
        StoreError: The store cannot be read.
        InputError: The page cannot be written.
    """
    return _draw(gather(name, fingerprint, store, where), folder / file_name(name))


def current_page(name: str, fingerprint: str, store: Store, where: StoragePaths, folder: Path) -> Path:
    """Return the file of the page; write it as `write_page` does, but only if what it shows has changed."""
    material, page_folder = gather(name, fingerprint, store, where), folder / file_name(name)
    if is_current(page_folder, page_fingerprint(material)):
        return page_folder / _PAGE
    return _draw(material, page_folder)


def _draw(material: Material, page_folder: Path) -> Path:
    with quick_imports():
        from reports.page.render import render_page
        from reproduce.outputs.quick_drawing import build_quickly

    built = build_quickly(material)
    page = page_folder / _PAGE
    try:
        forget(page_folder)
        figures = _write_figures(built.figures, page_folder / "figures")
        write_whole(page, render_page(built.content))
        remember(page_folder, page_fingerprint(material), [_PAGE, *(f"figures/{name}" for name in figures)])
    except OSError as error:
        reason = f"{page_folder}: cannot be written ({error.strerror or error})"
        raise InputError(f"{reason}; choose another folder with --to") from error
    return page


def gather(name: str, fingerprint: str, store: Store, where: StoragePaths) -> Material:
    """Collect the material of an experiment's page from the store and the folder of artifacts.

    Args:
        name: The experiment's name in the store.
        fingerprint: The experiment's fingerprint.
        store: The store.
        where: Paths of the store and the artifacts.

    Raises:
        StoreError: The store cannot be read.
        InputError: A file of the suite cannot be read.
    """
    measured = MeasuredExperiment.from_store(store, fingerprint, trainings=True)
    studies = store.searches.of_experiment(fingerprint)
    figure_data, unreadable = _figure_data(measured, store.artifacts)
    recordings, unreadable_recordings = _recordings(measured, store.artifacts)
    return Material(
        name=name,
        measured=measured,
        figure_data=figure_data,
        recordings=recordings,
        unreadable=(*unreadable, *unreadable_recordings),
        searches=histories(studies, measured.summary.methods, measured.summary.trials),
        panels=_panels(name, store),
        commands=rerun_commands(name, measured),
        published_names=published_names(measured),
        deviations=deviations(name, measured.summary),
        mlrc=mlrc_experiment(measured.summary.dataset),
        sources=_sources(measured),
        repository=repository_address(),
        made=_origin_line(fingerprint),
    )


def _sources(measured: MeasuredExperiment) -> dict[str, MethodSource]:
    cards = {key: suite_card(key) for key in measured.summary.methods}
    return {key: MethodSource(card.source, card.papers) for key, card in cards.items() if card is not None}


def _figure_data(measured: MeasuredExperiment, artifacts: Path) -> tuple[dict[str, FigureData], tuple[str, ...]]:
    """Return the figure data of the first reproductions by method, and the names of files that cannot be read."""
    found: dict[str, FigureData] = {}
    unreadable = []
    for record in measured.records:
        path = figure_data_path(artifacts, record.fingerprint)
        if record.run == record.search == 0 and path.exists():
            try:
                found[record.method] = FigureData.load(path)
            except _UNREADABLE:
                unreadable.append(path.name)
    return found, tuple(unreadable)


def _recordings(measured: MeasuredExperiment, artifacts: Path) -> tuple[dict[str, Recording], tuple[str, ...]]:
    """Return the recordings of the first reproductions' first folds, and the names of files that cannot be read."""
    recordings, unreadable = {}, []
    for record in measured.records:
        training = measured.trainings.get(record.fold_fingerprints[0])
        if record.run > 0 or training is None:
            continue
        path = recording_path(weights_path(artifacts, training[0]))
        if path.exists():
            try:
                recordings[record.method] = Recording.load(path)
            except _UNREADABLE:
                unreadable.append(path.name)
    return recordings, tuple(unreadable)


def _panels(name: str, store: Store) -> dict[str, MeasuredExperiment]:
    """Return the latest experiments of all panels of the same file, by panel."""
    file, slash, _ = name.partition("/")
    if not slash:
        return {}
    panels = {}
    for other, fingerprint in store.latest_experiments().items():
        if other.startswith(f"{file}/"):
            with suppress(IncompleteExperimentError):
                panels[other.removeprefix(f"{file}/")] = MeasuredExperiment.from_store(store, fingerprint)
    return panels


def _origin_line(fingerprint: str) -> str:
    try:
        version = f" by metric-learning-reproductions {metadata.version('metric-learning-reproductions')}"
    except metadata.PackageNotFoundError:
        version = ""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Drawn on {now}{version} from experiment {fingerprint} of the store."


def _write_figures(figures: tuple[Drawn, ...], folder: Path) -> list[str]:
    """Write the files of the figures, remove those of an earlier page, and return the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {figure.name for figure in figures if figure.svg is not None}
    for path in folder.iterdir():
        if path.suffix in (".svg", ".png") and path.stem not in names:
            path.unlink()
    return [name for figure in figures for name in figure.save(folder)]


def page_or_reason(name: str, fingerprint: str, where: StoragePaths) -> str:
    """Write the page of a finished run if what it shows has changed, and return a line with its path.

    An error does not end the run; the line then gives the reason.
    """
    try:
        return f"page: {current_page(name, fingerprint, open_store(where), where, where.reports)}"
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return f"no page was written ({reason}); everything is in the store, try `reproduce report {name}`"
