"""An experiment's page and figures, from its store and artifact folder alone; no torch is needed."""

from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from zipfile import BadZipFile

from reports.page.build import build_page
from reports.page.material import Material
from reports.page.render import render_page
from reports.page.sections.drawn_figure import Drawn, file_name
from reproduce.config.deviations import deviations, mlrc_experiment
from reproduce.errors import InputError
from reproduce.outputs.rerun_commands import rerun_commands
from reproduce.outputs.search_histories import searches
from reproduce.outputs.tables import published_names
from reproduce.storage import StoragePaths, open_store, open_studies, studies_in_one_line
from results.artifacts import Exhibit, exhibit_path
from results.experiment_results import MeasuredExperiment
from results.store import IncompleteExperimentError, Store
from results.whole_files import write_whole


def write_page(name: str, fingerprint: str, store: Store, where: StoragePaths, folder: Path) -> Path:
    """Writes `folder`/NAME/index.html, with every figure as PNG and SVG in `figures` beside it; returns the page.

    name: in the store; a panel's slash becomes an underscore. The page is whole or absent; figures of an earlier page
    of the same name are replaced. Raises StoreError, InputError.
    """
    material = gather(name, fingerprint, store, where)
    built = build_page(material)
    page_folder = folder / file_name(name)
    try:
        _write_figures(built.figures, page_folder / "figures")
        page = page_folder / "index.html"
        write_whole(page, render_page(built.content))
    except OSError as error:
        reason = f"{page_folder}: cannot be written ({error.strerror or error})"
        raise InputError(f"{reason}; choose another place with --to") from error
    return page


def gather(name: str, fingerprint: str, store: Store, where: StoragePaths) -> Material:
    """All that the store and the artifact folder have of an experiment; raises StoreError, InputError."""
    measured = MeasuredExperiment.from_store(store, fingerprint, trainings=True)
    with studies_in_one_line(where):
        tried = searches(open_studies(where), measured)
    exhibits, unreadable = _exhibits(measured, store.artifacts)
    return Material(
        name=name,
        measured=measured,
        exhibits=exhibits,
        unreadable=unreadable,
        searches=tried,
        panels=_panels(name, store),
        commands=rerun_commands(name, measured),
        published_names=published_names(measured),
        deviations=deviations(name, measured.summary),
        mlrc=mlrc_experiment(measured.summary.dataset),
        made=_made(fingerprint),
    )


def _exhibits(measured: MeasuredExperiment, artifacts: Path) -> tuple[dict[str, Exhibit], tuple[str, ...]]:
    """By method, of its first reproduction; and the files that cannot be read."""
    exhibits, unreadable = {}, []
    for record in measured.records:
        path = exhibit_path(artifacts, record.fingerprint)
        if record.run == 0 and path.exists():
            try:
                exhibits[record.method] = Exhibit.load(path)
            except (OSError, ValueError, KeyError, EOFError, BadZipFile):
                unreadable.append(path.name)
    return exhibits, tuple(unreadable)


def _panels(name: str, store: Store) -> dict[str, MeasuredExperiment]:
    """The latest experiments of the same file's panels, by panel."""
    file, slash, _ = name.partition("/")
    if not slash:
        return {}
    panels = {}
    for other, fingerprint in store.latest_experiments().items():
        if other.startswith(f"{file}/"):
            with suppress(IncompleteExperimentError):
                panels[other.removeprefix(f"{file}/")] = MeasuredExperiment.from_store(store, fingerprint)
    return panels


def _made(fingerprint: str) -> str:
    try:
        version = f" by metric-learning-reproductions {metadata.version('metric-learning-reproductions')}"
    except metadata.PackageNotFoundError:
        version = ""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Drawn on {now}{version} from experiment {fingerprint} of the store."


def _write_figures(figures: tuple[Drawn, ...], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = {one.name for one in figures}
    for path in folder.iterdir():
        if path.suffix in (".svg", ".png") and path.stem not in names:
            path.unlink()
    for one in figures:
        one.save(folder)


def page_or_reason(name: str, fingerprint: str, where: StoragePaths) -> str:
    """Writes the page of a run that just ended and says where; or says why there is none, since no run fails by it."""
    try:
        return f"page: {write_page(name, fingerprint, open_store(where), where, where.reports)}"
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return f"no page was drawn ({reason}); everything is in the store, try `reproduce report {name}`"
