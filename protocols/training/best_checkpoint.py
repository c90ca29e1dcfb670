"""The best checkpoint of a training, and the best epoch for early stopping (specification, section 6)."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


@dataclass
class BestCheckpoint:
    """The weights after the best validation of a training.

    Epoch 0, the network before training, counts for early stopping, but is never the checkpoint of a trained method
    (specification, 11.22). So there are two best epochs.

    Attributes:
        best_epoch: Epoch of the best score, epoch 0 included; early stopping counts from here.
        epoch: Epoch of the checkpoint.
        weights: State dict of its model, on the CPU.
        class_vectors: The loss's proxies and their classes at the checkpoint; None if the loss has none.
    """

    best_epoch: int = 0
    best_score: float = -math.inf
    epoch: int = 0
    score: float = -math.inf
    weights: dict[str, Tensor] = field(default_factory=dict)
    class_vectors: tuple[Tensor, Tensor] | None = None

    def update(self, epoch: int, score: float, model: nn.Module, loss: nn.Module | None, *, eligible: bool) -> None:
        """Take a validation into account. Only a strictly higher score is an improvement."""
        if score > self.best_score:
            self.best_epoch, self.best_score = epoch, score
        if eligible and score > self.score:
            self.score = score
            self.save(epoch, model, loss)

    def save(self, epoch: int, model: nn.Module, loss: nn.Module | None) -> None:
        """Make the present model, with the loss's proxies, the checkpoint."""
        self.epoch = epoch
        self.class_vectors = None if loss is None else class_vectors(loss)
        self.weights = weights_on_cpu(model)


def weights_on_cpu(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of the model's state dict on the CPU."""
    # In the contiguous layout, so that checkpoints do not depend on the device.
    layout = torch.contiguous_format
    return {key: value.detach().cpu().clone(memory_format=layout) for key, value in model.state_dict().items()}


_ROWS, _COLUMNS = ("proxies",), ("W", "fc")


def class_vectors(loss: nn.Module) -> tuple[Tensor, Tensor] | None:
    """Proxies, class weights or centres of a loss, with their classes.

    If a wrapper has no such vectors, those of its `base_loss` are returned. With several vectors per class, those of
    class 0 come first, as in SoftTriple and ProxyGML, unless the loss has a tensor `proxy_labels` with the class of
    each row.

    Args:
        loss: A loss of the suite or of any other package.

    Returns:
        The vectors (n, d), as copies on the CPU and not normalised, and the class of each (n,). None if the loss has no
        such vectors.
    """
    parameters = dict(loss.named_parameters(recurse=False))
    rows = next((parameters[name] for name in _ROWS if name in parameters), None)
    columns = next((parameters[name] for name in _COLUMNS if name in parameters), None)
    if rows is None and columns is None:
        inner = getattr(loss, "base_loss", None)
        return class_vectors(inner) if isinstance(inner, nn.Module) else None
    vectors = (rows if rows is not None else columns.t()).detach().cpu().clone()  # type: ignore[union-attr]
    proxy_labels = getattr(loss, "proxy_labels", None)
    if isinstance(proxy_labels, Tensor):
        return vectors, proxy_labels.cpu().clone()
    # pytorch-metric-learning's NormalizedSoftmaxLoss has num_classes = 0.
    n_classes = getattr(loss, "num_classes", 0) or len(vectors)
    if len(vectors) % n_classes:
        return None
    return vectors, torch.arange(n_classes).repeat_interleave(len(vectors) // n_classes)
