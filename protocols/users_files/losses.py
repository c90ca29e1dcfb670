"""Checks of classes from users' files and modules, before anything is trained with them."""

import inspect
import warnings
from pathlib import Path

import torch
from torch import nn

from losses.plugin import TrainingPlugin
from protocols.users_files.classes import SourceError, load_source, raised_in
from results.spec.source_names import SourceName

_CALLS = {
    "loss": ("embeddings, labels, indices_tuple", 3),
    "miner": ("embeddings, labels", 2),
    "regularizer": ("embeddings", 1),
}
"""How a training calls a component of each kind: the arguments, and their number."""


def source_class(kind: str, name: SourceName) -> type[nn.Module]:
    """Import a class from a user's file or module and check that a training can call it.

    Args:
        kind: `loss`, `miner`, `regularizer`, `distance` or `reducer`.
        name: The name of the class.

    Raises:
        SourceError: There is no such class, it is no `torch.nn.Module`, or its `forward` takes other arguments.
    """
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


def try_loss(name: SourceName, loss: nn.Module, classes: int, embedding_size: int) -> None:
    """Compute a user's loss and its gradient on one small random batch.

    A loss with hooks is not tried, because it may need the training around it.

    Args:
        name: The name of its class, for the message.
        loss: The loss. It is used up: do not train it afterwards.
        classes: Number of training classes that the loss was built for.
        embedding_size: Dimensions of the embeddings.

    Raises:
        SourceError: The loss raises an error, or does not return one number with a gradient.
    """
    if isinstance(loss, TrainingPlugin):
        return
    embeddings = torch.randn(2 * classes, embedding_size, requires_grad=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = loss(embeddings, torch.arange(classes).repeat(2), None)
        if number := isinstance(value, torch.Tensor) and value.numel() == 1 and value.requires_grad:
            value.sum().backward()
    except Exception as error:
        raise SourceError(f"the loss fails on a random batch: {raised_in(_file(loss), error)}") from error
    if not number:
        kind = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
        without = ", without a gradient" if isinstance(value, torch.Tensor) and value.numel() == 1 else ""
        raise SourceError(f"{name}: forward must return one number with a gradient, got {kind}{without}")


def _file(loss: nn.Module) -> Path:
    return Path(inspect.getfile(type(loss)))
