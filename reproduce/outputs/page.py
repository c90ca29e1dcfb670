"""Writes an experiment's page and figures from its store and its folder of artifacts, without torch.

The page has the commands that run the experiment again. What draws a page is imported only when one is written.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce.config.experiment_file import departures, suite_experiment
from reproduce.config.method_card import suite_cards
from reproduce.config.strict_yaml import yaml_of
from reproduce.errors import writing_to
from reproduce.outputs.tables import published_settings
from reproduce.storage import latest_name, link_latest, own_name
from results.atomic_files import write_atomically
from results.findings.experiment import ExperimentAnswer, answer_of
from results.records.trials import Trial
from results.spec.component import SourceName
from results.spec.data_choice import EMBEDDED
from results.spec.experiment_spec import CARD_FILES, Experiment
from results.spec.plan import Plan
from results.spec.training_spec import sources_of_training
from results.store.experiment_results import MeasuredExperiment
from results.store.searches import StoredStudy
from results.store.store import Start, Store
from results.values import fingerprint_of
from results.wording import first_line

if TYPE_CHECKING:
    from reports.page.figures import PageFigure
    from reports.page.material import Command, Material

_PAGE = "index.html"
_ROOMS = [Path(__file__).parents[2] / room for room in ("results", "reports", "reproduce")]
_FIGURES = (".svg", ".png", ".pdf", ".csv")
_ON_THE_MACHINE = {"title", "dataset.root", "trunk.weights"}


def write_page(name: str, fingerprint: str, store: Store, folder: Path, found: ExperimentAnswer | None = None) -> Path:
    """Write the page of an experiment, and its figures as PNG, SVG and PDF; return the file of the page.

    The page is `folder`/NAME-IDENTITY/index.html, and the figures are in `figures` beside it. `folder`/NAME leads to
    the latest experiment of the name. The slash of a panel's name becomes an underscore. The page is written completely
    or not at all. Figures of an earlier page are replaced.
    """
    from reports.page.page import build_page

    page_folder, stamp = folder / own_name(name, fingerprint), _stamp(fingerprint, store)
    with writing_to(page_folder):
        (page_folder / "figures").mkdir(parents=True, exist_ok=True)  # What cannot be written is said before drawing.
    html, figures = build_page(gather(name, fingerprint, store, found))
    with writing_to(page_folder):
        write_figures(figures, page_folder / "figures")
        write_atomically(page_folder / _PAGE, html + _last_line(page_folder, stamp))
    link_latest(name, fingerprint, store, [page_folder])
    return page_folder / _PAGE


def _stamp(fingerprint: str, store: Store) -> str:
    """Return a hash of what a page is drawn from: what the store has of the experiment, and the suite's own files."""
    files = sorted(path for room in _ROOMS for path in room.rglob("*.*") if "__pycache__" not in path.parts)
    code = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
    return fingerprint_of([store.state_of(fingerprint), code])


def _last_line(page_folder: Path, stamp: str) -> str:
    figures = [path for path in (page_folder / "figures").iterdir() if path.suffix in _FIGURES]
    return f"<!-- drawn from {stamp}; files of figures: {len(figures)} -->\n"


def gather(name: str, fingerprint: str, store: Store, found: ExperimentAnswer | None = None) -> Material:
    """Collect the material of an experiment's page from the store.

    `found` is its answer with the trainings, if that is known.
    """
    from reports.page.material import Material, MethodSource

    found = found or answer_of(MeasuredExperiment.from_store(store, fingerprint, trainings=True))
    measured = found.measured
    plan = measured.plan
    return Material(
        name=name,
        answer=found,
        searches=histories(store.searches.of_experiment(fingerprint), plan),
        commands=rerun_commands(name, measured),
        published=published_settings(measured),
        departures=departures(name, plan),
        sources={key: MethodSource(card.source, card.papers) for key, card in suite_cards(plan.rows).items()},
        made=drawn_line(f" from experiment {fingerprint} of the store"),
        label=latest_name(name),
    )


