"""Trunks from users' files and modules: `./my_trunk.py:build`, `my_package.module:build`.

`build()` returns a `torch.nn.Module` that maps images (n, 3, h, w) to features: a feature map (n, c, h, w), which is
pooled, or pooled features (n, c). Beside it, `INPUT_FORMAT` says which numbers the module gets for an image.
"""

import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from protocols.trunks.trunk_entry import OutsideTrunk, TrunkEntry
from protocols.trunks.weights import TrunkError, WeightFile
from protocols.users_code.sources import SourceError, explained, load_source
from results.spec.source_names import SourceName
from results.spec.trunk_spec import InputFormat

_PROBE = 64
"""Side of the images on which the number of features is found, if the module does not say it."""


@cache
def file_entry(name: str) -> TrunkEntry:
    """Look up a trunk of a user's file or module."""
    parsed = SourceName.parse(name)
    assert parsed is not None
    try:
        function = load_source(parsed)
    except SourceError as error:
        raise TrunkError(f"trunk {name}: {error}") from error
    return TrunkEntry(
        partial(_built, name, function),
        _input_format(name, function),
        pretrained=partial(_weights, name, function),
        file=WeightFile(name, None, ()),
        outside=True,
    )


def try_trunk(name: SourceName) -> None:
    """Build a user's trunk and compute an image, for what both load. What fails is reported when the trunk is used."""
    with suppress(Exception), torch.random.fork_rng([]), torch.no_grad():
        entry = file_entry(str(name))
        entry.build().eval()(torch.zeros(1, entry.input.n_channels, _PROBE, _PROBE))


def _input_format(name: str, function: Any) -> InputFormat:
    declared = getattr(sys.modules.get(function.__module__), "INPUT_FORMAT", None)
    example = 'INPUT_FORMAT = {"channels": "RGB", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}'
    if declared is None:
        raise TrunkError(f"trunk {name}: say beside {function.__name__} which input it needs, such as {example}")
    try:
        return InputFormat.model_validate(declared)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        raise TrunkError(f"trunk {name}: INPUT_FORMAT {key}: {problem['msg']}; an example: {example}") from error


def _built(name: str, function: Any) -> OutsideTrunk:
    with explained(function, f"trunk {name}", TrunkError):
        network = function()
    if not isinstance(network, nn.Module):
        raise TrunkError(
            f"trunk {name}: {function.__name__}() returned {type(network).__name__}, not a torch.nn.Module"
        )
    features = getattr(network, "features", None)
    return OutsideTrunk(network, features if isinstance(features, int) else _count(name, function, network))


def _count(name: str, function: Any, network: nn.Module) -> int:
    channels = _input_format(name, function).n_channels
    what = f"its module cannot compute an image of {_PROBE} x {_PROBE} pixels"
    remedy = "set its attribute `features` to the number of its features"
    was_training = network.training
    network.eval()
    with explained(function, f"trunk {name}: {what}; {remedy}", TrunkError), torch.no_grad():
        features = network(torch.zeros(1, channels, _PROBE, _PROBE))
    network.train(was_training)
    if not isinstance(features, Tensor) or features.ndim not in (2, 4):
        shape = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise TrunkError(f"trunk {name}: its module returned {shape}; features have the shape (n, c) or (n, c, h, w)")
    return features.shape[1]


def _weights(name: str, function: Any) -> Mapping[str, Tensor]:
    """The weights that the function gives the module. They have a hash, so the same call must give the same weights."""
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return _built(name, function).state_dict()
