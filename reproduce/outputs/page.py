"""Writes an experiment's page and figures from its store and its folder of artifacts, without torch.

A run that is called again leaves its page as it is while the fingerprint beside the page is the same: that of the
page's material, and of the code and the packages that draw it. What draws a page is imported only then.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zipfile import BadZipFile

import numpy as np
import yaml
from pydantic import BaseModel

import reports
import results
from reports.figures.trials import Parameter, SearchHistory, TrialPoint
from reports.page.content import MethodSource
from reports.page.material import Material
from reproduce.config.deviations import deviations, mlrc_experiment
from reproduce.config.method_card import suite_card
from reproduce.errors import InputError
from reproduce.outputs.rerun_commands import rerun_commands
from reproduce.outputs.result_files import link_latest, own_name
from reproduce.outputs.tables import published_names
from results.records.artifacts import FigureData, Recording, figure_data_path, recording_path, weights_path
from results.store.experiment_results import MeasuredExperiment
from results.store.searches import StoredStudy
from results.store.store import IncompleteExperimentError, Store
from results.whole_files import write_whole

if TYPE_CHECKING:
    from reports.page.sections.drawn_figure import Drawn

_ROOT = Path(__file__).resolve().parents[2]
_PUBLIC = re.compile(r"https://(?:www\.)?(?:github\.com|gitlab\.com|codeberg\.org)/[\w./-]+")
"""Addresses whose commits have pages at ADDRESS/commit/COMMIT. None of them has a name or a password in it."""


def repository_address(checkout: Path = _ROOT) -> str:
    """Return the address of the repository: `repository-code` of `CITATION.cff`, or else where it was cloned from.

    It is empty if neither is a public address on GitHub, GitLab or Codeberg.
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
_INPUTS = "inputs.sha256"
"""File beside a page: the fingerprint of what it shows, and the names of the page's files."""
_PACKAGES = ("matplotlib", "numpy", "scipy", "pandas", "scikit-learn", "jinja2", "pillow")
_SCALES: dict[str, Literal["linear", "log", "int"]] = {"linear": "linear", "log": "log", "int": "int", "int_log": "log"}
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, BadZipFile)


def write_page(name: str, fingerprint: str, store: Store, folder: Path) -> Path:
    """Write the page of an experiment, and its figures as PNG and SVG; return the file of the page.

    The page is `folder`/NAME-IDENTITY/index.html, and the figures are in `figures` beside it. `folder`/NAME leads to
    the latest experiment of the name. The slash of a panel's name becomes an underscore. The page is written completely
    or not at all. Figures of an earlier page are replaced.
    """
    page_folder = folder / own_name(name, fingerprint)
    return _linked(_draw(gather(name, fingerprint, store), page_folder), name, fingerprint, store)


def current_page(name: str, fingerprint: str, store: Store, folder: Path) -> Path:
    """Return the file of the page; write it as `write_page` does, but only if what it shows has changed."""
    material, page_folder = gather(name, fingerprint, store), folder / own_name(name, fingerprint)
    current = is_current(page_folder, page_fingerprint(material))
    return _linked(page_folder / _PAGE if current else _draw(material, page_folder), name, fingerprint, store)


def _linked(page: Path, name: str, fingerprint: str, store: Store) -> Path:
    link_latest(name, fingerprint, store, [page.parent])
    return page


def _draw(material: Material, page_folder: Path) -> Path:
    from reports.page.build import build_page
    from reports.page.render import render_page

    page, inputs = page_folder / _PAGE, page_folder / _INPUTS
    built = build_page(material)
    try:
        # A page that is not written to its end counts as outdated.
        inputs.unlink(missing_ok=True)
        figures = _write_figures(built.figures, page_folder / "figures")
        write_whole(page, render_page(built.content))
        names = [_PAGE, *(f"figures/{name}" for name in figures)]
        write_whole(inputs, "\n".join([page_fingerprint(material), *names]) + "\n")
    except OSError as error:
        reason = f"{page_folder}: cannot be written ({error.strerror or error})"
        raise InputError(f"{reason}; choose another folder with --to") from error
    return page


def is_current(page_folder: Path, fingerprint: str) -> bool:
    """Return whether a folder holds the page of this fingerprint, with all its figures."""
    try:
        written, *names = (page_folder / _INPUTS).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return False
    return written == fingerprint and all((page_folder / name).is_file() for name in names)


