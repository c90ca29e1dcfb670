"""The table of `docs/losses_elsewhere.md` that compares the losses with those of pytorch-metric-learning (PML)."""

import math

import pytest
import torch
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning import miners
from pytorch_metric_learning.regularizers import SparseCentersRegularizer, ZeroMeanRegularizer
from torch.nn import functional

import losses
from losses import ProxyNCALoss, SignalToNoiseRatioContrastiveLoss, SoftTripleLoss
from losses.bridge import THREE

C, D, B = 6, 8, 24
LABELS = torch.arange(B) % C
MINED = (torch.tensor([0, 1]), torch.tensor([6, 7]), torch.tensor([1, 1]), torch.tensor([2, 3]))

PROXIES = {"num_classes": C, "embedding_size": D}
EQUAL = {
    "ProxyAnchorLoss": PROXIES,
    "ArcFaceLoss": PROXIES,
    "SubCenterArcFaceLoss": PROXIES,
    "CosFaceLoss": PROXIES,
    "SoftTripleLoss": PROXIES,
    **({} if THREE else {"P2SGradLoss": {"num_classes": C, "descriptors_dim": D}}),
    "TupletMarginLoss": {},
    "HistogramLoss": {"n_bins": 30},
    "NCALoss": {"softmax_scale": 3.0},
    "NTXentLoss": {"temperature": 0.5},
    "SignalToNoiseRatioContrastiveLoss": {"pos_margin": 0.1, "neg_margin": 1.5},
}
"""PML's classes with equal value and gradient, in version 2.9 with an equal start too, and their settings."""
THEIRS = {"margin": math.radians(28.6)} if THREE else {}
"""What ArcFace's classes of PML get beside."""


