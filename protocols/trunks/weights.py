"""Weight files that no package brings: where they are looked for, what they are, and how they are read.

The one place below the front door that asks the environment: METRIC_LEARNING_WEIGHTS names a file, or a folder that
holds files under their published names. The front door sets it for `--weights`, and so the processes it starts find the
same file. What it names cannot change a training's meaning, for a specification says which content it wants: `imagenet`
is the published file, known by its SHA-256; any other file is `sha256:` and the first 16 digits of its own.
"""

import hashlib
import io
import os
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from protocols.download import DownloadError, download
from protocols.progress import Progress

WEIGHTS_VARIABLE = "METRIC_LEARNING_WEIGHTS"
IMAGENET = "imagenet"
_TIMEOUT = 10.0
"""Seconds without an answer after which the server is given up: the file can also be put there by hand."""
_OWN_FILE = re.compile(r"sha256:[0-9a-f]{16}")

Shapes = Mapping[str, torch.Size]
"""The shapes of a trunk's weights by key."""


class TrunkError(ValueError):
    """A trunk or its weights are not to be had."""


@dataclass(frozen=True)
class PublishedFile:
    """ImageNet weights of a trunk, as they are published.

    url: address; it ends in the file's name, which carries the first digits of the content's SHA-256 as torch.hub has
    it, NAME-DIGITS.pth. classifier: prefixes of the keys that are no part of the trunk.
    """

    trunk: str
    url: str
    classifier: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file's name."""
        return self.url.rpartition("/")[2]

    @property
    def sha256(self) -> str:
        """The first digits of the content's SHA-256, eight or more."""
        return self.name.rpartition("-")[2].partition(".")[0]


def names_own_file(weights: str) -> bool:
    """Whether a specification's `weights` are a file that is not the published one."""
    return _OWN_FILE.fullmatch(weights) is not None


def use_weights(path: Path) -> None:
    """Makes this process, and those it starts from now on, look for weights at `path`, a file or a folder."""
    os.environ[WEIGHTS_VARIABLE] = str(path.absolute())


def settle_weights(file: PublishedFile, weights: str, shapes: Shapes, progress: Progress | None = None) -> str:
    """What a specification's `weights` mean on this machine, where they can be read afterwards.

    Looked for where METRIC_LEARNING_WEIGHTS leads; without it among torch.hub's downloads, where the published file is
    fetched to. `imagenet` becomes `sha256:...` if the variable leads to another file. Raises TrunkError with one line
    that says which file to put where, or what is wrong with the one that is there.
    """
    path = _place(file)
    if weights == IMAGENET and _named() is None and not path.is_file():
        try:
            # Processes of several runs may fetch it at once, so nothing is kept of a broken download.
            download(file.url, path, sha256=file.sha256, progress=progress, timeout=_TIMEOUT, resume=False)
        except DownloadError as error:
            raise TrunkError(_missing(file, path, f"; {error}")) from error
        except OSError as error:
            raise TrunkError(_missing(file, path, f"; cannot be written ({error})")) from error
    identity, _ = _open(file, shapes)
    return identity if weights == IMAGENET else _checked(file, weights, identity)


def read_weights(file: PublishedFile, weights: str, shapes: Shapes) -> dict[str, Tensor]:
    """The tensors of settled `weights`; raises TrunkError if their file has gone or is another one by now.

    The counters `num_batches_tracked` may be missing, for they do not exist in files from before PyTorch 0.4; torch
    then starts them at 0.
    """
    identity, tensors = _open(file, shapes)
    _checked(file, weights, identity)
    return tensors


def _named() -> Path | None:
    named = os.environ.get(WEIGHTS_VARIABLE)
    return Path(named).expanduser() if named else None


def _place(file: PublishedFile) -> Path:
    # A variable that leads nowhere is told, not passed over: otherwise a typing error picks another file in silence.
    place = _named() or Path(torch.hub.get_dir()) / "checkpoints"
    return place / file.name if place.is_dir() or _named() is None else place


def _missing(file: PublishedFile, path: Path, besides: str = "") -> str:
    where = f"there is no {path}" if _named() is None else f"{WEIGHTS_VARIABLE} leads to {path}, which is no file"
    checkpoints = Path(torch.hub.get_dir()) / "checkpoints"
    return (
        f"trunk {file.trunk}: no weights: {where}{besides}; put {file.name} into {checkpoints}, "
        f"or name the file or its folder with --weights or {WEIGHTS_VARIABLE}"
    )


def _checked(file: PublishedFile, weights: str, identity: str) -> str:
    if weights != identity:
        raise TrunkError(
            f"trunk {file.trunk}: weights {weights} are asked for, but {_place(file)} is {identity}; name the right "
            f"file with --weights or {WEIGHTS_VARIABLE}"
        )
    return identity


def _open(file: PublishedFile, shapes: Shapes) -> tuple[str, dict[str, Tensor]]:
    """What the file that is found is, `imagenet` or `sha256:...`, and its tensors."""
    path = _place(file)
    if not path.is_file():
        raise TrunkError(_missing(file, path))
    try:
        content = path.read_bytes()  # Once, so that what is hashed is what is loaded.
    except OSError as error:
        raise TrunkError(f"{path}: cannot be read ({error.strerror})") from error
    digest = hashlib.sha256(content).hexdigest()
    published = digest.startswith(file.sha256)
    if path.name == file.name and not published:
        raise TrunkError(
            f"{path}: not the published file: its SHA-256 begins with {digest[: len(file.sha256)]}; remove it and "
            f"fetch {file.url} again, or, if it is a file of your own, give it another name"
        )
    return IMAGENET if published else f"sha256:{digest[:16]}", _tensors(content, path, shapes, file.classifier)


def _tensors(content: bytes, path: Path, shapes: Shapes, ignored: tuple[str, ...]) -> dict[str, Tensor]:
    """The tensors of a file that must hold exactly the given keys and shapes, less keys with an ignored prefix."""
    try:
        weights = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise TrunkError(f"{path}: not a readable file of PyTorch weights ({type(error).__name__})") from error
    if not isinstance(weights, Mapping):
        raise TrunkError(f"{path}: holds {type(weights).__name__}, not weights by name")
    found = {key: value for key, value in weights.items() if not str(key).startswith(ignored)}
    missing = [key for key in shapes if key not in found and not key.endswith(".num_batches_tracked")]
    unknown = [key for key in found if key not in shapes]
    if missing or unknown:
        first = f"lacks {missing[0]}" if missing else f"has {unknown[0]}"
        raise TrunkError(f"{path}: not this trunk's weights: {len(missing)} missing, {len(unknown)} unknown; {first}")
    for key, value in found.items():
        if not isinstance(value, Tensor):
            raise TrunkError(f"{path}: {key} is {type(value).__name__}, not a tensor")
        if value.shape != shapes[key]:
            raise TrunkError(f"{path}: {key} has the shape {tuple(value.shape)} instead of {tuple(shapes[key])}")
    return found