def gather(name: str, fingerprint: str, store: Store) -> Material:
    """Collect the material of an experiment's page from the store and the folder of artifacts."""
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
        made=drawn_line(f" from experiment {fingerprint} of the store"),
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
    file, slash, _ = name.partition("/")
    if not slash:
        return {}
    panels = {}
    for other, fingerprint in store.latest_experiments().items():
        if other.startswith(f"{file}/"):
            with suppress(IncompleteExperimentError):
                panels[other.removeprefix(f"{file}/")] = MeasuredExperiment.from_store(store, fingerprint)
    return panels


def histories(
    studies: Mapping[tuple[str, int], StoredStudy], methods: Mapping[str, str], budget: int
) -> dict[str, SearchHistory]:
    """Return the first search of each method that has finished trials, by the method's key."""
    first = {method: study for (method, search), study in studies.items() if search == 0 and method in methods}
    return {method: _history(study, budget) for method, study in first.items() if study.finished(budget)}


def _history(study: StoredStudy, budget: int) -> SearchHistory:
    space, sampler = study.identity["space"], study.identity["sampler"]
    numeric = [parameter for parameter in space if parameter["scale"] in _SCALES]
    parameters = tuple(Parameter(parameter["target"], _SCALES[parameter["scale"]]) for parameter in numeric)
    names = [parameter.name for parameter in parameters]
    points = [
        TrialPoint(
            trial.number,
            {name: value for name in names if isinstance(value := trial.setting[name], float | int)},
            trial.score,
            raced=trial.state == "raced",
            reason=trial.reason if trial.state == "failed" else None,
        )
        for trial in study.finished(budget)
    ]
    startup = 0 if space[0]["exhaustive"] else int(sampler["startup_trials"])
    return SearchHistory(tuple(points), parameters, startup)


def drawn_line(origin: str = "") -> str:
    """Say when a page was drawn, by which version of the suite, and from what."""
    try:
        version = f" by metric-learning-reproductions {metadata.version('metric-learning-reproductions')}"
    except metadata.PackageNotFoundError:
        version = ""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Drawn on {now}{version}{origin}."


def _write_figures(figures: tuple[Drawn, ...], folder: Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    names = {figure.name for figure in figures if figure.svg is not None}
    for path in folder.iterdir():
        if path.suffix in (".svg", ".png", ".txt") and path.stem not in names:
            path.unlink()
    return [name for figure in figures for name in figure.save(folder)]


def page_fingerprint(material: Material, folders: tuple[Path, ...] | None = None) -> str:
    """Return a hash of all that a page shows, but its date, and of all that draws it.

    The code, the templates and the published values are in `folders`; None takes those of the suite.
    """
    digest = hashlib.sha256()
    for field in fields(material):
        if field.name != "made":
            for part in (field.name.encode(), *_parts(getattr(material, field.name))):
                digest.update(len(part).to_bytes(8, "big") + part)
    for folder in folders if folders is not None else _suite_folders():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(folder).as_posix().encode() + hashlib.sha256(path.read_bytes()).digest())
    for package in _PACKAGES:
        digest.update(f"{package} {metadata.version(package)}".encode())
    return digest.hexdigest()


def _suite_folders() -> tuple[Path, ...]:
    rooms = [Path(path) for room in (reports, results) for path in room.__path__]
    return (*rooms, Path(__file__).parent)


def _parts(value: Any) -> Iterator[bytes]:
    """Yield a value as bytes that are equal in every process for equal values."""
    if isinstance(value, BaseModel):
        yield value.model_dump_json().encode()
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif is_dataclass(value):
        for field in fields(value):
            yield field.name.encode()
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield f"mapping of {len(value)}".encode()
        for key, item in value.items():
            yield repr(key).encode()
            yield from _parts(item)
    elif isinstance(value, tuple | list):
        yield f"sequence of {len(value)}".encode()
        for item in value:
            yield from _parts(item)
    elif isinstance(value, AbstractSet):
        yield repr(sorted(value, key=repr)).encode()
    else:
        yield repr(value).encode()


def page_or_reason(name: str, fingerprint: str, store: Store, folder: Path) -> str:
    """Write the page of a finished run if what it shows has changed, and return a line with its path.

    An error does not end the run; the line then gives the reason.
    """
    try:
        return f"page: {current_page(name, fingerprint, store, folder)}"
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return f"no page was written ({reason}); everything is in the store, try `reproduce report {name}`"
