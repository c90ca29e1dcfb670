"""Cards of MLRC's methods build the losses of MLRC's runs; cards of other papers build those papers' losses."""

import pytest
import torch
from torch import nn

from losses import SignalToNoiseRatioContrastiveLoss
from protocols.training.build_method import BuiltMethod, build_method
from reproduce.config.checked_card import load_card, open_card


def method(card: str, num_classes: int = 200, embedding_size: int = 64) -> BuiltMethod:
    torch.manual_seed(0)
    return build_method(open_card(load_card(card), "cub200").method, num_classes, embedding_size)


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
