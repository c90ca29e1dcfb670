"""Metrics from users' files and modules: functions of embeddings and labels that return one number.

A function gets `embeddings` (n, d), a float32 tensor on the CPU with the normalised embeddings of the test images, and
`labels` (n,), an int64 tensor with their classes. It returns a float, where higher or lower may be better. Queries and
gallery are one set.
"""

import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protocols.users_files.classes import SourceError, load_source, raised_in
from results.spec.source_names import SourceName


def value_of_source(name: SourceName, embeddings: Tensor, labels: Tensor) -> float:
    """Compute a user's metric.

    Args:
        name: The name of the function.
        embeddings: (n, d), normalised.
        labels: (n,), the classes.

    Raises:
        SourceError: The function cannot be loaded, raises an error or does not return one finite number.
    """
    value = _called(name, embeddings, labels)
    if not math.isfinite(value):
        raise SourceError(f"{name} returned {value}; a metric must return a finite number")
    return value


def try_metric(name: SourceName) -> None:
    """Call a user's metric on a few random embeddings, whose value does not matter.

    Raises:
        SourceError: As for `value_of_source`, but the number may be infinite or NaN.
    """
    embeddings = torch.nn.functional.normalize(torch.randn(16, 4, generator=torch.Generator().manual_seed(0)))
    _called(name, embeddings, torch.arange(4).repeat(4))


def _called(name: SourceName, embeddings: Tensor, labels: Tensor) -> float:
    function = load_source(name)
    if not callable(function) or inspect.isclass(function):
        raise SourceError(f"{name}: a metric must be a function of (embeddings, labels) that returns a number")
    try:
        value: Any = function(embeddings.cpu().clone(), labels.cpu().clone())
    except Exception as error:
        file = Path(inspect.getsourcefile(function) or name.source)
        raise SourceError(f"metric {name.attribute} fails: {raised_in(file, error)}") from error
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, float | int | np.floating | np.integer):
        raise SourceError(f"{name} must return a number such as a float, got {type(value).__name__}")
    return float(value)
