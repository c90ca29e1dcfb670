"""A wrapper takes every pair loss that can compare a batch with other rows, and refuses the others when it is made."""

import inspect
import warnings

import pytest
import torch
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance
from torch import nn

from losses import CCPLoss, CosineContrastiveLoss, SignalToNoiseRatioContrastiveLoss, XBMLoss
from losses.bridge import THREE

C, D, MEMORY = 4, 8, 40
_SIZES = {"num_classes": C, "embedding_size": D, "descriptors_dim": D, "n_bins": 10, "l": D, "margin": 0.1, "Tn": 1.0}
_ABSTRACT = {"BaseMetricLossFunction", "BaseProxyLoss", "GenericPairLoss", "WeightMixin", "MultipleLosses"}
_AROUND_LOSSES = {"BaseLossWrapper", "CrossBatchMemory", "SelfSupervisedLoss"}


def _of_pml(cls):
    def make():
        missing = [p.name for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
        names = {key: _SIZES[key] for key in missing if key in _SIZES}
        return cls(**names) if cls.__name__ not in _WITH_PROXIES else cls(num_classes=C, embedding_size=D)

    return make


_WITH_PROXIES = {"ArcFaceLoss", "CosFaceLoss", "NormalizedSoftmaxLoss", "ProxyNCALoss", "ProxyAnchorLoss"} | {
    "SoftTripleLoss",
    "SphereFaceLoss",
    "SubCenterArcFaceLoss",
    "LargeMarginSoftmaxLoss",
}
LOSSES = {
    name: _of_pml(cls)
    for name, cls in vars(pml).items()
    if name in getattr(pml, "__all__", vars(pml))
    and inspect.isclass(cls)
    and issubclass(cls, nn.Module)
    and name not in _ABSTRACT | _AROUND_LOSSES
}
LOSSES |= {
    "triplet with swap": lambda: pml.TripletMarginLoss(swap=True),
    "smooth triplet": lambda: pml.TripletMarginLoss(smooth_loss=True),
    "three triplets per anchor": lambda: pml.TripletMarginLoss(triplets_per_anchor=3),
    "margin per class": lambda: pml.MarginLoss(num_classes=C, learn_beta=True),
    "cosine contrastive": CosineContrastiveLoss,
    "signal to noise": SignalToNoiseRatioContrastiveLoss,
    "plain distance": lambda: pml.TripletMarginLoss(distance=LpDistance(normalize_embeddings=False)),
    "plain cosine": lambda: pml.ContrastiveLoss(0.9, 0.4, distance=CosineSimilarity()),
}
WRONG = {"triplet with swap", "ThresholdConsistentMarginLoss", "LiftedStructureLoss", "DynamicSoftMarginLoss"}
"""They take `ref_emb`, but read rows of the batch at positions of references, or keep the graph of the last step."""


def built(wrapper, name):
    """The wrapper around a loss, or why it refuses the loss."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base = LOSSES[name]()
    try:
        return wrapper(base)
    except ValueError as error:
        return str(error)


def batch(size, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, D, generator=generator).requires_grad_(), torch.arange(size) % C


WRAPPERS = {
    "XBMLoss": lambda base: XBMLoss(base, embedding_size=D, memory_size=MEMORY, start_iteration=0),
    "CCPLoss": lambda base: CCPLoss(base, num_classes=C, embedding_size=D, proxies_per_class=3),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_loss_is_refused_when_the_wrapper_is_made_or_trains(wrapper, name):
    loss = built(WRAPPERS[wrapper], name)
    if isinstance(loss, str):
        assert loss.startswith(f"{wrapper} ")
        assert "\n" not in loss
        return
    for step, size in enumerate((8, 12, 8, 12)):  # More memory than samples, and other numbers in every step.
        embeddings, labels = batch(size, step)
        value = loss(embeddings, labels)
        value.backward()
        assert value.isfinite()
        assert embeddings.grad.isfinite().all()


def test_losses_that_compare_the_wrong_rows_are_refused_and_pair_losses_are_not():
    refused = {name: why for name in LOSSES if isinstance(why := built(WRAPPERS["XBMLoss"], name), str)}
    assert refused.keys() >= WRONG & LOSSES.keys()
    assert "does not compare a batch with other rows" in refused["FastAPLoss"]
    taken = LOSSES.keys() - refused.keys()
    assert THREE or taken >= set(pml.CrossBatchMemory.supported_losses()) - WRONG
    assert taken >= {"smooth triplet", "three triplets per anchor", "margin per class", "cosine contrastive"}
