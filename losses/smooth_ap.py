"""Smooth-AP: average precision with a sigmoid in place of each step (Brown et al., ECCV 2020)."""

from typing import Any

from torch import Tensor

from .base import ByCosine, checked_labels, elements, require_cosine
from .mined import refuse_mined


class SmoothAPLoss(ByCosine):
    """One minus a smooth average precision, with every image of the batch as a query among all.

    With cosines S, the sigmoid s and the images P(q) of the query's class, the query itself among them (eq. 6)::

        R(q, i, X) = 1 + sum_{j in X, j != i} s((S_qj - S_qi) / tau)
        L = mean_q [ 1 - 1/|P(q)| * sum_{i in P(q)} R(q, i, P(q)) / R(q, i, batch) ]

    Classes may have any number of images. pytorch-metric-learning's class of the same name groups the wrong images
    unless a batch comes class by class, and has as many classes as images of each class.

    Args:
        temperature: tau > 0; default 0.01, the authors'.
        **kwargs: those of pytorch-metric-learning's losses; the distance must be `CosineSimilarity`.

    Source: Brown et al., Smooth-AP: Smoothing the Path Towards Large-Scale Image Retrieval, ECCV 2020.
    """

    def __init__(self, temperature: float = 0.01, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not temperature > 0:
            raise ValueError(f"temperature must be positive, got {temperature}")
        require_cosine(self)
        self.temperature = temperature

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """Losses (B,) of the queries; `labels` (B,) may hold any integers."""
        refuse_mined(indices_tuple)
        labels = checked_labels(embeddings, labels)
        similarity = self.distance(embeddings)
        same = labels[:, None] == labels[None]
        # One row for each query and image of its class.
        query, image = same.nonzero(as_tuple=True)
        ahead = smooth_steps(similarity, query, image, self.temperature)
        precision = (1 + (ahead * same[query]).sum(1)) / (1 + ahead.sum(1))
        average = embeddings.new_zeros(len(labels)).index_add(0, query, precision) / same.sum(1)
        return {"loss": elements(1 - average)}


def smooth_steps(similarity: Tensor, queries: Tensor, images: Tensor, temperature: float) -> Tensor:
    """How far each image ranks before a given one, from 0 to 1; 0 for the given one itself.

    Args:
        similarity: (B, R).
        queries: (p,), rows of `similarity`.
        images: (p,), the given image of each.
        temperature: tau > 0, in units of the similarity.

    Returns:
        `sigmoid((s_qj - s_qi) / tau)` for query q, image i and each j, (p, R).
    """
    own = similarity[queries, images].unsqueeze(1)
    return ((similarity[queries] - own) / temperature).sigmoid().scatter(1, images.unsqueeze(1), 0.0)
