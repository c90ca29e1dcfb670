"""One card, one number: with pytorch-metric-learning 3 a card computes what it does with 2.9, or is refused."""

import json
import warnings
from pathlib import Path

import pytest
import torch

from losses.bridge import THREE
from protocols.training.build_method import MethodError, build_component, build_method, check_component
from protocols.training.check_method import check_method
from reproduce.config.method_card import read_card
from results.spec.component import Component
from results.spec.method import Method
from tests.support.golden_files import FOLDER

ROOT = Path(__file__).resolve().parents[3]
KEPT = json.loads((FOLDER / "card_values.json").read_text())
"""Values and norms of gradients of each card's loss, by version 2.9.0: what `value_and_gradient` returns."""
OTHERS = {
    *("circle", "epshn", "intra_pair_variance", "lifted_structure", "margin_distance_weighted"),
    *("multi_similarity_miner", "normalized_softmax", "pnp", "ranked_list", "supcon", "threshold_consistent_margin"),
    "triplet_semihard",
}
"""Cards whose number changed in version 3, or is not known there."""


def methods():
    cards = [read_card(path) for path in sorted((ROOT / "reproduce" / "methods").glob("*.yaml"))]
    return {card.key: card.method for card in cards if card.method is not None and card.method.loss is not None}


def value_and_gradient(method):
    """Of the loss of a batch of four images of six of eight classes, from the start that a seed draws."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss = build_method(method, [8] * 8, 16, 24)
        embeddings = torch.randn(24, 16, generator=torch.Generator().manual_seed(1)).requires_grad_()
        value = loss(embeddings, torch.arange(24) % 6)
    value.backward()
    return [value.item(), embeddings.grad.norm().item()]


def test_every_card_has_its_number_or_is_refused():
    assert KEPT.keys() == methods().keys()
    assert KEPT.keys() > OTHERS
    for key, method in methods().items():
        if THREE and key in OTHERS:
            with pytest.raises(MethodError) as error:
                check_method(method)
            assert "\n" not in str(error.value), key
        else:
            assert value_and_gradient(method) == pytest.approx(KEPT[key], rel=1e-4, abs=1e-6), key


def of(name, miner=None, **arguments):
    return Method(
        name="toy",
        loss=Component(name=name, arguments=arguments),
        miner=None if miner is None else Component(name=miner),
    )


REFUSED = {
    "the default margin is 0.2 and no longer 0.05, so give one": of("TripletMarginLoss"),
    "the classes start from other random numbers": of("NormalizedSoftmaxLoss"),
    "normalize_embeddings is false by default, so give it": of(
        "ContrastiveLoss", distance={"component": {"kind": "distance", "name": "DotProductSimilarity"}}
    ),
    "the mean is over the samples that the miner found": of("MultiSimilarityLoss", "MultiSimilarityMiner"),
    "miners have other boundaries since 3.0.4": of("ContrastiveLoss", "TripletMarginMiner"),
    "nothing is known of this class": of("SupConLoss"),
}


@pytest.mark.parametrize("line", REFUSED)
def test_version_3_is_refused_and_the_line_says_what_changed(line):
    if not THREE:
        assert all(value_and_gradient(REFUSED[line]))
        return
    whole = rf"^\w+: in pytorch-metric-learning 3\..*{line}.*; with 2.9.0 this method runs"
    for refused in (check_method, value_and_gradient):
        with pytest.raises(MethodError, match=whole):
            refused(REFUSED[line])


def test_a_list_of_losses_gets_names_which_version_3_asks_for():
    parts = [{"component": {"name": "TripletMarginLoss", "arguments": {"margin": m}}} for m in (0.1, 0.4)]
    both = value_and_gradient(of("MultipleLosses", losses=parts, weights=[1.0, 0.25]))
    values = [value_and_gradient(of("TripletMarginLoss", margin=m))[0] for m in (0.1, 0.4)]
    assert both[0] == pytest.approx(values[0] + 0.25 * values[1], rel=1e-5)
    component = Component(name="MultipleLosses", arguments={"losses": [{"component": {"name": "CosFaceLoss"}}] * 2})
    built = build_component("loss", component, {"num_classes": 3, "embedding_size": 4})
    assert list(built.state_dict()) == ["losses.0.W", "losses.1.W"]
    check_component("loss", component)


def test_the_list_of_methods_names_the_cards_that_are_refused(say):
    said = say("methods").out
    assert "Proxy-Anchor" in said
    assert ("refused under the installed pytorch-metric-learning: circle, epshn, " in said) == THREE


def test_a_misspelt_argument_is_named_before_a_default_that_changed():
    with pytest.raises(MethodError, match="TripletMarginLoss takes no argument 'margn'"):
        check_method(of("TripletMarginLoss", margn=0.1))
