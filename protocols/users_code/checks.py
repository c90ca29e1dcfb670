"""Checks of losses, miners and metrics from users' files and modules, before anything is trained with them.

A metric gets `embeddings` (n, d), a float32 tensor on the CPU with the normalised embeddings of the test images, and
`labels` (n,), an int64 tensor with their classes. It returns a float, where higher or lower may be better. Queries and
gallery are one set.
"""

import inspect
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from protocols.users_code.sources import SourceError, explained, load_source
from results.spec.source_names import SourceName

_CALLS = {
    "loss": ("embeddings, labels, indices_tuple", 3),
    "miner": ("embeddings, labels", 2),
    "regularizer": ("embeddings", 1),
}
"""How a training calls a component of each kind: the arguments, and their number."""


def source_class(kind: str, name: SourceName) -> type[nn.Module]:
    """Import a class from a user's file or module and check that a training can call it."""
    cls = load_source(name)
    if not (inspect.isclass(cls) and issubclass(cls, nn.Module)):
        raise SourceError(f"{name}: a {kind} must be a class derived from torch.nn.Module")
    arguments, count = _CALLS.get(kind, ("", 0))
    if cls.forward is nn.Module.forward:
        raise SourceError(f"{name}: the class has no forward({arguments or '...'})")
    if count:
        try:
            inspect.signature(cls.forward).bind(*range(count + 1))
        except TypeError as error:
            raise SourceError(f"{name}: forward is called with ({arguments}), but {error}") from error
    return cls


def value_of_source(name: SourceName, embeddings: Tensor, labels: Tensor) -> float:
    """Compute a user's metric of normalised embeddings (n, d) and their classes (n,)."""
    value = _called(name, embeddings, labels)
    if not math.isfinite(value):
        raise SourceError(f"{name} returned {value}; a metric must return a finite number")
    return value


def try_metric(name: SourceName) -> None:
    """Call a user's metric on a few random embeddings, whose value does not matter."""
    embeddings = torch.nn.functional.normalize(torch.randn(16, 4, generator=torch.Generator().manual_seed(0)))
    _called(name, embeddings, torch.arange(4).repeat(4))


def _called(name: SourceName, embeddings: Tensor, labels: Tensor) -> float:
    function = load_source(name)
    if not callable(function) or inspect.isclass(function):
        raise SourceError(f"{name}: a metric must be a function of (embeddings, labels) that returns a number")
    with explained(function, f"metric {name.attribute} fails"):
        value: Any = function(embeddings.detach().cpu().clone(), labels.cpu().clone())
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, float | int | np.floating | np.integer):
        raise SourceError(f"{name} must return a number such as a float, got {type(value).__name__}")
    return float(value)
