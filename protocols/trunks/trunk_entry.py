"""An entry of the trunk registry: how a trunk is built, its input format, and the weights that it can start from.

Weights that are in no package are files. The environment variable METRIC_LEARNING_WEIGHTS names a file, or a folder of
files with their published names. The option `--weights` sets it, so that new processes find the same file. No other
module of the protocols reads the environment. The variable cannot change what a training means, because a specification
identifies weights by content: `imagenet` is the published file, known by its SHA-256; any other file is `sha256:` and
16 digits of its SHA-256.
"""

import hashlib
import importlib
import io
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from results import InputError
from results.spec.trunk_spec import PRETRAINED, WEIGHT_FILES, InputFormat
from results.wording import counted, verb

WEIGHTS_VARIABLE = "METRIC_LEARNING_WEIGHTS"
IMAGENET, RANDOM = "imagenet", "random"
_IDENTIFIED = re.compile(rf"{PRETRAINED} \(sha256 [0-9a-f]{{16}}\)")
_OWN_FILE = re.compile(r"sha256:[0-9a-f]{16}")

Outline = Mapping[str, Tensor]
"""The weights of a trunk by key, with shape and type but without values: tensors on torch's device `meta`."""


class TrunkError(InputError, ValueError):
    """A trunk is unknown or cannot be built, or its weights are missing or wrong."""


@dataclass(frozen=True)
class WeightFile:
    """A file of a trunk's weights: the published one with ImageNet weights, or a user's own.

    Attributes:
        trunk: Name of the trunk.
        url: Address of the published file; None if only files of users are read. The published file's name is
            NAME-DIGITS.pth, where DIGITS are the first digits of the content's SHA-256, as in torch.hub.
        classifier: Prefixes of keys that do not belong to the trunk.
    """

    trunk: str
    url: str | None
    classifier: tuple[str, ...]

    @property
    def name(self) -> str:
        """The published file's name; empty without one."""
        return (self.url or "").rpartition("/")[2]

    @property
    def sha256(self) -> str:
        """The first digits of the published content's SHA-256, eight or more; empty without a published file."""
        return self.name.rpartition("-")[2].partition(".")[0]


@dataclass(frozen=True)
class TrunkEntry:
    """A trunk with its input format and its weights.

    Attributes:
        build: Builds the trunk with random weights. The trunk's attribute `features` is the number of channels of its
            last feature map, or of its features.
        input: The input format of its weights.
        packaged: Reads ImageNet weights from an installed package.
        pretrained: Returns the state dict of the weights that a library, or the file that builds the trunk, brings.
        file: How a file of weights is read, the published one of ImageNet weights or a user's; None reads no file.
        channels_last_on_cpu: Whether the memory layout with the channels last is faster on a CPU. GPUs always use it.
        outside: Whether a library or a user's file builds the trunk. It can give pooled features instead of a map.
        note: What the user should know about its weights.
    """

    build: Callable[[], nn.Module]
    input: InputFormat
    packaged: Callable[[], Mapping[str, Tensor]] | None = None
    pretrained: Callable[[], Mapping[str, Tensor]] | None = None
    file: WeightFile | None = None
    channels_last_on_cpu: bool = True
    outside: bool = False
    note: str = ""

    @property
    def weights(self) -> tuple[str, ...]:
        """Names of the weights that it can start from; the first is the default."""
        imagenet = (IMAGENET,) if self.packaged or (self.file and self.file.url) else ()
        return (*imagenet, *((PRETRAINED,) if self.pretrained else ()), RANDOM)

    def accepts(self, weights: str) -> bool:
        """Whether a specification can have these weights: a name, a path, or what an identified trunk has."""
        return (
            weights in self.weights
            or (self.pretrained is not None and is_identified(weights))
            or (self.file is not None and (names_own_file(weights) or is_path(weights)))
        )

    def starting_from(self, name: str, weights: str) -> nn.Module:
        """Build the trunk with weights that `identified_trunk` has named."""
        trunk = self.build()
        if weights == RANDOM:
            return trunk
        if self.pretrained and is_identified(weights):
            with torch.random.fork_rng([]):
                found = self.pretrained()
            if (now := identified(found)) != weights:
                raise TrunkError(
                    f"trunk {name}: its weights are now {now}, but this experiment began with {weights}; bring those "
                    "back, or begin a new experiment"
                )
            trunk.load_state_dict(found)
        elif self.packaged:
            trunk.load_state_dict(self.packaged())
        elif self.file:
            trunk.load_state_dict(read_weights(self.file, weights, trunk.state_dict())[1])
        return trunk

    def outline(self) -> Outline:
        """Shapes and types of the weights by key, without drawing random numbers."""
        return _outline(self)[0]

    @property
    def width(self) -> int:
        """Number of features of an image."""
        return _outline(self)[1]


