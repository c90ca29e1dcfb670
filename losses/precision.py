"""Losses are computed in float32 at least, whatever autocast does around them."""

from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn


def at_least_float32(x: Tensor) -> Tensor:
    """`x` in float32 if it is float16 or bfloat16; float32 and float64 come back as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class FullPrecisionForward:
    """Mix-in, first among the bases of a loss: `forward` without autocast, on embeddings of float32 at least.

    The cast stands around the whole `forward` because PML's `MultipleReducers` collects the sub-losses in the dtype of
    the embeddings it is given. Parameters keep their dtype: a loss reads them through `parameter.to(embeddings.dtype)`
    and never assigns to `parameter.data`. As everywhere in PML the loss follows the embeddings to their device.
    """

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Any:
        """PML's `forward`, from embeddings (B, d) and labels (B) to what the reducer returns: a scalar by default."""
        assert isinstance(self, nn.Module)
        own = next(chain(self.parameters(), self.buffers()), embeddings)
        if own.device != embeddings.device:
            self.to(embeddings.device)
        upcast = at_least_float32(embeddings)
        # PML recognises "no reference embeddings" by identity, which a second cast would break.
        if ref_emb is not None:
            ref_emb = upcast if ref_emb is embeddings else at_least_float32(ref_emb)
        with torch.autocast(embeddings.device.type, enabled=False):
            # The next class in the order of resolution, PML's loss, has it.
            return super().forward(upcast, labels, indices_tuple, ref_emb, ref_labels)  # type: ignore[misc]
