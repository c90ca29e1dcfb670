"""Square roots that round alike on every processor.

torch takes those of a CPU from MKL, whose kernel begins with an instruction (rsqrtps) that only approximates, and that
AMD and Intel approximate differently. On an AMD EPYC 17 % of 200,000 roots in float32 were not the correctly rounded
ones. Euclidean distances (`torch.cdist`) end with roots. numpy uses the processor's instruction, which is exact.
"""

import warnings

import numpy as np
import torch
from torch import Tensor

from protocols.machine.kernels import NATIVE, kernels

_ATEN = torch.library.Library("aten", "IMPL")
"""Holds the kernels below, which go with it."""


def _square_root(values: Tensor) -> Tensor:
    kind = values.dtype
    if not (kind.is_floating_point or kind.is_complex):
        kind = torch.get_default_dtype()  # As torch does for whole numbers.
    exact = torch.float32 if kind in (torch.bfloat16, torch.float16) else kind
    with np.errstate(invalid="ignore"):  # The root of a negative number is NaN, without a word.
        roots = np.sqrt(values.detach().resolve_conj().resolve_neg().to(exact).numpy())
    return torch.from_numpy(np.asarray(roots)).to(kind)


def _square_root_out(values: Tensor, *, out: Tensor) -> Tensor:
    return out.resize_(values.shape).copy_(_square_root(values))


def use_exact_square_roots() -> None:
    """Let torch take square roots on a CPU from numpy for the rest of this process. Gradients stay torch's."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning only once for all operators")  # That a kernel is replaced.
        _ATEN.impl("sqrt", _square_root, "CPU")
        _ATEN.impl("sqrt_", lambda values: values.copy_(_square_root(values)), "CPU")
        _ATEN.impl("sqrt.out", _square_root_out, "CPU")


if kernels() != NATIVE:
    use_exact_square_roots()
