"""Embeddings of a batch that is too large for the memory of a training (Gao et al., Scaling Deep Contrastive Learning
Batch Size under Memory Limited Setup, RepL4NLP 2021)."""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


def embed_in_chunks(model: nn.Module, images: Tensor, size: int | None) -> Tensor:
    """Embed a batch, and keep of the network no more than the embeddings.

    The backward of a loss on the whole batch then computes one chunk after another a second time, with the random
    numbers of the first time, so that dropout falls on the same values. It needs the memory of one chunk. Gradients
    are those of one pass, apart from rounding, if the network treats the images of a batch independently.

    Args:
        images: The batch (n, ...).
        size: Images of a chunk. None, or a size of at least n, embeds the batch in one pass.

    Returns:
        The embeddings (n, d).
    """
    if size is None or size >= len(images):
        embeddings: Tensor = model(images)
        return embeddings
    return torch.cat([checkpoint(model, chunk, use_reentrant=False) for chunk in images.split(size)])
