"""Embeddings in clusters."""

import torch
from torch import Tensor

from protocols.metrics.retrieval import normalized


def embeddings_in_clusters(
    spread: float, classes: int = 12, per_class: int = 15, seed: int = 0
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(per_class)
    centres = torch.randn(classes, 16, generator=generator)[labels]
    embeddings = normalized(centres + spread * torch.randn(len(labels), 16, generator=generator))
    mixed = torch.randperm(len(labels), generator=generator)
    return embeddings[mixed], 7 * labels[mixed]
