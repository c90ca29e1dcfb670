"""Recall@k surrogate: a smooth count of queries with a positive among their k nearest rows of the batch."""

from collections.abc import Sequence
from typing import Any

import torch
from pytorch_metric_learning.distances import DotProductSimilarity
from torch import Tensor

from .base import ByCosine, checked_labels
from .bridge import term
from .mined import refuse_mined
from .plugin import TrainingPlugin
from .smooth_ap import smooth_steps


class RecallAtKLoss(ByCosine, TrainingPlugin):
    """Ranks and the cut at k are sigmoids, so that recall@k of a batch has a gradient.

    With unit embeddings u, `s_ij = u_i . u_j`, P_q the other rows of the class of q, and n rows in the batch::

        r(q, x) = 1 + sum_{z != x} sigmoid((s_qz - s_qx) / rank_temperature)
        R_k(q)  = min(k, sum_{x in P_q} sigmoid((k - r(q, x)) / k_temperature)) / min(k, |P_q|)
        L       = mean_q ( 1 - mean_k R_k(q) )

    A row without a positive is no query, and stays among the others. Without any query the loss is 0. Every k is cut to
    the number of rows. As in the released code, z runs over the query itself, whose similarity is 1, so that the ranks
    are about one too high; `count_query=False` leaves it out, as in the definition of recall.

    With `simix`, in training mode, each pair of rows of a class gets a virtual row `a u_i + (1 - a) u_j`, a drawn from
    U(0, 1). Virtual rows are queries, positives and negatives. They are not normalised.

    Shapes: embeddings (B, d) of any norm, labels (B,), any whole numbers; sub-loss `loss`, one value per query. The
    ranks need B (m - 1) B numbers for m rows per class: 190 MiB for 4,000 rows with four per class.

    Args:
        ks: the values of k; default 1, 2, 4, 8 and 16.
        k_temperature: temperature of the cut at k, in ranks, or one for each k; default 1.
        rank_temperature: temperature of the ranks, in cosine units; default 0.01.
        count_query: whether the query counts in the ranks; default True.
        simix: whether virtual rows join the batch; default False.
        **kwargs: PML's `distance` (cosine, the default, or dot product), `reducer` (default `MeanReducer`),
            `embedding_regularizer` and `embedding_reg_weight`.

    Raises:
        ValueError: for a k below 1 or no k, a temperature that is not positive or has no k, another distance, pairs of
            a miner, and every batch that `checked_labels` refuses.

    Source: Patel et al., Recall@k Surrogate Loss with Large Batches and Similarity Mixup, CVPR 2022, and the authors'
    code (yash0307/RecallatK_surrogate), which reads classes from positions in the batch; here labels name them.
    """

    def __init__(
        self,
        ks: Sequence[int] = (1, 2, 4, 8, 16),
        k_temperature: float | Sequence[float] = 1.0,
        rank_temperature: float = 0.01,
        *,
        count_query: bool = True,
        simix: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(self.distance, DotProductSimilarity):
            raise ValueError("RecallAtKLoss mixes similarities, so it needs CosineSimilarity or DotProductSimilarity")
        if not ks or min(ks) < 1:
            raise ValueError(f"ks must be numbers from 1 on, got {ks}")
        per_k = tuple(k_temperature) if isinstance(k_temperature, Sequence) else (k_temperature,) * len(ks)
        if len(per_k) != len(ks):
            raise ValueError(f"k_temperature must be one number, or one for each of {len(ks)} ks, got {k_temperature}")
        if min(*per_k, rank_temperature) <= 0:
            raise ValueError(f"temperatures must be positive, got {k_temperature} and {rank_temperature}")
        self.ks, self.k_temperature, self.rank_temperature = tuple(ks), per_k, rank_temperature
        self.count_query, self.simix = count_query, simix

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: sub-loss `loss` with one value per query."""
        labels = checked_labels(embeddings, labels)
        refuse_mined(indices_tuple)
        rows, sources = self.distance.maybe_normalize(embeddings), torch.arange(len(labels), device=labels.device)
        if self.simix and self.learns:
            rows, sources = self.with_mixtures(rows, labels)
        queries, losses = self.losses_of_queries(rows, labels[sources], len(labels))
        if not len(queries):
            return self.nothing()
        return {"loss": term(losses, sources[queries], "element")}

    def losses_of_queries(self, rows: Tensor, labels: Tensor, largest_k: int) -> tuple[Tensor, Tensor]:
        """The queries among rows (n, d) with labels (n,), int64 (q,), and `1 - mean_k R_k` of each, (q,).

        Every k is at most `largest_k`.
        """
        same = (labels.unsqueeze(1) == labels).fill_diagonal_(False)
        queries, positives = same.nonzero().unbind(1)
        ranks = self._ranks(rows @ rows.T, queries, positives)
        numbers = same.sum(1)
        recalls = []
        for wanted, temperature in zip(self.ks, self.k_temperature, strict=True):
            k = min(wanted, largest_k)
            hits = rows.new_zeros(len(rows)).index_add(0, queries, ((k - ranks) / temperature).sigmoid())
            recalls.append(hits.clamp(max=k) / numbers.clamp(min=1, max=k))
        asked = numbers.nonzero().squeeze(1)
        return asked, (1 - torch.stack(recalls).mean(0))[asked]

    def _ranks(self, similarity: Tensor, queries: Tensor, positives: Tensor) -> Tensor:
        """Smooth ranks of the positives (p,) of the queries (p,) among all rows."""
        ahead = smooth_steps(similarity, queries, positives, self.rank_temperature)
        if not self.count_query:
            ahead = ahead.scatter(1, queries.unsqueeze(1), 0.0)
        return 1 + ahead.sum(1)

    def with_mixtures(self, rows: Tensor, labels: Tensor, shares: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Append the virtual rows of SiMix.

        Args:
            rows: (n, d).
            labels: (n,).
            shares: (p,), the share of the first parent of each pair of rows of a class. The pairs are sorted by the
                first, then by the second parent, which has the higher number. None, the default, draws them.

        Returns:
            All rows (n + p, d), and the number of a real row of its class for each, (n + p,).
        """
        first, second = (labels.unsqueeze(1) == labels).triu(1).nonzero().unbind(1)
        if shares is None:
            generator = self._context.generator if self._context else None
            # On the CPU, whatever torch's default device, as its generator is.
            shares = torch.rand(len(first), generator=generator, device="cpu").to(rows.device, non_blocking=True)
        weights = shares.to(rows.dtype).unsqueeze(1)
        mixed = weights * rows[first] + (1 - weights) * rows[second]
        return torch.cat([rows, mixed]), torch.cat([torch.arange(len(rows), device=rows.device), first])
