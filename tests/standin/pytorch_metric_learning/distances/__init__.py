"""STAND-IN for pytorch-metric-learning 3 (our code, from the documentation).

DOCUMENTED: DotProductSimilarity() does not normalise (rc3); `distance.margin(x, y)` (generic_pair_loss page); low
precision inputs of SNRDistance are widened to float32 (3.0.4); statistics (`collect_stats`) are gone (3.0.0).
GUESS: constructor keyword-only; hooks compute_mat, maybe_normalize, normalize, get_norm, pairwise_distance,
smallest_dist, largest_dist and attributes p, power, normalize_embeddings, is_inverted as in 2.9 (the page of
distances that is stored is version 2's); an unknown keyword raises TypeError.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["BaseDistance", "CosineSimilarity", "DotProductSimilarity", "LpDistance", "SNRDistance"]


class BaseDistance(nn.Module):
    def __init__(self, *, normalize_embeddings=True, p=2, power=1, is_inverted=False):
        super().__init__()
        self.normalize_embeddings, self.p, self.power, self.is_inverted = normalize_embeddings, p, power, is_inverted

    def forward(self, query_emb: Tensor, ref_emb: Tensor | None = None) -> Tensor:
        query = self.maybe_normalize(query_emb)
        mat = self.compute_mat(query, query if ref_emb is None else self.maybe_normalize(ref_emb))
        return mat if self.power == 1 else mat**self.power

    def compute_mat(self, query_emb: Tensor, ref_emb: Tensor) -> Tensor:
        raise NotImplementedError

    def normalize(self, embeddings: Tensor, dim: int = 1) -> Tensor:
        return functional.normalize(embeddings, p=self.p, dim=dim)

    def maybe_normalize(self, embeddings: Tensor, dim: int = 1) -> Tensor:
        return self.normalize(embeddings, dim) if self.normalize_embeddings else embeddings

    def get_norm(self, embeddings: Tensor, dim: int = 1) -> Tensor:
        return torch.linalg.vector_norm(embeddings, ord=self.p, dim=dim)

    def margin(self, x, y):
        return y - x if self.is_inverted else x - y


class LpDistance(BaseDistance):
    def __init__(self, **kwargs):
        super().__init__(is_inverted=False, **kwargs)

    def compute_mat(self, query_emb, ref_emb):
        return torch.cdist(query_emb, ref_emb, p=self.p)


class DotProductSimilarity(BaseDistance):
    def __init__(self, *, normalize_embeddings=False, **kwargs):
        super().__init__(is_inverted=True, normalize_embeddings=normalize_embeddings, **kwargs)

    def compute_mat(self, query_emb, ref_emb):
        return query_emb @ ref_emb.t()


class CosineSimilarity(DotProductSimilarity):
    def __init__(self, **kwargs):
        super().__init__(normalize_embeddings=True, **kwargs)


class SNRDistance(BaseDistance):
    def __init__(self, **kwargs):
        super().__init__(is_inverted=False, **kwargs)

    def compute_mat(self, query_emb, ref_emb):
        wide = torch.promote_types(query_emb.dtype, torch.float32)
        query, ref = query_emb.to(wide), ref_emb.to(wide)
        return (query[:, None] - ref[None]).var(2) / query.var(1, keepdim=True)
