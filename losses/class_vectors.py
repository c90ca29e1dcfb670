"""Read the vectors that represent classes (proxies, class weights, centres) from any loss."""

import torch
from torch import Tensor, nn

_ROWS, _COLUMNS = ("proxies",), ("W", "fc")


def class_vectors(loss: nn.Module) -> tuple[Tensor, Tensor] | None:
    """Proxies, class weights or centres of a loss, with their classes.

    If a wrapper has no such vectors, those of its `base_loss` are returned. With several vectors per class, those of
    class 0 come first, as in SoftTriple and ProxyGML, unless the loss has a tensor `proxy_labels` with the class of
    each row.

    Args:
        loss: a loss of this package or of any other.

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
