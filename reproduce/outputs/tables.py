"""Tables drawn from stores, without torch: an experiment's own, published ones beside what was run, and boards.

The experiments of a board come from a store and from records.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue, ValidationError

from reports.board.board_table import board_page, pairs_table, ranking_table, ranks_figure
from reports.board.boards import Board, Source
from reports.published.eligibility import StoredExperiment, concerns
from reports.tables.differences import differences
from reports.tables.formats import WRITERS
from reports.tables.holds import holds_table
from reports.tables.method_tables import costs, hyperparameters, peeking_table
from reports.tables.result_table import table_of
from reports.tables.table import Table
from reproduce.config.experiment_file import departures
from reproduce.config.method_card import suite_cards
from reproduce.errors import InputError, writing_to
from reproduce.outputs.find_runs import find_experiments
from results.answer.answers import Answer
from results.atomic_files import write_atomically
from results.findings.experiment import ExperimentAnswer, answer_of
from results.published.tables import PublishedTable
from results.store.experiment_results import FOLDER, MeasuredExperiment, latest_starts
from results.store.store import Start, Store


def stored_experiments(store: Store, table: PublishedTable | None = None) -> list[StoredExperiment]:
    """Return the experiments of a store, the latest first, with the runs of all methods of all starts.

    Given a published table, those that cannot have runs for it are left out.
    """
    stored = []
    for start in latest_starts(store):
        name, plan = start.name, start.plan
        if table is None or concerns(table, name, plan):
            measured = MeasuredExperiment.of_all_starts(store, start.fingerprint)
            stored.append(StoredExperiment(name, answer_of(measured), departures(name, plan)))
    return stored


def kept_experiments() -> list[StoredExperiment]:
    """Return the records in `results/measured`, which a checkout has and an installed package has not."""
    stored = []
    for file in sorted(FOLDER.glob("*.json.xz")):
        name, measured = file.name.partition(".")[0], MeasuredExperiment.from_file(file)
        stored.append(StoredExperiment(name, answer_of(measured), departures(name, measured.plan)))
    return stored


def published_settings(measured: MeasuredExperiment) -> dict[str, dict[str, JsonValue]]:
    """The hyperparameters that the suite's cards give as published for an experiment's dataset, by method."""
    plan = measured.plan
    return {key: card.published.get(plan.dataset, {}) for key, card in suite_cards(plan.rows).items()}


def compared_by(measured: MeasuredExperiment, compare: str | None) -> ExperimentAnswer:
    """Answer other comparisons than the experiment's file asks for: `all`, each with the `best`, or with a method."""
    compared = measured.plan.compared
    if compare not in (None, "all", "best", *compared):
        raise InputError(f"--compare {compare}: use all, best, or one of {', '.join(compared)}")
    return answer_of(measured, compare)


OF_SCORES: dict[str, Callable[[Answer], Table]] = {
    "results": table_of,
    "differences": differences,
    "holds": lambda found: holds_table(found, every=True),
}
"""What can be drawn of any scores."""

KINDS: dict[str, Callable[[ExperimentAnswer], Table]] = {
    **OF_SCORES,
    "peeking": peeking_table,
    "hyperparameters": lambda found: hyperparameters(found, published_settings(found.measured)),
    "costs": costs,
}
"""What can be drawn of an experiment."""

WHY_EMPTY = {
    "holds": "no pair of methods was tested",
    "peeking": "no checkpoint was chosen beside test scores; `--set test_curves=true` records them while a run trains",
    "hyperparameters": "no method has hyperparameters that were searched or given",
    "costs": "it has no tested run yet",
}
"""Why there can be nothing to draw."""


RECORD = (".json", ".json.xz")
"""Ending of files that `table NAME --format json` wrote."""

FILES = {"markdown": "md", "csv": "csv", "json": "json", "latex": "tex"}
"""Suffixes of a board's files by format."""


def named_sources(store: Store | None, names: Sequence[str]) -> list[Source]:
    """Return the experiments of these names: records are read from their files, others from the store.

    Raises:
        InputError: There is no such experiment or file, or it has no tested run.
    """
    sources = []
    for name in names:
        if name.endswith(RECORD):
            found = [_record(Path(name))]
        elif store is None:
            raise InputError(f"{name}: there is no store to read it from; name one with --store")
        else:
            found = [source for start in find_experiments(store, [name]) for source in _with_runs(store, start)]
        if not found:
            raise InputError(f"{name}: has no tested run yet; continue with `reproduce run {name}`")
        sources += found
    return sources


def _record(file: Path) -> Source:
    try:
        measured = MeasuredExperiment.from_file(file)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); give the path of a record") from error
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise InputError(f"{file}: is no record; write one with `reproduce table NAME --format json`") from error
    return Source(file.name.partition(".json")[0], file.name, measured)


def latest_sources(store: Store | None) -> list[Source]:
    """Return the finished experiments of a store, the latest first."""
    starts = [] if store is None else [(store, start) for start in latest_starts(store)]
    return [source for opened, start in starts for source in _with_runs(opened, start) if not source.answer.interim]


def _with_runs(store: Store, start: Start) -> Iterator[Source]:
    """Yield an experiment with the methods of all its starts, if it has runs."""
    measured = MeasuredExperiment.of_all_starts(store, start.fingerprint, with_rows=True)
    if measured.records:
        yield Source(start.name, store.url, measured)


def write_board(board: Board, compare: str, folder: Path, made: str) -> list[Path]:
    """Write a board's tables and its figure in all formats, and its page; return the files, the page first."""
    figure = ranks_figure(board)
    texts = {"index.html": board_page(board, compare, made, figure)}
    on = " ".join(dataset.title for dataset in board.datasets)
    for name, drawn in (("ranking", ranking_table(board)), ("pairs", pairs_table(board, compare))):
        table = replace(drawn, label=f"board {on} {name} {compare}")
        texts |= {f"{name}.{suffix}": WRITERS[form](table) for form, suffix in FILES.items()}
    with writing_to(folder):
        for name, text in texts.items():
            write_atomically(folder / name, text)
        figures = figure.save(folder) if figure else []
    return [folder / name for name in (*texts, *figures)]