def batch(seed=0):
    return torch.randn(B, D, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def pair(name):
    """Our loss and PML's, each from the same seed."""
    torch.manual_seed(1)
    ours = getattr(losses, name)(**EQUAL[name], **({"tau": 0.0} if name == "SoftTripleLoss" else {}))
    torch.manual_seed(1)
    theirs = getattr(pml, name)(**EQUAL[name], **(THEIRS if "ArcFace" in name else {}))
    if THREE:  # Its vectors of classes are rows, so that the same seed gives others.
        start_alike(ours, theirs)
    return ours, theirs


def rows_of(tensors):
    """Vectors of classes as rows."""
    return [tensor if tensor.shape[-1] == D else tensor.t() for tensor in tensors]


@torch.no_grad()
def start_alike(ours, theirs):
    for own, other in zip(rows_of(ours.parameters()), rows_of(theirs.parameters()), strict=True):
        other.copy_(own)


def assert_same(ours, theirs, labels=LABELS, pairs=None):
    x = batch()
    results = []
    for loss in (ours, theirs):
        value = loss(x, labels, pairs)
        results.append([value, *rows_of(torch.autograd.grad(value, [x, *loss.parameters()]))])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", EQUAL)
def test_start_value_and_gradient(name):
    ours, theirs = pair(name)
    torch.testing.assert_close(rows_of(ours.parameters()), rows_of(theirs.parameters()))
    assert_same(ours, theirs)
    if name in ("ProxyAnchorLoss", "SoftTripleLoss"):
        torch.testing.assert_close(ours.get_logits(batch()), theirs.get_logits(batch()))


@pytest.mark.parametrize("name", ["ArcFaceLoss", "SoftTripleLoss"])
def test_what_a_miner_found_weighs_the_samples(name):
    assert_same(*pair(name), pairs=MINED)


def test_the_weight_of_a_sample_in_proxy_anchor_is_in_its_exponent():
    """Version 3 multiplies the exponential by it, so that a sample that no miner found has no part in the loss."""
    ours, theirs = pair("ProxyAnchorLoss")
    if THREE:
        assert not torch.isclose(ours(batch(), LABELS, MINED), theirs(batch(), LABELS, MINED))
    else:
        assert_same(ours, theirs, pairs=MINED)


def test_proxy_nca():
    ours, theirs = ProxyNCALoss(C, D, softmax_scale=1.0), pml.ProxyNCALoss(C, D)
    start_alike(ours, theirs)
    assert_same(ours, theirs)
    # Version 2.9 weighs the anchors alone, so it agrees where every sample of a pair is an anchor as often.
    if not THREE:
        assert not torch.isclose(ours(batch(), LABELS, MINED), theirs(batch(), LABELS, MINED))
    anchors = torch.tensor([0, 6, 1, 7])
    assert_same(ours, theirs, pairs=(anchors, anchors.flip(0), anchors, anchors.flip(0)))
    x = functional.normalize(batch(), dim=1)
    torch.testing.assert_close(2 - 2 * ours.get_logits(x), theirs.get_logits(x))


def test_soft_triples_tau_is_pmls_regularizer():
    torch.manual_seed(1)
    ours = SoftTripleLoss(C, D, tau=0.2)
    regularizer = SparseCentersRegularizer(C, 10)
    theirs = pml.SoftTripleLoss(C, D, weight_regularizer=regularizer, weight_reg_weight=0.2)
    start_alike(ours, theirs)
    torch.testing.assert_close(ours(batch(), LABELS), theirs(batch(), LABELS), rtol=1e-4, atol=1e-5)


def test_snr_regularises_unit_vectors():
    given = {"embedding_regularizer": ZeroMeanRegularizer(), "embedding_reg_weight": 0.5}
    ours, theirs = SignalToNoiseRatioContrastiveLoss(**given), pml.SignalToNoiseRatioContrastiveLoss(**given)
    unit = functional.normalize(batch(), dim=1)
    torch.testing.assert_close(ours(unit, LABELS), theirs(unit, LABELS))
    torch.testing.assert_close(ours(5 * unit, LABELS), ours(unit, LABELS))
    assert theirs(5 * unit, LABELS) > theirs(unit, LABELS)


def test_the_floor_of_ntxent_and_the_miner():
    apart = torch.tensor([[1.0, 0], [-1, 0], [1, 0], [-1, 0]])
    labels = torch.tensor([0, 0, 1, 1])  # Each positive is opposite, each negative equal.
    assert losses.NTXentLoss(0.01)(apart, labels) == pytest.approx(46.05, abs=0.01)
    assert pml.NTXentLoss(0.01)(apart, labels) == pytest.approx(200 if THREE else 87.34, abs=0.01)
    # A sample is a positive of its own, so one without another positive gets its negatives.
    three, found = torch.tensor([0, 0, 1]), []
    for miner in (losses.MultiSimilarityMiner, miners.MultiSimilarityMiner):
        anchors, _, others, _ = miner(epsilon=1.1)(torch.eye(3), three)
        found.append((anchors.tolist(), others.tolist()))
    assert found == [([0, 0, 1, 1, 2], [0, 1, 2, 2]), ([0, 1], [0, 1])]


def test_the_memory_term_of_xbm_is_pmls_memory():
    base = pml.MultiSimilarityLoss()
    xbm = losses.XBMLoss(base, D, 2 * B, start_iteration=0)
    memory = pml.CrossBatchMemory(base, D, 2 * B)
    for seed in range(4):
        x = functional.normalize(batch(seed), dim=1)
        torch.testing.assert_close(xbm(x, LABELS) - base(x, LABELS), memory(x, LABELS))
    assert pml.CrossBatchMemory(SignalToNoiseRatioContrastiveLoss(), D, B)(batch(), LABELS).isfinite()
    if not THREE:
        for refused in (losses.CosineContrastiveLoss(), losses.ProxyAnchorLoss(C, D)):
            with pytest.raises(Exception, match="CrossBatchMemory not supported for"):
                pml.CrossBatchMemory(refused, D)
