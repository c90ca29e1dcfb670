"""STAND-IN for pytorch-metric-learning 3 (our code, from the documentation).

DOCUMENTED: miners return PairIndices or TripletIndices; every miner takes tuples_per_anchor and a keyword-only mat
(rc5); a miner is given (embeddings, labels, indices_tuple, ref_emb, ref_labels) (multiple_losses page); ref_emb None
is self-comparison. GUESS: positions of these arguments; the hook's name and arguments, mine(embeddings, labels,
ref_emb, ref_labels) as in 2.9, with ref_emb None for self-comparison; default distances; candidates and mat are not
implemented.
"""

import torch
from torch import nn

from ..distances import CosineSimilarity, LpDistance
from ..types import PairIndices, TripletIndices
from ..utils import indexing

__all__ = ["BaseMiner", "BatchEasyHardMiner", "MultiSimilarityMiner", "TripletMarginMiner"]


class BaseMiner(nn.Module):
    def __init__(self, *, distance=None, tuples_per_anchor=None):
        super().__init__()
        self.distance = self.default_distance() if distance is None else distance
        self.tuples_per_anchor = tuples_per_anchor

    def default_distance(self):
        return LpDistance()

    def forward(self, embeddings, labels, indices_tuple=None, ref_emb=None, ref_labels=None, *, mat=None):
        if mat is not None or indices_tuple is not None or self.tuples_per_anchor is not None:
            raise NotImplementedError("the stand-in's miners take neither candidates nor mat nor tuples_per_anchor")
        with torch.no_grad():
            return indexing.as_indices(tuple(self.mine(embeddings, labels, ref_emb, ref_labels)))

    def mine(self, embeddings, labels, ref_emb, ref_labels):
        raise NotImplementedError


class MultiSimilarityMiner(BaseMiner):
    def __init__(self, epsilon=0.1, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def default_distance(self):
        return CosineSimilarity()

    def mine(self, embeddings, labels, ref_emb, ref_labels):
        similarity = self.distance(embeddings, ref_emb)
        similarity = similarity if self.distance.is_inverted else -similarity
        same, other = indexing.masks(labels, ref_labels)
        nearest = similarity.masked_fill(~other, -torch.inf).amax(1, keepdim=True)
        farthest = similarity.masked_fill(~same, torch.inf).amin(1, keepdim=True)
        pull = (same & (similarity - self.epsilon < nearest)).nonzero().unbind(1)
        push = (other & (similarity + self.epsilon > farthest)).nonzero().unbind(1)
        return PairIndices(*pull, *push)


class TripletMarginMiner(BaseMiner):
    def __init__(self, margin=0.2, type_of_triplets="all", **kwargs):
        super().__init__(**kwargs)
        self.margin, self.type_of_triplets = margin, type_of_triplets

    def mine(self, embeddings, labels, ref_emb, ref_labels):
        mat = self.distance(embeddings, ref_emb)
        a, p, n = indexing.to_triplets(None, labels, ref_labels)
        gap = self.distance.margin(mat[a, n], mat[a, p])
        kept = gap <= self.margin
        if self.type_of_triplets == "hard":
            kept &= gap <= 0
        elif self.type_of_triplets == "semihard":
            kept &= gap > 0
        return TripletIndices(a[kept], p[kept], n[kept])


class BatchEasyHardMiner(BaseMiner):
    """`easy` and `hard` for both sides, and `semihard` negatives; of one positive and one negative for each anchor."""

    def __init__(self, pos_strategy="easy", neg_strategy="semihard", **kwargs):
        super().__init__(**kwargs)
        self.pos_strategy, self.neg_strategy = pos_strategy, neg_strategy

    def mine(self, embeddings, labels, ref_emb, ref_labels):
        mat = self.distance(embeddings, ref_emb)
        mat = -mat if self.distance.is_inverted else mat
        same, other = indexing.masks(labels, ref_labels)
        easy = self.pos_strategy == "easy"
        pos = mat.masked_fill(~same, torch.inf if easy else -torch.inf)
        chosen = pos.argmin(1) if easy else pos.argmax(1)
        allowed = other
        if self.neg_strategy == "semihard":
            allowed = other & (mat > mat.gather(1, chosen[:, None]))
        hardest = mat.masked_fill(~allowed, torch.inf).argmin(1)
        kept = (same.any(1) & allowed.any(1)).nonzero().flatten()
        return PairIndices(kept, chosen[kept], kept, hardest[kept])  # pairs, as in 2.9
