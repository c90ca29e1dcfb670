"""The vectors that stand for classes inside a loss, whatever the loss calls them."""

import torch
from torch import Tensor, nn

_ROWS, _COLUMNS = ("proxies",), ("W", "fc")


def class_vectors(loss: nn.Module) -> tuple[Tensor, Tensor] | None:
    """Proxies, class weights or centres of a loss as rows (n, d), with the class of each (n,); None if it has none.

    A wrapped loss (`base_loss`) is asked where the wrapper has none of its own. With several vectors per class, those
    of class 0 come first, as in SoftTriple and ProxyGML, unless the loss says otherwise in `proxy_labels`. The rows are
    copies on the CPU, not normalised.
    """
    parameters = dict(loss.named_parameters(recurse=False))
    rows = next((parameters[name] for name in _ROWS if name in parameters), None)
    columns = next((parameters[name] for name in _COLUMNS if name in parameters), None)
    if rows is None and columns is None:
        inner = getattr(loss, "base_loss", None)
        return class_vectors(inner) if isinstance(inner, nn.Module) else None
    vectors = (rows if rows is not None else columns.t()).detach().cpu().clone()  # type: ignore[union-attr]
    said = getattr(loss, "proxy_labels", None)
    if isinstance(said, Tensor):
        return vectors, said.cpu().clone()
    # pytorch-metric-learning's NormalizedSoftmaxLoss says 0.
    n_classes = getattr(loss, "num_classes", 0) or len(vectors)
    if len(vectors) % n_classes:
        return None
    return vectors, torch.arange(n_classes).repeat_interleave(len(vectors) // n_classes)
