"""MLRC's losses and its miner against pytorch-metric-learning 0.9.86, the release of its runs.

The numbers were computed once with that release (its wheel from the package index, torch 2, float64) on the inputs
below: `SignalToNoiseRatioContrastiveLoss(0.2, 0.8, weight)`, `SoftTripleLoss(6, 3, 4, reg_weight=...)` with `fc` from
`rows(6, 12, 0.9)`, `ArcFaceLoss(...)` with `W` from `rows(6, 3, 0.9)`, `NTXentLoss(...)`, and
`MultiSimilarityLoss(2, 40, 0.5)` with `MultiSimilarityMiner(epsilon)`; the loss, the norm of the gradient of the
embeddings, and the norm of that of the loss's own parameter.
"""

import pytest
import torch
from pytorch_metric_learning import losses as pml_losses
from pytorch_metric_learning.regularizers import ZeroMeanRegularizer
from torch import nn
from torch.nn import functional

import losses
from losses import (
    ArcFaceLoss,
    MultiSimilarityMiner,
    NTXentLoss,
    SignalToNoiseRatioContrastiveLoss,
    SoftTripleLoss,
    version_of,
)
from losses.bridge import THREE

LABELS = torch.arange(8) % 3


def rows(count, size, step):
    """Return sines of shape (count, size), which are the same on every machine."""
    return torch.sin(step * torch.arange(1, count * size + 1, dtype=torch.float64)).view(count, size)


def embeddings(norm=5.0):
    return (norm * functional.normalize(rows(8, 6, 1.7), dim=1)).requires_grad_()


def gradient_norms(value, *inputs):
    return [gradient.norm().item() for gradient in torch.autograd.grad(value, inputs)]


# --- SNR Contrastive ---


def signal_to_noise(weight):
    return SignalToNoiseRatioContrastiveLoss(
        pos_margin=0.2,
        neg_margin=0.8,
        embedding_regularizer=ZeroMeanRegularizer() if weight else None,
        embedding_reg_weight=weight,
    )


@pytest.mark.parametrize(
    ("weight", "expected", "expected_norm"),
    [(0.0, 1.1263339936208019, 0.4298484953389171), (0.5, 1.362887981020419, 0.438242144976507)],
)
def test_snr_contrastive_and_its_gradient(weight, expected, expected_norm):
    x = embeddings()
    value = signal_to_noise(weight)(x, LABELS)
    assert value.item() == pytest.approx(expected, rel=1e-9)
    assert gradient_norms(value, x) == pytest.approx([expected_norm], rel=1e-9)


# --- SoftTriple ---


def soft_triple(**settings):
    loss = SoftTripleLoss(3, 6, 4, **settings).double()
    loss.fc.data = rows(6, 12, 0.9)
    return loss


@pytest.mark.parametrize(
    ("tau", "expected", "expected_norms"),
    [
        (0.0, 4.315927269162569, [0.7826793332204871, 2.5457326192890712]),
        (0.2, 4.576742051009051, [0.7826793332204871, 2.5390472413804797]),
    ],
)
def test_soft_triple_with_the_mean_over_pairs(tau, expected, expected_norms):
    x, loss = embeddings(), soft_triple(tau=tau, regularizer="mean")
    value = loss(x, LABELS)
    assert value.item() == pytest.approx(expected, rel=1e-9)
    assert gradient_norms(value, x, loss.fc) == pytest.approx(expected_norms, rel=1e-9)


# --- ArcFace ---


@pytest.mark.parametrize(
    ("margin", "scale", "at_its_class", "expected", "expected_norms"),
    [
        (28.6, 64.0, False, 37.22126234522154, [5.167048941653994, 29.105741309678756]),
        (28.6, 64.0, True, 5.0480731745541005e-06, [5.8745082901659754e-05, 9.194831709811542e-05]),
        (20.52, 49.5, True, 3.951241143359473e-06, [3.5555682733428726e-05, 5.565295061811818e-05]),
    ],
)
def test_arcface_and_its_gradient_also_where_the_angle_is_0(margin, scale, at_its_class, expected, expected_norms):
    loss = ArcFaceLoss(num_classes=3, embedding_size=6, margin=margin, scale=scale).double()
    loss.W.data = rows(6, 3, 0.9)
    x = rows(6, 3, 0.9).t()[LABELS].clone().requires_grad_() if at_its_class else embeddings()
    value = loss(x, LABELS)
    assert value.item() == pytest.approx(expected, rel=1e-9)
    assert gradient_norms(value, x, loss.W) == pytest.approx(expected_norms, rel=1e-9)


# --- NT-Xent and the miner of multi-similarity ---


@pytest.mark.parametrize(
    ("temperature", "expected", "expected_norm"),
    [(0.07, 3.7731232803440027, 1.927012282702216), (0.00024, 23.038015866306186, 14.601517968488258)],
)
def test_ntxent_and_its_gradient(temperature, expected, expected_norm):
    x = embeddings()
    value = NTXentLoss(temperature)(x, LABELS)
    assert value.item() == pytest.approx(expected, rel=1e-9)
    assert gradient_norms(value, x) == pytest.approx([expected_norm], rel=1e-9)


def clusters():
    """Three tight clusters at right angles."""
    centres = torch.eye(6, dtype=torch.float64)[LABELS]
    return functional.normalize(centres + 0.01 * rows(8, 6, 1.7), dim=1).requires_grad_()


@pytest.mark.parametrize(
    ("epsilon", "separated", "expected", "expected_norm"),
    [
        (0.1, False, 0.6343492557223329, 0.15255715816395587),
        (0.9, False, 0.8042868281195346, 0.154727763557796),
        (0.9, True, 0.0, 0.0),
        (1.2, True, 0.3478438224654077, 0.00311338920008718),
    ],
)
def test_multi_similarity_with_its_miner(epsilon, separated, expected, expected_norm):
    x = clusters() if separated else embeddings()
    found = MultiSimilarityMiner(epsilon)(x, LABELS)
    value = pml_losses.MultiSimilarityLoss(2.0, 40.0, 0.5)(x, LABELS, found)
    if THREE:  # The mean over the anchors that have a pair, in version 2.9 over all.
        value = value * len(torch.cat([found[0], found[2]]).unique()) / len(LABELS)
    assert value.item() == pytest.approx(expected, rel=1e-9)
    assert gradient_norms(value, x) == pytest.approx([expected_norm], rel=1e-6)


# --- versions of meaning ---


def test_only_losses_whose_numbers_changed_have_a_version_of_meaning():
    classes = [item for item in vars(losses).values() if isinstance(item, type) and issubclass(item, nn.Module)]
    assert {cls.__name__: version_of(cls) for cls in classes if version_of(cls) != 1} == {
        "ArcFaceLoss": 2,
        "CCPLoss": 2,
        "HistogramLoss": 2,
        "MultiSimilarityMiner": 2,
        "NCALoss": 2,
        "NIRLoss": 3,
        "NTXentLoss": 2,
        "P2SGradLoss": 2,
        "ProxyGMLLoss": 2,
        "ProxyISALoss": 2,
        "SignalToNoiseRatioContrastiveLoss": 3,
        "SoftTripleLoss": 2,
        "SubCenterArcFaceLoss": 2,
        "TupletMarginLoss": 2,
    }
    assert version_of(pml_losses.SignalToNoiseRatioContrastiveLoss) == 1

    class Derived(SignalToNoiseRatioContrastiveLoss):
        pass

    assert version_of(Derived) == 3
