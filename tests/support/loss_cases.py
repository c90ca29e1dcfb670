"""The losses of the contract's tests, and their batches. A new loss joins by one more entry in `CASES`."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from losses import (
    AntiCollapseLoss,
    CCPLoss,
    CenterContrastiveLoss,
    ContextualLoss,
    HISTLoss,
    MeanFieldClassWiseMultiSimilarityLoss,
    MeanFieldContrastiveLoss,
    MemVirLoss,
    NIRLoss,
    NONLLoss,
    NTCELoss,
    PotentialFieldLoss,
    ProxyAnchorLoss,
    ProxyANLoss,
    ProxyGMLLoss,
    ProxyISALoss,
    ProxyNCALoss,
    RecallAtKLoss,
    RoadmapLoss,
    SoftTripleLoss,
    XBMLoss,
)

C, D, B = 5, 8, 12


def _proxies(loss: nn.Module) -> Tensor:
    return loss.proxies.data


@dataclass(frozen=True)
class LossCase:
    """One loss and what it promises beyond `loss(embeddings, labels)`.

    make: `make(num_classes, embedding_size, **kwargs)`, small settings, every switch on from the first call.
    proxies: the learned rows that stand for classes, (rows, d), writable in place; None if there are none.
    keywords: PML's keywords (`reducer`, `distance`, regularizers) are accepted.
    divisors: the sub-losses bring the divisors that `DivisorReducer` asks for.
    mined: `indices_tuple` weighs the samples as PML's proxy losses do.
    smooth: differentiable in embeddings and parameters wherever no selection flips.
    classes: labels have to lie in 0..C-1.
    positive: there is no batch with a loss below 0.
    sized: it knows the number of dimensions.
    alone: a batch of a single sample, and one of a single class, have a loss above 0.
    distances: another similarity of PML can take the place of the cosine.
    """

    name: str
    make: Callable[..., nn.Module]
    proxies: Callable[[nn.Module], Tensor] | None = _proxies
    keywords: bool = True
    divisors: bool = False
    mined: bool = True
    smooth: bool = True
    classes: bool = True
    positive: bool = True
    alone: bool = True
    sized: bool = True
    distances: bool = True


class _FilteringISA(ProxyISALoss):
    """Proxy-ISA whose filter starts after two batches of 12; before, it would keep all classes out of the memory."""

    def compute_loss(self, *args: Any) -> Any:
        if self.training and self.counts.sum() >= 24:
            self.start_filter()
        return super().compute_loss(*args)


def _isa(num_classes: int, embedding_size: int, **kwargs: Any) -> ProxyISALoss:
    loss = _FilteringISA(num_classes, embedding_size, **{"memory_size": 50, "V": 20, "h": 0.5} | kwargs)
    loss.start_memory()
    return loss


def _gml(num_classes: int, embedding_size: int, **kwargs: Any) -> ProxyGMLLoss:
    return ProxyGMLLoss(num_classes, embedding_size, **{"proxies_per_class": 3, "r": 0.6} | kwargs)


def _gml_plain(num_classes: int, embedding_size: int, **kwargs: Any) -> ProxyGMLLoss:
    return _gml(num_classes, embedding_size, reg_weight=0.0, positive_mask=False, masked_softmax=False, **kwargs)


def _soft_triple(num_classes: int, embedding_size: int, **kwargs: Any) -> SoftTripleLoss:
    return SoftTripleLoss(num_classes, embedding_size, centers_per_class=3, **kwargs)


def _centers(loss: nn.Module) -> Tensor:
    return loss.fc.data.t()


def _nca(variant: str) -> Callable[..., ProxyNCALoss]:
    return lambda num_classes, embedding_size, **kwargs: ProxyNCALoss(num_classes, embedding_size, variant, **kwargs)


def _xbm(base: str, **params: Any) -> Callable[..., XBMLoss]:
    settings = {"base": base, "memory_size": 50, "start_iteration": 2, **params}
    return lambda num_classes, embedding_size: XBMLoss.from_card(embedding_size=embedding_size, **settings)


def _nir(base: str) -> Callable[..., NIRLoss]:
    # Plain gradient descent, which the contract trains with, explodes on exponentials; softplus is the tame choice.
    settings = {"base_loss": base, "n_blocks": 2, "depth": 2, "width": 8, "omega": 1.0, "sigma": "softplus"}
    return lambda num_classes, embedding_size: NIRLoss.from_card(
        num_classes=num_classes, embedding_size=embedding_size, **settings
    )


def _memvir(base: str, **params: Any) -> Callable[..., MemVirLoss]:
    settings = {"base": base, "batch_size": 64, "steps": 2, "gap": 1, **params}
    return lambda num_classes, embedding_size: MemVirLoss.from_card(
        num_classes=num_classes, embedding_size=embedding_size, **settings
    )


def _base_proxies(loss: nn.Module) -> Tensor:
    return _proxies(loss.base_loss)


def _ccp(base: str) -> Callable[..., CCPLoss]:
    return lambda num_classes, embedding_size: CCPLoss.from_card(
        base=base, num_classes=num_classes, embedding_size=embedding_size, proxies_per_class=2
    )


def _ccp_proxies(loss: nn.Module) -> Tensor:
    """Class by class, as the other losses have them."""
    return loss.proxies.data.view(loss.proxies_per_class, loss.num_classes, -1).transpose(0, 1)


def _mean_field_ms(num_classes: int, embedding_size: int, **kwargs: Any) -> MeanFieldClassWiseMultiSimilarityLoss:
    settings: dict[str, Any] = {"alpha": 2.0, "beta": 10.0, "base": 0.5, "reg_weight": 0.1}
    return MeanFieldClassWiseMultiSimilarityLoss(num_classes, embedding_size, **settings | kwargs)


def _nonl(negatives: str) -> Callable[..., NONLLoss]:
    return lambda num_classes, embedding_size, **kwargs: NONLLoss(
        num_classes, embedding_size, negatives=negatives, **kwargs
    )


def _anti_collapse(form: str) -> Callable[..., AntiCollapseLoss]:
    settings: dict[str, Any] = {"form": form, "alpha": 16.0, "gamma2": 0.2, "base_weight": 1.0}
    return lambda num_classes, embedding_size: AntiCollapseLoss.from_card(
        num_classes=num_classes, embedding_size=embedding_size, **settings
    )


def _potential_field(num_classes: int, embedding_size: int, **kwargs: Any) -> PotentialFieldLoss:
    # Normal proxies of seed 0 would coincide with the samples of `batch`, where only a floor bounds repulsion.
    settings = {"proxies_per_class": 2, "delta": 0.9, "reduction": "mean", "weight_init_func": nn.init.orthogonal_}
    return PotentialFieldLoss(num_classes, embedding_size, **settings | kwargs)


def _hist(num_classes: int, embedding_size: int, **kwargs: Any) -> HISTLoss:
    return HISTLoss(num_classes, embedding_size, hidden=16, **kwargs)


def _contextual_head(num_classes: int, embedding_size: int, **kwargs: Any) -> ContextualLoss:
    return ContextualLoss(embedding_size=embedding_size, head_size=16, **kwargs)


def _ranking(loss_class: Callable[..., nn.Module], **settings: Any) -> Callable[..., nn.Module]:
    return lambda num_classes, embedding_size, **kwargs: loss_class(**settings, **kwargs)


_OF_RANKS: dict[str, Any] = dict.fromkeys(("mined", "classes", "alone", "sized"), False) | {"proxies": None}


def _wrapped(name: str, make: Callable[..., nn.Module], **promised: Any) -> LossCase:
    """Losses that hold another one and take no keywords of PML themselves."""
    return LossCase(name, make, keywords=False, **promised)


CASES = [
    LossCase("proxy_anchor", ProxyAnchorLoss, divisors=True),
    LossCase("proxy_isa", _isa, divisors=True),
    LossCase("proxy_gml", _gml),
    LossCase("proxy_gml_plain", _gml_plain),
    LossCase("soft_triple", _soft_triple, proxies=_centers, distances=False),
    LossCase("proxy_nca_prob", _nca("prob")),
    LossCase("proxy_nca_classic", _nca("classic"), positive=False),
    LossCase("proxy_nca_anchor_form", _nca("anchor_form")),
    LossCase("recall_at_k", _ranking(RecallAtKLoss, rank_temperature=0.1), **_OF_RANKS),
    LossCase("roadmap", _ranking(RoadmapLoss, tau=0.1), **_OF_RANKS),
    LossCase("contextual", _ranking(ContextualLoss), **_OF_RANKS | {"smooth": False}),
    LossCase("contextual_head", _contextual_head, **_OF_RANKS | {"smooth": False, "sized": True, "distances": False}),
    LossCase("hist", _hist, distances=False),
    LossCase("mean_field_contrastive", partial(MeanFieldContrastiveLoss, neg_margin=0.9, reg_weight=0.1)),
    LossCase("mean_field_multi_similarity", _mean_field_ms, mined=False),
    LossCase("potential_field", _potential_field, mined=False, positive=False, alone=False, distances=False),
    LossCase("proxy_an", ProxyANLoss, divisors=True),
    # A batch of one sample is its own denominator, or has no negatives.
    LossCase("ntce", NTCELoss, alone=False),
    *(
        LossCase(f"nonl_{negatives}", _nonl(negatives), divisors=True, positive=False, alone=False)
        for negatives in ("images", "proxies", "both")
    ),
    LossCase("center_contrastive", CenterContrastiveLoss, positive=False, alone=False),
    *(
        _wrapped(f"anti_collapse_{form}", _anti_collapse(form), proxies=_base_proxies)
        for form in ("batch_proxy", "pair")
    ),
    # An untrained flow does not prefer the proxies' own place; SoftTriple's assignment is a constant of the condition.
    _wrapped("nir_proxy_anchor", _nir("proxy_anchor"), proxies=None),
    _wrapped("nir_proxy_nca", _nir("proxy_nca"), proxies=None),
    _wrapped("nir_soft_triple", _nir("soft_triple"), proxies=None, smooth=False),
    _wrapped("memvir_proxy_anchor", _memvir("proxy_anchor"), proxies=_base_proxies, mined=False),
    _wrapped("memvir_proxy_nca", _memvir("proxy_nca"), proxies=_base_proxies, mined=False),
    _wrapped("xbm_c1", _xbm("c1"), proxies=None, mined=False, classes=False),
    _wrapped("xbm_c2", _xbm("c2", neg_margin=1.6), proxies=None, mined=False, classes=False),
    *(_wrapped(f"ccp_{base}", _ccp(base), proxies=_ccp_proxies, mined=False) for base in ("c1", "c2", "ms", "triplet")),
]


def cases(**promised: Any) -> pytest.MarkDecorator:
    """Run a test with each loss that promises this."""
    chosen = [case for case in CASES if all(getattr(case, key) == value for key, value in promised.items())]
    return pytest.mark.parametrize("case", chosen, ids=lambda case: case.name)


def batch(seed=0, size=B, num_classes=C, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(size, D, generator=generator, dtype=dtype)
    labels = torch.randint(num_classes, (size,), generator=generator)
    return embeddings, labels


def made(case: LossCase, num_classes=C, seed=0, steps=3, dtype=torch.float32, **kwargs):
    """A loss a few steps into a training, so that state, if there is any, is not blank."""
    torch.manual_seed(seed)
    loss = case.make(num_classes, D, **kwargs).to(dtype)
    train(loss, range(steps), num_classes, dtype)
    return loss


def train(loss, seeds, num_classes=C, dtype=torch.float32):
    values = []
    for seed in seeds:
        embeddings, labels = batch(100 + seed, num_classes=num_classes, dtype=dtype)
        loss.zero_grad()
        value = loss(embeddings.requires_grad_(), labels)
        value.backward()
        with torch.no_grad():
            for parameter in loss.parameters():
                parameter.sub_(parameter.grad, alpha=0.05)
        values.append(value.detach())
    return values


def value_of(loss, *args):
    """The loss of a call that leaves `loss` as it was."""
    return copy.deepcopy(loss)(*args)


def assert_same_state(first, second):
    assert first.state_dict().keys() == second.state_dict().keys()
    for key, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[key]), key


def with_finite_gradients(loss, embeddings, labels):
    embeddings = embeddings.clone().requires_grad_()
    value = loss(embeddings, labels)
    value.backward()
    assert value.isfinite()
    assert embeddings.grad.isfinite().all()
    for name, parameter in loss.named_parameters():
        assert parameter.grad.isfinite().all(), name
    return value.detach()