def rerun_commands(name: str, measured: MeasuredExperiment) -> tuple[Command, ...]:
    """Return the commands that get the code, repeat the experiment, and draw its table and its page.

    Unless the experiment is that of the suite's file, the commands contain a complete file, with all defaults, so that
    it stays exact when defaults change.
    """
    from reports.page.material import Command

    experiment, in_file, source = measured.plan.experiment, suite_experiment(name), name
    commands = _code(measured)
    if isinstance(in_file, str) or experiment.differences(in_file).keys() - _ON_THE_MACHINE:
        # A panel becomes a separate file.
        name = name.replace("/", "_")
        source = f"{name}.yaml"
        purpose = f"The suite has no file with these settings. Save them as {source}; this is the experiment as run"
        commands[yaml_of(_without_empty(experiment))] = f"{purpose} (your own method cards are not included):"
    commands |= _users_code(measured, experiment)
    data, quoted_name = "" if experiment.dataset.name in EMBEDDED else " --data FOLDER", shlex.quote(name)
    commands |= {
        f"python -m reproduce run {shlex.quote(source)}{data}": "Run it; the store's trainings are kept:",
        f"python -m reproduce table {quoted_name} --format csv": "Draw the table from the store:",
        f"python -m reproduce report {quoted_name}": "Write this page from the store:",
    }
    return tuple(Command(text, purpose) for text, purpose in commands.items())


def _code(measured: MeasuredExperiment) -> dict[str, str]:
    """Return the checkout of the code, if all runs were made with one commit and no uncommitted changes."""
    commits = {None if run.provenance.tree_dirty else run.provenance.commit for run in measured.records}
    if len(commits) != 1 or None in commits:
        return {}
    return {f"git checkout {commits.pop()}": "Check out the code of the runs in a clone of the suite:"}


def _users_code(measured: MeasuredExperiment, experiment: Experiment) -> dict[str, str]:
    """Return the user's cards, classes and metrics that the commands need, as a text that is not run."""
    cards = [method for method in experiment.methods if method.endswith(CARD_FILES)]
    classes = [name for one in measured.trainings.values() for name in sources_of_training(one.spec)]
    metrics = [name for name in experiment.metrics if SourceName.parse(name)]
    needed = "\n".join(f"# {name}" for name in dict.fromkeys([*cards, *classes, *metrics]))
    purpose = "The run used these files or modules of the user; copies of the files are in `sources` in the artifacts:"
    return {needed: purpose} if classes or metrics else {}


def _without_empty(experiment: Experiment) -> dict[str, Any]:
    parsed = {name: SourceName.parse(name) for name in experiment.metrics}
    # In files the names of metrics are without the hashes of their sources.
    metrics = [str(replace(source, digest=None)) if source else name for name, source in parsed.items()]
    settings = experiment.without_folder() | {"metrics": metrics}
    return {key: value for key, value in settings.items() if value is not None and value not in ([], {})}


def histories(studies: Mapping[tuple[str, int], StoredStudy], plan: Plan) -> dict[str, tuple[Trial, ...]]:
    """Return the trials of the first search of each method that has finished ones."""
    return {
        method: trials
        for (method, search), study in studies.items()
        if search == 0 and method in plan.rows and (trials := study.finished(plan.trials_of(method)))
    }


def drawn_line(origin: str = "") -> str:
    """Say when a page was made, by which version of the suite, and from what."""
    from reports.page.material import version

    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Made on {now} by metric-learning-reproductions {version()}{origin}."


def write_figures(figures: tuple[PageFigure, ...], folder: Path) -> None:
    """Write the files of figures, and remove those of an earlier page."""
    written = {name for figure in figures for name in figure.save(folder)}
    for path in folder.iterdir():
        if path.suffix in _FIGURES and path.name not in written:
            path.unlink()


def write_sweeps(experiments: Sequence[Start], store: Store, folder: Path) -> Iterator[tuple[Path, str]]:
    """Draw the scores against the numbers in which the panels of a file differ; yield each PNG file with its title."""
    from reports.page.figures import sweep_figures

    files: dict[str, list[Start]] = {}
    for one in experiments:
        files.setdefault(one.name.partition("/")[0], []).append(one)
    for name, panels in files.items():
        place = folder / latest_name(name) / "figures"
        materials = [gather(one.name, one.fingerprint, store) for one in panels if len(panels) > 1]
        for figure in sweep_figures(materials) if materials else ():
            with writing_to(place):
                figure.save(place)
            yield place / f"{figure.name}.png", figure.title


def page_or_reason(name: str, fingerprint: str, store: Store, folder: Path, found: ExperimentAnswer) -> list[str]:
    """Write the page of a finished run, unless it is as it would be; return lines with the places of figures and page.

    An error does not end the run; a line then gives the reason.
    """
    page = folder / own_name(name, fingerprint) / _PAGE
    try:
        stamp = _stamp(fingerprint, store)
        if not (page.is_file() and page.read_bytes().endswith(_last_line(page.parent, stamp).encode())):
            write_page(name, fingerprint, store, folder, found)
        return [f"figures (PDF, SVG, PNG): {page.parent / 'figures'}", f"page: {page}"]
    except Exception as error:
        return [f"no page was written ({first_line(error)}); everything is in the store, try `reproduce report {name}`"]
