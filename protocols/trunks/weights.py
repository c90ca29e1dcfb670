"""Weight files that no package brings: where they are looked for, and how they are read.

The one place below the front door that asks the environment. What it finds does not change a training's meaning: the
specification says `imagenet`, and that is one published file, wherever it lies on a machine.
"""

import os
import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

BN_INCEPTION_FILE = "bn_inception-52deb4733.pth"
BN_INCEPTION_VARIABLE = "BN_INCEPTION_WEIGHTS"


class TrunkError(ValueError):
    """A trunk or its weights are not to be had."""


def imagenet_weights_path() -> Path:
    """The file with BN-Inception's ImageNet weights, as the Python package pretrainedmodels publishes it.

    BN_INCEPTION_WEIGHTS names it or its folder; without the variable it is looked for where torch.hub keeps its
    downloads. Raises TrunkError with one line that says which file to put where.
    """
    checkpoints = Path(torch.hub.get_dir()) / "checkpoints"
    named = os.environ.get(BN_INCEPTION_VARIABLE)
    place = Path(named).expanduser() if named else checkpoints
    path = place if named and not place.is_dir() else place / BN_INCEPTION_FILE
    if path.is_file():
        return path
    # A variable that leads nowhere is told, not passed over: otherwise a typing error picks another file in silence.
    looked = f"{BN_INCEPTION_VARIABLE} leads to {path}, which is no file" if named else f"there is no {path}"
    raise TrunkError(
        f"trunk bn_inception: no imagenet weights: {looked}; put {BN_INCEPTION_FILE} of the Python package "
        f"pretrainedmodels into {checkpoints}, or set {BN_INCEPTION_VARIABLE} to the file or its folder"
    )


def read_weights(path: Path, shapes: Mapping[str, torch.Size], ignored: tuple[str, ...]) -> dict[str, Tensor]:
    """The tensors of a file that must hold exactly the given keys and shapes, less keys with an ignored prefix.

    The counters `num_batches_tracked` may be missing, for they do not exist in files from before PyTorch 0.4; torch
    then starts them at 0. Raises TrunkError with one line for a file that does not fit or cannot be read.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise TrunkError(f"{path}: not a readable file of PyTorch weights ({type(error).__name__})") from error
    if not isinstance(content, Mapping):
        raise TrunkError(f"{path}: holds {type(content).__name__}, not weights by name")
    found = {key: value for key, value in content.items() if not key.startswith(ignored)}
    missing = [key for key in shapes if key not in found and not key.endswith(".num_batches_tracked")]
    unknown = [key for key in found if key not in shapes]
    if missing or unknown:
        first = f"lacks {missing[0]}" if missing else f"has {unknown[0]}"
        raise TrunkError(f"{path}: not this trunk's weights: {len(missing)} missing, {len(unknown)} unknown; {first}")
    for key, value in found.items():
        if value.shape != shapes[key]:
            raise TrunkError(f"{path}: {key} has the shape {tuple(value.shape)} instead of {tuple(shapes[key])}")
    return found
