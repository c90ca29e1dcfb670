"""Mean field losses: pair losses in which the mean field of a class, one vector, takes the place of its samples."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from .base import ProxyLoss, already_reduced, checked_labels, of_samples, require_one_of
from .mined import refuse_mined

Averaging = Literal["samples", "classes"]


class _MeanField(ProxyLoss):
    """One mean field per class, in `proxies` (C, d), and a regulariser that drives those of two classes apart."""

    def __init__(
        self, num_classes: int, embedding_size: int, reg_weight: float, power: float, names: tuple[str, ...], **kw: Any
    ) -> None:
        self.reg_weight, self.power = reg_weight, power
        # PML's constructor asks for the names.
        self.sub_losses = (*names, "reg_loss") if reg_weight else names
        super().__init__(num_classes, embedding_size, **kw)
        if power < 1 or reg_weight < 0:
            raise ValueError(f"power must be at least 1 and reg_weight at least 0, got {power} and {reg_weight}")

    def default_weight_init(self, weight: Tensor) -> None:
        """Start the mean fields in place: normal with variance 1."""
        nn.init.normal_(weight)

    def repulsion(self, similarity: Tensor) -> Tensor:
        """What two mean fields of this similarity add to the regulariser before the power, elementwise."""
        raise NotImplementedError

    def _with_regularizer(self, terms: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
        if self.reg_weight:
            proxies = self.proxies.to(dtype)
            repelled = self.repulsion(self.distance(proxies, proxies)).pow(self.power)
            others = ~torch.eye(self.num_classes, dtype=torch.bool, device=proxies.device)
            terms |= already_reduced(
                reg_loss=self.reg_weight / self.num_classes * torch.where(others, repelled, 0.0).sum()
            )
        return terms


class MeanFieldContrastiveLoss(_MeanField):
    """Contrastive loss between samples and the mean fields of all classes.

    With s_ic the cosine between sample i and the mean field of class c, and S_cd that between two mean fields::

        L_i = [1 - s_iy - pos_margin]_+ + sum_{c != y} [neg_margin - (1 - s_ic)]_+
        L   = mean_i L_i + reg_weight / C sum_c sum_{d != c} [neg_margin - (1 - S_cd)]_+^power

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-losses `loss` (B,) and, with reg_weight > 0,
    `reg_loss` (scalar). `indices_tuple` weights the samples. The mean fields are `proxies` (C, d).

    Args:
        num_classes: C.
        embedding_size: d.
        pos_margin: largest distance, 1 - cosine, to the own mean field that costs nothing; default 0.02.
        neg_margin: smallest distance to another one that costs nothing; default 0.3. The regulariser uses it too.
        reg_weight: lambda; default 0. The authors' code has no default and no published value.
        power: of the regulariser, at least 1; default 2.
        averaging: `samples`, the mean over the batch, as in the authors' code. `classes`: the mean within each class of
            the batch, and then over these classes, as their article defines the loss that this one is derived from.
            They agree if every class has as many samples. Default `samples`.
        **kwargs: PML's `distance` (a similarity; default cosine), `reducer` (default `MeanReducer`),
            `weight_init_func` (default normal with variance 1), `weight_regularizer`, `embedding_regularizer` and their
            weights.

    Raises:
        ValueError: for a setting out of range, a distance that is not a similarity, and every batch that
            `checked_labels` refuses.

    Source: Furusawa, Mean Field Theory in Deep Metric Learning, ICLR 2024, as in the authors' code
    (st-tech/mft-in-dml).
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        pos_margin: float = 0.02,
        neg_margin: float = 0.3,
        reg_weight: float = 0.0,
        power: float = 2.0,
        *,
        averaging: Averaging = "samples",
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, embedding_size, reg_weight, power, ("loss",), **kwargs)
        require_one_of(Averaging, "averaging", averaging)
        self.pos_margin, self.neg_margin, self.averaging = pos_margin, neg_margin, averaging

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-loss `loss` (B,) and the regulariser."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        similarity = self.get_logits(embeddings)
        own_class = one_hot(labels, self.num_classes).bool()
        pull = (1 - similarity - self.pos_margin).relu()
        losses = torch.where(own_class, pull, self.repulsion(similarity)).sum(1)
        if self.averaging == "classes":
            sizes = own_class.sum(0)
            losses = losses * len(labels) / ((sizes > 0).sum() * sizes[labels])
        return self._with_regularizer({"loss": of_samples(losses, labels, indices_tuple)}, embeddings.dtype)

    def repulsion(self, similarity: Tensor) -> Tensor:
        """`[neg_margin - (1 - s)]_+`."""
        return (self.neg_margin - 1 + similarity).relu()


