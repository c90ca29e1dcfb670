"""Reads the experiments of a board from stores, files of `store export` and records, and writes boards as files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pydantic import ValidationError

from reports.board.board_table import board_page, board_table
from reports.board.boards import Board
from reports.board.sources import Source, with_all_methods
from reports.tables.formats import WRITERS
from reproduce.config.method_card import suite_card
from reproduce.errors import InputError
from reproduce.outputs.find_runs import find_experiments
from reproduce.storage import StoragePaths, existing_store, storage_paths
from results.store.experiment_results import MeasuredExperiment, latest_starts, runs_of_all_starts
from results.store.store import Store
from results.whole_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORD = (".json", ".json.xz")
"""Ending of files that `table NAME --format json` wrote."""

FILES = {
    "markdown": "board.md",
    "csv": "board.csv",
    "json": "board.json",
    "latex": "board.tex",
    "latex-document": "board_document.tex",
    "html": "board_table.html",
}


@contextmanager
def opened_places(places: Sequence[str], artifacts: Path | None) -> Iterator[dict[str, Store]]:
    """Open those stores and files of `store export` that exist, by what they are called on a board."""
    with TemporaryDirectory() as folder:
        stores: dict[str, Store] = {}
        for number, place in enumerate(places):
            is_export = zipfile.is_zipfile(place)
            store = existing_store(
                _unpacked(Path(place), Path(folder) / str(number))
                if is_export
                else storage_paths(place, artifacts, None, None)
            )
            if store is not None:
                stores[Path(place).name if is_export else place] = store
        yield stores


def _unpacked(file: Path, folder: Path) -> StoragePaths:
    from reproduce.store_care.store_file import unpack_store

    return unpack_store(file, folder)


def named_sources(stores: dict[str, Store], names: Sequence[str]) -> list[Source]:
    """Return the experiments of these names: records are read from their files, others from every store that has them.

    Raises:
        InputError: There is no such experiment or file, or it has no tested run.
    """
    sources = []
    for name in names:
        found = [_record(Path(name))] if name.endswith(RECORD) else list(_stored(stores, name))
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


def _stored(stores: dict[str, Store], name: str) -> Iterator[Source]:
    errors = []
    for place, store in stores.items():
        try:
            experiments = find_experiments(store, [name])
        except InputError as error:
            errors.append(error)
            continue
        for experiment in experiments:
            yield from _with_runs(store, experiment.name, experiment.fingerprint, place)
    if len(errors) == len(stores):
        raise errors[0] if errors else InputError(f"{name}: there is no store to read it from; name one with --store")


def latest_sources(stores: dict[str, Store]) -> list[Source]:
    """Return the finished experiments of all stores, the latest first."""
    found: list[tuple[str, Source]] = []
    for place, store in stores.items():
        for start in latest_starts(store):
            sources = _with_runs(store, start.name, start.fingerprint, place)
            found += [(start.last_started, source) for source in sources if source.finished]
    return [source for _, source in sorted(found, key=lambda one: one[0], reverse=True)]


def _with_runs(store: Store, name: str, fingerprint: str, place: str) -> Iterator[Source]:
    """Yield an experiment with the methods of all its starts, if it has runs."""
    measured = MeasuredExperiment(store.experiment(fingerprint), tuple(runs_of_all_starts(store, fingerprint)))
    if measured.records:
        yield Source(name, place, with_all_methods(measured, _titles(record.method for record in measured.records)))


def _titles(methods: Iterable[str]) -> dict[str, str]:
    cards = {method: suite_card(method) for method in dict.fromkeys(methods)}
    return {method: card.title for method, card in cards.items() if card is not None}


def write_board(board: Board, compare: str, folder: Path, made: str) -> list[Path]:
    """Write a board's table in all formats, and its page; return the files, the page first."""
    table = board_table(board, compare)
    texts = {"index.html": board_page(board, compare, made)}
    texts |= {name: WRITERS[form](table) for form, name in FILES.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_whole(folder / name, text)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); choose another folder with --to") from error
    return [folder / name for name in texts]
