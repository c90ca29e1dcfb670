"""Compares a training that was made again with the stored one: its record, and the tensors of its checkpoint."""

import pickle
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from reproduce.store_care.check_files import read_tensors
from results.artifacts import last_epoch_path, vectors_path
from results.provenance import mixed_versions
from results.records import FoldResult, Provenance

_CIRCUMSTANCES = {"wall_time", "provenance"}
_UNREADABLE = (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile)


@dataclass(frozen=True)
class Comparison:
    """How a training that was made again differs from the stored one.

    Attributes:
        differences: What differs, in words; empty if everything is equal bit for bit.
        surroundings: What differs between the machines and packages of the two, in words.
        best_change: MAP@R of the new checkpoint minus that of the stored one, a fraction of 1; None without validation.
        checkpoint: Whether a stored checkpoint was compared.
        processor_known: Whether the stored result names the processor that made it. Older ones do not.
    """

    differences: tuple[str, ...]
    surroundings: tuple[str, ...]
    best_change: float | None
    checkpoint: bool
    processor_known: bool


def compare_training(
    stored: FoldResult, again: FoldResult, stored_weights: Path | None, new_weights: Path
) -> Comparison:
    """Compare two results of the same specification.

    Args:
        stored: The stored result.
        again: The result of the repeated training.
        stored_weights: The stored checkpoint; None if the training keeps none.
        new_weights: The checkpoint of the repeated training.
    """
    differences = [*_different_fields(stored, again)]
    compared = stored_weights is not None and stored_weights.is_file()
    if stored_weights is not None and not compared:
        differences.append(f"the checkpoint {stored_weights} is missing")
    elif stored_weights is not None:
        for path in (lambda file: file, vectors_path, last_epoch_path):
            differences += _different_tensors(path(stored_weights), path(new_weights))
    scores = stored.best_map_at_r, again.best_map_at_r
    change = None if scores[0] is None or scores[1] is None else scores[1] - scores[0]
    surroundings = tuple(_different_surroundings(stored.provenance, again.provenance))
    return Comparison(tuple(differences), surroundings, change, compared, bool(stored.provenance.processor))


def _different_fields(stored: FoldResult, again: FoldResult) -> Iterator[str]:
    first, second = stored.model_dump(exclude=_CIRCUMSTANCES), again.model_dump(exclude=_CIRCUMSTANCES)
    for name, value in first.items():
        if value != second[name]:
            yield "the curve" if name == "curve" else f"{name} {second[name]} instead of {value}"


def _different_tensors(stored: Path, again: Path) -> Iterator[str]:
    """Yield what differs between two files of tensors; nothing if neither exists."""
    if stored.is_file() != again.is_file():
        yield f"{stored.name} is {'stored' if stored.is_file() else 'not stored'}"
    if not (stored.is_file() and again.is_file()):
        return
    try:
        first, second = _by_name(read_tensors(stored)), _by_name(read_tensors(again))
    except _UNREADABLE as error:
        yield f"{stored} cannot be loaded ({type(error).__name__})"
        return
    differing = [name for name in first.keys() | second.keys() if not _equal(first.get(name), second.get(name))]
    if differing:
        yield f"{len(differing)} of {len(first)} tensors in {stored.name}"


def _by_name(tensors: Any) -> dict[str, Tensor]:
    pairs = tensors.items() if isinstance(tensors, dict) else enumerate(tensors)
    return {str(name): tensor for name, tensor in pairs}


def _equal(first: Tensor | None, second: Tensor | None) -> bool:
    """Return whether two tensors are equal bit for bit, NaN included."""
    if first is None or second is None or first.dtype != second.dtype or first.shape != second.shape:
        return False
    return first.contiguous().numpy().tobytes() == second.contiguous().numpy().tobytes()


def _different_surroundings(stored: Provenance, again: Provenance) -> Iterator[str]:
    for name in ("device", "threads", "cpu_count", "host_system"):
        if getattr(stored, name) != getattr(again, name):
            yield f"{name.replace('_', ' ')} {getattr(again, name)} instead of {getattr(stored, name)}"
    if stored.processor and again.processor and stored.processor != again.processor:
        yield f"processor {again.processor} instead of {stored.processor}"
    for package, versions in mixed_versions([stored, again]).items():
        yield f"{package} {' and '.join(versions)}"