@cache
def _outline(entry: TrunkEntry) -> tuple[Outline, int]:
    # A library or a user's file may compute with its weights, which is impossible without memory for them.
    with torch.random.fork_rng([]), torch.device("cpu" if entry.outside else "meta"):
        trunk = entry.build()
    features = trunk.features
    assert isinstance(features, int)
    return {key: value.to("meta") for key, value in trunk.state_dict().items()}, features


def names_own_file(weights: str) -> bool:
    """Whether a specification's `weights` identify another file than the published one."""
    return _OWN_FILE.fullmatch(weights) is not None


def is_path(weights: str) -> bool:
    """Whether weights are given as the path of a file."""
    return Path(weights).suffix in WEIGHT_FILES


def identified(weights: Mapping[str, Tensor]) -> str:
    """Name pretrained weights by their content, such as `pretrained (sha256 0123456789abcdef)`.

    The content is that of the state dict: keys, types, shapes and values.
    """
    digest = hashlib.sha256()
    for key in sorted(weights):
        value = weights[key].detach().cpu().contiguous()
        digest.update(f"{key} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return f"{PRETRAINED} (sha256 {digest.hexdigest()[:16]})"


def is_identified(weights: str) -> bool:
    """Whether `identified` has named these weights."""
    return _IDENTIFIED.fullmatch(weights) is not None


def use_weights(path: Path) -> None:
    """Read weights from a file or folder, in this process and in processes that it starts later."""
    os.environ[WEIGHTS_VARIABLE] = str(path.absolute())


def identify_weights(file: WeightFile, weights: str, outline: Outline) -> str:
    """Check the weight file, download it if it is missing, and identify its content.

    METRIC_LEARNING_WEIGHTS says where the file is. Without the variable it is in torch.hub's folder of downloads, where
    this function downloads the published file to.
    """
    path = _weight_path(file)
    if file.url is not None and weights == IMAGENET and not os.environ.get(WEIGHTS_VARIABLE) and not path.is_file():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(file.url, str(path), file.sha256, progress=sys.stderr.isatty())
        except (OSError, HTTPException, RuntimeError) as error:
            raise TrunkError(_missing(file, path, f"; {file.url} cannot be fetched ({error})")) from error
    return read_weights(file, None if weights == IMAGENET else weights, outline)[0]


def _weight_path(file: WeightFile) -> Path:
    """Where the file should be. A wrong path in the variable is an error later; no other file is used instead."""
    given = os.environ.get(WEIGHTS_VARIABLE)
    if not given and file.url is None:
        raise TrunkError(f"trunk {file.trunk}: name the file of its weights with --weights or {WEIGHTS_VARIABLE}")
    path = Path(given).expanduser() if given else Path(torch.hub.get_dir()) / "checkpoints" / file.name
    return path / file.name if path.is_dir() else path


def _missing(file: WeightFile, path: Path, reason: str = "") -> str:
    place = f"put {file.name} there, or " if file.name else ""
    return (
        f"trunk {file.trunk}: there is no file {path}{reason}; {place}name the file, or its folder, with "
        f"--weights or {WEIGHTS_VARIABLE}"
    )


def read_weights(file: WeightFile, wanted: str | None, outline: Outline) -> tuple[str, dict[str, Tensor]]:
    """Return the identity of the weights, which must be the wanted one if there is one, and their tensors.

    The counters `num_batches_tracked` can be missing, because files from before PyTorch 0.4 do not have them. torch
    then starts them at 0.
    """
    path = _weight_path(file)
    if not path.is_file():
        raise TrunkError(_missing(file, path))
    content = path.read_bytes()  # Read once, so that the hash belongs to the content that is loaded.
    digest = hashlib.sha256(content).hexdigest()
    published = file.url is not None and digest.startswith(file.sha256)
    if file.url is not None and path.name == file.name and not published:
        raise TrunkError(
            f"{path}: not the published file: its SHA-256 begins with {digest[: len(file.sha256)]}; remove it and "
            f"download {file.url} again, or give it another name if it is a file of your own"
        )
    identity = IMAGENET if published else f"sha256:{digest[:16]}"
    if wanted not in (None, identity):
        raise TrunkError(
            f"trunk {file.trunk}: the experiment needs weights {wanted}, but {path} is {identity}; name the right file "
            f"with --weights or {WEIGHTS_VARIABLE}"
        )
    try:
        weights = _loaded(path, content)
    except ImportError as error:
        raise TrunkError(f"{path}: reading it needs the package safetensors: pip install safetensors") from error
    except Exception as error:  # Damaged content gives errors of all kinds.
        raise TrunkError(f"{path}: not a readable file of PyTorch weights ({type(error).__name__})") from error
    if not isinstance(weights, Mapping):
        raise TrunkError(f"{path}: contains a {type(weights).__name__}, not weights by name")
    return identity, _tensors(weights, path, outline, file.classifier)


def _loaded(path: Path, content: bytes) -> Any:
    if path.suffix == ".safetensors":
        return importlib.import_module("safetensors.torch").load(content)
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def _of_the_trunk(weights: Mapping[str, Tensor], outline: Outline) -> dict[str, Tensor]:
    """The tensors by the trunk's keys: a file may have DataParallel's `module.` before them, and a network of a library
    or a user has its own keys without the `network.` of `OutsideTrunk`."""
    renamed = [
        {f"{before}{str(key).removeprefix(parallel)}": value for key, value in weights.items()}
        for before in ("", "network.")
        for parallel in ("", "module.")
    ]
    return max(renamed, key=lambda tensors: len(tensors.keys() & outline.keys()))


def _tensors(
    weights: Mapping[str, Tensor], path: Path, outline: Outline, ignored: tuple[str, ...]
) -> dict[str, Tensor]:
    """The tensors without those of the classifier, which must have exactly the outline's keys and shapes."""
    named = _of_the_trunk(weights, outline)
    tensors = {key: value for key, value in named.items() if key in outline or not key.startswith(ignored)}
    missing = [key for key in outline if key not in tensors and not key.endswith(".num_batches_tracked")]
    unlike = [key for key, value in tensors.items() if key not in outline or _shape(value) != outline[key].shape]
    if missing or unlike:
        raise TrunkError(
            f"{path}: not the weights of this trunk: {counted(len(missing), 'key')} {verb(len(missing), 'are')} "
            f"missing and {len(unlike)} {verb(len(unlike), 'are')} unknown or of another shape, the first is "
            f"{[*missing, *unlike][0]}"
        )
    if encoded := [key for key, value in tensors.items() if not _is_plain(value, outline[key])]:
        first = tensors[encoded[0]]
        raise TrunkError(
            f"{path}: {len(encoded)} of its tensors {verb(len(encoded), 'are')} not of plain numbers, the first is "
            f"{encoded[0]} ({first.dtype}, {first.layout}, on {first.device}); save dense tensors of float32, float64, "
            "float16 or bfloat16"
        )
    if broken := [key for key, value in tensors.items() if not torch.isfinite(value).all()]:
        hold = verb(len(broken), "hold")
        raise TrunkError(f"{path}: {len(broken)} of its tensors {hold} values that are no finite numbers ({broken[0]})")
    return tensors


def _shape(value: object) -> torch.Size | None:
    """The shape of a tensor; None for anything else, and for a nested tensor, which has none."""
    return value.shape if isinstance(value, Tensor) and not value.is_nested else None


def _is_plain(value: Tensor, like: Tensor) -> bool:
    """Whether a tensor holds the values of a weight: floating-point numbers of two bytes or more where it has such.

    Weights as whole numbers, or as floats of one byte, would need scales, which torch's `load_state_dict` does not ask
    for. It takes the real part of complex ones.
    """
    is_dense = value.layout == torch.strided and value.device.type == "cpu" and not value.is_quantized
    is_float = value.is_floating_point() and value.dtype.itemsize > 1
    return is_dense and not value.is_complex() and (is_float or not like.is_floating_point())