class MeanFieldClassWiseMultiSimilarityLoss(_MeanField):
    """Multi-similarity of classes: how the samples of two classes lie to each other's mean fields.

    With s_ic the cosine between sample i and the mean field of class c, S_cd that between two mean fields, K classes in
    the batch and n_c samples of class c in it::

        P_c  = 1/n_c sum_{i in c} exp(alpha (base - s_ic))
        A_cd = 1/n_c sum_{i in c} exp(beta (s_id - base)),    0 for a class c outside the batch
        L    = 1/(alpha K) sum_c log(1 + P_c) + 1/(2 beta K) sum_{c != d} log(1 + A_cd + A_dc)
             + reg_weight / C sum_{c != d} (1/beta log(1 + exp(beta (S_cd - base))))^power

    The first sum is over the classes of the batch, the other two over all ordered pairs of classes. All is computed in
    log space: the authors' code overflows where `beta (1 - base)` is above 88. With the published alpha, 0.01, the
    first term is near 69 and its gradient nearly that of half the mean distance within a class.

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-losses `pos_loss`, `neg_loss` and, with
    reg_weight > 0, `reg_loss` (scalars). The mean fields are `proxies` (C, d).

    Args:
        num_classes: C.
        embedding_size: d.
        alpha: sharpness of the first term; default 0.01.
        beta: sharpness of the other terms; None means alpha. Default 80.
        base: cosine from which on samples count as near; default 0.8.
        reg_weight: lambda; default 0, as in every published command.
        power: of the regulariser, at least 1; default 2.
        **kwargs: those of `MeanFieldContrastiveLoss`.

    Raises:
        ValueError: for a setting out of range, a distance that is not a similarity, pairs of a miner, and every batch
            that `checked_labels` refuses.

    Source: as for `MeanFieldContrastiveLoss`.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        alpha: float = 0.01,
        beta: float | None = 80.0,
        base: float = 0.8,
        reg_weight: float = 0.0,
        power: float = 2.0,
        **kwargs: Any,
    ) -> None:
        self.alpha, self.beta, self.base = alpha, alpha if beta is None else beta, base
        super().__init__(num_classes, embedding_size, reg_weight, power, ("pos_loss", "neg_loss"), **kwargs)
        if min(self.alpha, self.beta) <= 0:
            raise ValueError(f"alpha and beta must be positive, got {alpha} and {beta}")

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-losses `pos_loss` and `neg_loss` and the regulariser, already reduced."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        refuse_mined(indices_tuple)
        similarity = self.get_logits(embeddings)
        classes, codes = labels.unique(return_inverse=True)
        own = similarity.gather(1, labels.unsqueeze(1))
        positive = _log_means(self.alpha * (self.base - own), codes, len(classes))
        negative = _log_means(self.beta * (similarity - self.base), codes, len(classes))
        between = negative[:, classes]
        same = torch.eye(len(classes), dtype=torch.bool, device=labels.device)
        pairs = _log_one_plus(torch.logaddexp(between, between.T).masked_fill(same, -torch.inf)).sum()
        # Pairs with a class outside the batch count twice and have one term.
        outside = _log_one_plus(negative.index_fill(1, classes, -torch.inf)).sum()
        terms = already_reduced(
            pos_loss=_log_one_plus(positive).sum() / (self.alpha * len(classes)),
            neg_loss=(pairs + 2 * outside) / (2 * self.beta * len(classes)),
        )
        return self._with_regularizer(terms, embeddings.dtype)

    def repulsion(self, similarity: Tensor) -> Tensor:
        """`1/beta log(1 + exp(beta (S - base)))`."""
        return _log_one_plus(self.beta * (similarity - self.base)) / self.beta


def _log_means(exponents: Tensor, codes: Tensor, count: int) -> Tensor:
    """The logarithm (K, n) of the mean of `exp` over the rows of each class, from rows (B, n) and classes (B,)."""
    place = codes.unsqueeze(1).expand_as(exponents)
    largest = exponents.detach().new_full((count, exponents.shape[1]), -torch.inf)
    largest = largest.scatter_reduce(0, place, exponents.detach(), "amax")
    sums = torch.zeros_like(largest).index_add(0, codes, (exponents - largest[codes]).exp())
    sizes = torch.zeros_like(largest[:, :1]).index_add(0, codes, torch.ones_like(exponents[:, :1]))
    return sums.log() + largest - sizes.log()


def _log_one_plus(exponents: Tensor) -> Tensor:
    """`log(1 + exp x)`, elementwise. torch's softplus is the identity above 20."""
    return torch.logaddexp(exponents, torch.zeros_like(exponents))
