"""Anti-collapse: a base loss, and a term that keeps proxies or embeddings spread out."""

from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot

from .base import MetricLoss, already_reduced, checked_labels, log_one_plus_sum, of_classes, require_one_of
from .plugin import PluginWrapper, require_proxies
from .proxy_anchor import ProxyAnchorLoss

AntiCollapseForm = Literal["batch_proxy", "all_proxy", "pair"]
RateRatio = Literal["code", "textbook"]


class SampleAnchorLoss(ProxyAnchorLoss):
    """Proxy-Anchor in which each sample brings the attraction of its class, as in the code of anti-collapse.

    With S_ic the cosine between sample i and the proxy of class c and L0(A) = log(1 + sum of exp over A)::

        loss = 1/B sum_j L0({-alpha (S_i,y_j - margin) : y_i = y_j}) + 1/C sum_c L0({alpha (S_ic + margin) : y_i != c})

    Proxy-Anchor has the mean over the classes of the batch in the first term. Both agree if every class has as many
    samples.

    Args:
        num_classes: C.
        embedding_size: d.
        margin: delta, in cosine units; default 0.1.
        alpha: sharpness; default 64.
        neg_margin: margin of the second term; default None, which is `margin`.
        neg_alpha: sharpness of the second term; default None, which is `alpha`.
        **kwargs: those of `ProxyAnchorLoss`, but proxies start at N(0, 1) / 8, as in the authors' code.

    Source: Jiang et al., Anti-Collapse Loss for Deep Metric Learning, IEEE TMM 2024.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        margin: float = 0.1,
        alpha: float = 64.0,
        neg_margin: float | None = None,
        neg_alpha: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, embedding_size, margin, alpha, **kwargs)
        self.neg_margin = margin if neg_margin is None else neg_margin
        self.neg_alpha = alpha if neg_alpha is None else neg_alpha

    def default_weight_init(self, weight: Tensor) -> None:
        """Start the proxies in place: normal with standard deviation 1/8."""
        nn.init.normal_(weight, std=0.125)

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-losses (C,) for embeddings (B, d) and labels (B,)."""
        terms = super().compute_loss(embeddings, labels, indices_tuple)
        own_class = one_hot(labels.long(), self.num_classes)
        terms["pos_loss"] = of_classes(own_class.sum(0) * terms["pos_loss"]["losses"], len(labels))
        if (self.neg_margin, self.neg_alpha) != (self.margin, self.alpha):
            push = self.neg_alpha * (self.get_logits(embeddings) + self.neg_margin)
            terms["neg_loss"] = of_classes(log_one_plus_sum(push, ~own_class.bool()), self.num_classes)
        return terms


class AntiCollapseLoss(PluginWrapper, MetricLoss):
    """A base loss plus a term that falls with the coding rate of proxies or embeddings.

    With a matrix Z of n rows in d dimensions and the factor a::

        R = 1/2 log det(I + a Z Z'),    L = base_weight L_base + weight exp(-gamma2 R)

        batch_proxy   Z: unit proxies of the classes in the batch     a = gamma1 n / (d eps)
        all_proxy     Z: all unit proxies                             a = gamma1 n / (d eps)
        pair          Z: the embeddings of the batch                  a = gamma1 d / (n eps)

    The coding rate of the literature has d / (n eps) throughout; the authors' code has it upside down for proxies
    (`ratio="textbook"` is that of the literature). With spread-out rows the term switches itself off: exp(-R) falls
    with the number of rows, so that `all_proxy` and `pair` train with the base loss alone unless gamma2 is small.

    A card may name the base loss: `sample_anchor` (`SampleAnchorLoss`, as in the authors' code) or `proxy_anchor`.
    Without a name it is `sample_anchor`.

    Args:
        base_loss: L_base; with `proxies` (C, d), one for each class, unless the form is `pair`.
        embedding_size: d.
        form: which rows; default `batch_proxy`, as in all commands of the authors.
        eps: default 0.5.
        gamma1: default 1.
        gamma2: default 1.
        weight: of the term; default 1.
        base_weight: of L_base; default 0.0035, as in the authors' commands.
        ratio: `code` or `textbook`; default `code`.
        normalize_rows: for `pair`, whether the embeddings count as unit vectors. The authors' code takes them as they
            come, from a network that normalises. Default True.
        **kwargs: PML's `reducer`, `embedding_regularizer`, `embedding_reg_weight` and `collect_stats`.

    Raises:
        ValueError: for an unknown name, a number that is not positive, a base loss that is not built or has no proxies
            for the form, and every batch that `checked_labels` refuses.

    Source: Jiang et al., Anti-Collapse Loss for Deep Metric Learning, IEEE TMM 2024, written from its equations and
    settings.
    """

    sub_losses = ("base_loss", "rate_loss")
    named_bases = MappingProxyType({"sample_anchor": SampleAnchorLoss, "proxy_anchor": ProxyAnchorLoss})
    default_base = "sample_anchor"

    def __init__(
        self,
        base_loss: nn.Module,
        embedding_size: int,
        form: AntiCollapseForm = "batch_proxy",
        eps: float = 0.5,
        gamma1: float = 1.0,
        gamma2: float = 1.0,
        weight: float = 1.0,
        base_weight: float = 0.0035,
        *,
        ratio: RateRatio = "code",
        normalize_rows: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(base_loss, **kwargs)
        require_one_of(AntiCollapseForm, "form", form)
        require_one_of(RateRatio, "ratio", ratio)
        if min(eps, gamma1, gamma2) <= 0:
            raise ValueError(f"eps, gamma1 and gamma2 must be positive, got {eps}, {gamma1} and {gamma2}")
        if form != "pair":
            require_proxies(AntiCollapseLoss, base_loss, embedding_size)
        self.embedding_size, self.form, self.ratio, self.normalize_rows = embedding_size, form, ratio, normalize_rows
        self.eps, self.gamma1, self.gamma2 = eps, gamma1, gamma2
        self.weight, self.base_weight = weight, base_weight

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the weighted sub-losses `base_loss` and `rate_loss`, both already reduced."""
        classes = getattr(self.base_loss, "num_classes", None)
        labels = checked_labels(embeddings, labels, classes, self.embedding_size)
        return already_reduced(
            base_loss=self.base_weight * self.base_loss(embeddings, labels, indices_tuple),
            rate_loss=self.weight * (-self.gamma2 * self.rate(embeddings, labels)).exp(),
        )

    def rate(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """R of a batch, in nats."""
        if self.form == "pair":
            rows = normalize(embeddings, dim=1) if self.normalize_rows else embeddings
        else:
            base: Any = self.base_loss
            proxies = base.proxies if self.form == "all_proxy" else base.proxies[labels.unique()]
            rows = normalize(proxies.to(embeddings.dtype), dim=1)
        count, size = rows.shape
        upside_down = self.form != "pair" and self.ratio == "code"
        factor = self.gamma1 / self.eps * (count / size if upside_down else size / count)
        # Both products have the same determinant here.
        gram = rows @ rows.T if count <= size else rows.T @ rows
        identity = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        rate: Tensor = 0.5 * torch.linalg.slogdet(identity + factor * gram).logabsdet
        return rate
