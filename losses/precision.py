"""Compute losses in float32 or float64, also under autocast."""

from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn


def at_least_float32(x: Tensor) -> Tensor:
    """Cast float16 and bfloat16 to float32; float32 and float64 stay as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class FullPrecisionForward:
    """Mix-in, first among the bases of a loss: `forward` without autocast, on embeddings in float32 or float64.

    The cast is around the whole `forward`, because PML's `MultipleReducers` collects the sub-losses in the dtype of the
    embeddings. Parameters keep their dtype: a loss reads them through `parameter.to(embeddings.dtype)` and never
    assigns to `parameter.data`. As in PML, the loss moves itself to the device of the embeddings.
    """

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Any:
        """PML's `forward`: from embeddings (B, d) and labels (B,) to the output of the reducer, by default a scalar."""
        assert isinstance(self, nn.Module)
        state = next(chain(self.parameters(), self.buffers()), embeddings)
        if state.device != embeddings.device:
            self.to(embeddings.device)
        upcast = at_least_float32(embeddings)
        # PML recognises "no reference embeddings" by identity, which a second cast would break.
        if ref_emb is not None:
            ref_emb = upcast if ref_emb is embeddings else at_least_float32(ref_emb)
        with torch.autocast(embeddings.device.type, enabled=False):
            # `forward` of the next class in the order of resolution, which is PML's loss.
            return super().forward(upcast, labels, indices_tuple, ref_emb, ref_labels)  # type: ignore[misc]
