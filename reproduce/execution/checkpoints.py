"""Decides whether the checkpoint of a stored training can be used, and compares a repeated training with its record."""

import logging
import pickle
import zipfile
from pathlib import Path

import torch

from protocols.verified_files import put_away
from results.archives import is_sound
from results.artifacts import last_epoch_path, vectors_path, weights_path
from results.recordings import recording_path
from results.records import FoldResult
from results.training_spec import FoldSpec
from results.whole_files import set_aside

_LOG = logging.getLogger(__name__)
_NOT_READABLE = (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError, zipfile.BadZipFile)


def has_checkpoint(artifacts: Path, spec: FoldSpec) -> bool:
    """Return whether the checkpoint of a training exists and can be read.

    Damaged files are set aside together with the weights, so that the training is made again with all its files.

    Args:
        artifacts: Folder of the checkpoints.
        spec: The training.
    """
    weights = weights_path(artifacts, spec)
    files = (weights, vectors_path(weights), last_epoch_path(weights), recording_path(weights))
    damaged = [file for file in files if file.exists() and not _can_be_read(file)]
    for file in damaged:
        put_away(file, "the checkpoint")
    if damaged and weights.exists():
        set_aside(weights)
    return weights.exists()


def report_difference(called: str, stored: FoldResult, repeated: FoldResult) -> None:
    """Say in one line if a training that was made again for its checkpoint has another result than the stored one.

    Args:
        called: Name of the training in the message.
        stored: The stored result, which stays.
        repeated: The result of the repeated training.
    """
    if _outcome(stored) != _outcome(repeated):
        _LOG.warning(
            "%s: trained again for its checkpoint, with another result (MAP@R %s after %d iterations, stored is %s "
            "after %d); the stored result stays, and the test uses the new weights",
            called,
            repeated.best_map_at_r,
            repeated.best_iteration,
            stored.best_map_at_r,
            stored.best_iteration,
        )


def _outcome(result: FoldResult) -> dict[str, object]:
    return result.model_dump(exclude={"wall_time", "provenance"})


def _can_be_read(path: Path) -> bool:
    if not is_sound(path):
        return False
    if path.suffix != ".pt":
        return True
    try:
        torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except _NOT_READABLE:
        return False
    return True
