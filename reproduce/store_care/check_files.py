"""Checks the files of a store: checkpoints, recordings, figure data and kept sources."""

import pickle
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from protocols.progress import Progress
from protocols.trunks.embedding_model import model_of, without_published_weights
from protocols.trunks.weights import TrunkError
from protocols.users_files.kept_sources import kept_source
from protocols.users_files.sources import SourceError
from results.records.artifacts import FigureData, Recording, weights_path
from results.spec.training_spec import FoldSpec
from results.store.check_records import CheckedRecords
from results.store.findings import Finding
from results.values import fingerprint_of

SOURCES = "sources"
"""Folder of the copies of users' source files, below the folder of artifacts."""

_OF_A_TRAINING = re.compile(r"([0-9a-f]{32})\.(pt|last\.pt|proxies\.pt|recording\.npz)")
_OF_A_RUN = re.compile(r"([0-9a-f]{32})\.npz")
_DIGEST = re.compile(r"[0-9a-f]{16}")


def owner_of(name: Path) -> str | None:
    """Return what a file, named from the folder of artifacts, belongs to.

    That is the fingerprint of a training or of a test evaluation, or the hash of a user's source; None if the suite
    writes no file of this name.
    """
    folder, *below = name.parts
    if folder == SOURCES and len(below) > 1 and _DIGEST.fullmatch(below[0]) and ".." not in below:
        return below[0]
    if len(below) != 1:
        return None
    match = (_OF_A_RUN if folder == "figure_data" else _OF_A_TRAINING).fullmatch(below[0])
    return match[1] if match and folder in ("figure_data", below[0][:2]) else None


def is_checkpoint(name: Path) -> bool:
    """Return whether a file holds weights, proxies or recordings of a training, and not data for a page."""
    return name.parts[0] not in (SOURCES, "figure_data")


_known_shapes: dict[str, dict[str, tuple[int, ...]] | None] = {}
"""Shapes of the networks that were built, by what decides them."""

_UNREADABLE = (
    *(OSError, RuntimeError, ValueError, TypeError, KeyError, AttributeError, EOFError, NotImplementedError),
    *(pickle.UnpicklingError, zipfile.BadZipFile, zlib.error),
)


def check_files(records: CheckedRecords, artifacts: Path, progress: Progress | None = None) -> list[Finding]:
    """Load every file in the folder of artifacts, and look for the checkpoints of all test evaluations.

    What is damaged, missing or foreign is returned.
    """
    files = sorted(path for path in artifacts.rglob("*") if path.is_file())
    return [*_missing_checkpoints(records, artifacts), *check_loaded(records, artifacts, files, progress)]


def check_loaded(
    records: CheckedRecords, artifacts: Path, files: Sequence[Path], progress: Progress | None = None
) -> list[Finding]:
    """Load these files of the folder of artifacts; what is damaged or foreign is returned."""
    findings: list[Finding] = []
    for number, path in enumerate(files):
        findings += _check_file(path, artifacts, records)
        if progress is not None:
            progress(number + 1, len(files))
    return findings


def _missing_checkpoints(records: CheckedRecords, artifacts: Path) -> Iterator[Finding]:
    if records.runs and not artifacts.is_dir():
        yield Finding("missing", f"folder {artifacts}", "it has the checkpoints; name it with --artifacts")
        return
    for record in records.runs.values():
        for fingerprint in record.fold_fingerprints:
            spec = records.specs.get(fingerprint)
            if spec is not None and not (path := weights_path(artifacts, spec)).is_file():
                yield Finding("missing", str(path), f"checkpoint of {record.method}, {record.name}, fold {spec.fold}")


def _check_file(path: Path, artifacts: Path, records: CheckedRecords) -> Iterator[Finding]:
    name = path.relative_to(artifacts)
    owner = owner_of(name)
    if owner is None:
        reason = "set aside as damaged" if ".damaged-" in path.name else "the suite writes no file of this name"
        yield Finding("foreign", str(path), reason)
    elif name.parts[0] == SOURCES:
        folder = artifacts / SOURCES / owner
        # One finding per copied source, not one per file of it.
        if path == min(file for file in folder.rglob("*") if file.is_file()):
            yield from _check_source(folder)
    elif owner not in (records.specs if is_checkpoint(name) else records.runs):
        yield Finding("foreign", str(path), "no record in the store has this name")
    elif wrong := _why_unreadable(path, records.specs[owner] if is_checkpoint(name) else None):
        yield Finding("damaged", str(path), wrong)


def _check_source(folder: Path) -> Iterator[Finding]:
    """Check the copy of a user's source: the hash of its files is the folder's name."""
    if kept_source(folder, "").digest != folder.name:
        yield Finding("damaged", str(folder), "its files do not have the hash that is the folder's name")


def _why_unreadable(path: Path, spec: FoldSpec | None) -> str | None:
    """Load a file; return what is wrong with it, or None. Without a training the file is figure data."""
    try:
        with zipfile.ZipFile(path) as archive:
            if (member := archive.testzip()) is not None:
                return f"the checksum of {member} is wrong"
        if spec is None:
            FigureData.load(path)
        elif path.suffix == ".npz":
            Recording.load(path)
        elif path.name.endswith(".proxies.pt"):
            vectors = read_tensors(path)
            if not (isinstance(vectors, tuple) and all(isinstance(value, Tensor) for value in vectors)):
                return "it holds no proxies"
        else:
            return _why_no_checkpoint(read_tensors(path), spec)
    except _UNREADABLE as error:
        return f"cannot be loaded ({type(error).__name__})"
    return None


def read_tensors(path: Path) -> object:
    """Load tensors from a file; raise one of many errors if it is damaged."""
    return torch.load(path, map_location="cpu", weights_only=True)


def _why_no_checkpoint(weights: object, spec: FoldSpec) -> str | None:
    if not (isinstance(weights, Mapping) and all(isinstance(value, Tensor) for value in weights.values())):
        return "it holds no weights"
    shapes = {str(key): tuple(value.shape) for key, value in weights.items()}
    expected = _shapes(spec)
    if expected is not None and shapes != expected:
        differing = sorted(dict(shapes.items() ^ expected.items()))
        return f"its tensors are not those of the training's network ({differing[0]})"
    return None


def _shapes(spec: FoldSpec) -> dict[str, tuple[int, ...]] | None:
    """Return names and shapes of the tensors of a training's network; None if this machine cannot build it."""
    parts = spec.trunk, spec.embedder_size, spec.embedder, spec.embedder_bias
    key = fingerprint_of([None if part is None else str(part) for part in parts])
    if key not in _known_shapes:
        try:
            with torch.random.fork_rng([]):
                state = model_of(without_published_weights(spec)).state_dict()
            _known_shapes[key] = {name: tuple(value.shape) for name, value in state.items()}
        except (TrunkError, SourceError):
            _known_shapes[key] = None
    return _known_shapes[key]
