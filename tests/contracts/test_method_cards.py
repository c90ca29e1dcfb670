"""Every card of the suite opens, can be built and stepped in its search space, and has the losses of its paper."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from losses import SignalToNoiseRatioContrastiveLoss
from protocols.training.batches import batches
from protocols.training.build_method import BuiltMethod, build_method
from protocols.training.first_step import loss_falls
from reproduce.config.method_card import card_names
from reproduce.config.open_method import checked_card, load_card, open_card
from results.spec.conditions import TrainingSettings


@pytest.mark.parametrize("name", card_names())
def test_a_card_steps_at_both_ends_and_in_the_middle_of_its_range(name: str) -> None:
    opened = open_card(load_card(name))
    if opened.method.loss is None:
        return
    for place in (0.02, 0.5, 0.98):
        spec = opened.at({parameter.target: parameter.at(place) for parameter in opened.space})
        torch.manual_seed(0)
        with warnings.catch_warnings():
            # Some losses warn about these small sizes.
            warnings.simplefilter("ignore")
            method = build_method(spec, [4] * 60, 16, 32)
        labels = torch.arange(60).repeat_interleave(4)
        rows = next(batches(labels.numpy(), 32, spec.samples_per_class, 0, whole_passes=spec.whole_passes))
        embeddings = torch.randn(len(rows), 16, requires_grad=True)
        # Twice, since a loss can keep something of the step before.
        for _ in range(2):
            loss = method(embeddings, labels[rows])
            loss.backward()
        assert loss.isfinite(), place
        assert embeddings.grad is not None
        assert embeddings.grad.isfinite().all(), place
        assert embeddings.grad.any(), f"{place}: nothing is learned"


@pytest.mark.late
def test_every_loss_falls_in_the_trial_that_users_losses_get() -> None:
    """Each at its defaults and in the middle of its ranges. So a loss that does not fall is a fault."""
    targets = np.arange(16).repeat(4)
    for opened in map(open_card, map(load_card, card_names())):
        for spec in () if opened.method.loss is None else (opened.method, opened.at(opened.middle())):
            training = TrainingSettings(batch_size=(spec.samples_per_class or 4) * 8)
            assert loss_falls(spec, training, 4, targets), spec.name


def test_a_recipe_knows_what_a_loss_trains_and_what_its_card_leaves_alone() -> None:
    names = ("nir_proxy_anchor", "contextual", "margin_class", "untrained")
    nir, contextual, margin, untrained = (checked_card(name)[2] for name in names)
    assert untrained is None
    assert [one.parameters for one in (nir, contextual, margin)] == ["proxies", "others", "others"]
    assert nir.fixed == {"clamp": 2.0, "temperature": 1.0, "flow_lr_factor": 0.0125}
    assert (nir.warmup_passes, contextual.warmup_passes) == (1, 0)


# --- the losses of the papers ---


def method(card: str, num_classes: int = 200, embedding_size: int = 64) -> BuiltMethod:
    torch.manual_seed(0)
    return build_method(open_card(load_card(card), "cub200").method, [4] * num_classes, embedding_size, 32)


def loss(card: str) -> nn.Module:
    return method(card).loss


def test_snr_contrastive_regularises_unit_vectors() -> None:
    snr = method("snr_contrastive", 3, 6)
    assert type(snr.loss) is SignalToNoiseRatioContrastiveLoss
    unit = nn.functional.normalize(torch.randn(8, 6), dim=1)
    labels = torch.arange(8) % 3
    torch.testing.assert_close(snr(5 * unit, labels), snr(unit, labels))


def test_soft_triples_regulariser_is_the_mean_over_pairs_in_mlrc_and_half_of_it_in_nir() -> None:
    assert loss("soft_triple").regularizer == "mean"
    assert loss("nir_soft_triple").base_loss.regularizer == "halved"


def test_proxies_start_with_deviation_1_in_mlrc_and_one_eighth_elsewhere() -> None:
    assert loss("proxy_nca").proxies.std().item() == pytest.approx(1.0, rel=0.03)
    assert loss("proxy_nca_pp").proxies.std().item() == pytest.approx(1 / 8, rel=0.03)
    assert loss("nir_proxy_nca").base_loss.proxies.std().item() == pytest.approx(1 / 8, rel=0.03)
    assert loss("nir_proxy_anchor").base_loss.proxies.std().item() == pytest.approx(1 / 8, rel=0.03)
