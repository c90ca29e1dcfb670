"""Products of all pairs of two sets of points, in float32 on a CPU by the faster of two libraries.

torch takes MKL. On two AMD EPYC with AVX-512 (family 26, model 2, and one whose model was not recorded), oneDNN takes
half as long as MKL. On another one (family 25, model 17) and on one with AVX2 alone, it takes 0.9 times as long. On an
Intel Xeon with AVX-512, both are equally fast.
"""

from math import ceil

import torch
from torch import Tensor
from torch.nn import functional

from results.records.processor import of_intel

_ALIGNED = 16
"""Sizes of parts are multiples of it. Distances by parts of 494 points instead of 496 took 1.04 times as long."""


def equal_parts(points: Tensor, most: int) -> list[Tensor]:
    """Split points into parts of one size, because rounding depends on the shapes of what is multiplied.

    With parts of different sizes, two equal points would not be equally near to a third one.

    Args:
        points: (n, d).
        most: Largest size of a part.

    Returns:
        The parts (s, d). Zeros fill the last one.
    """
    number = max(1, ceil(len(points) / most))
    size = min(most, _ALIGNED * max(1, ceil(len(points) / number / _ALIGNED)))
    *parts, last = points.split(size)
    if len(last) < size:
        last = functional.pad(last, (0, 0, 0, size - len(last)))
    return [*parts, last]


def memory_of_products(points: Tensor, rows: int, columns: int) -> Tensor:
    """Take memory for products. Its rows lie a little apart.

    If they began 80 KiB after one another, as those of 20,480 columns do, they would share places in the cache. A
    retrieval of 20,000 points then took 1.25 times as long.

    Args:
        points: The points whose products it is for, for type and device.
        rows: Number of rows.
        columns: Number of columns.

    Returns:
        Memory (rows, columns) with any content.
    """
    return points.new_empty(rows, columns + _ALIGNED)[:, :columns]


def product(left: Tensor, right: Tensor, memory: Tensor | None = None) -> Tensor:
    """Multiply each point of one set with each of another.

    Args:
        left: (n, d).
        right: (m, d), of the same type and on the same device.
        memory: (n, m). It may be overwritten. None takes new memory.

    Returns:
        The products (n, m), in `memory` or in new memory.
    """
    if left.device.type == "cpu" and left.dtype == torch.float32 and _onednn_is_better():
        products: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.contiguous(), None, "none", [], "")
        return products
    return torch.mm(left, right.T, out=memory)


def _onednn_is_better() -> bool:
    """Whether torch has oneDNN and does not multiply as fast itself, by MKL on a processor of MKL's maker.

    The operation is that of torch's compiler. `torch.nn.functional.linear` takes oneDNN for tensors of oneDNN only, and
    its products must be copied out of them.
    """
    if not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")):
        return False
    return not (torch.backends.mkl.is_available() and of_intel())
