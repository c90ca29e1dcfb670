"""Every card of the suite opens, can be built and stepped in its search space, and has the losses of its paper."""

import copy
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from protocols.training.batches import batches
from protocols.training.build_method import BuiltMethod, build_method, is_taken
from protocols.training.first_step import loss_falls
from reproduce.config.method_card import card_file, card_names, read_card
from reproduce.config.open_method import checked_card, load_card, open_card
from results.spec.conditions import TrainingSettings
from results.spec.range import corners, middle_of

TAKEN = [name for name in card_names() if is_taken(read_card(card_file(name)).method)]
"""All cards under pytorch-metric-learning 2.9; under 3 without those that are refused."""

WITH_LOSS = [name for name in TAKEN if read_card(card_file(name)).method.loss is not None]
D, CLASSES = 4, 8


def stepped(method: BuiltMethod, embeddings: Tensor, labels: Tensor) -> Tensor:
    """Compute the loss twice, since a loss can keep something of the step before; all gradients must be finite."""
    embeddings = embeddings.clone().requires_grad_()
    for _ in range(2):
        value = method(embeddings, labels)
        value.backward()
    assert value.isfinite()
    gradients = {"embeddings": embeddings.grad} | {key: one.grad for key, one in method.loss.named_parameters()}
    assert [key for key, grad in gradients.items() if grad is not None and not grad.isfinite().all()] == []
    assert embeddings.grad is not None
    return embeddings.grad


@pytest.mark.parametrize("name", WITH_LOSS)
def test_a_card_steps_at_both_ends_and_in_the_middle_of_its_ranges(name: str) -> None:
    opened = open_card(load_card(name))
    middle = middle_of(opened.ranges)
    for setting in (middle, *corners(opened.ranges)):
        spec = opened.method.at(setting)
        torch.manual_seed(0)
        with warnings.catch_warnings():
            # Some losses warn about these small sizes.
            warnings.simplefilter("ignore")
            method = build_method(spec, [4] * 60, 16, 32)
        labels = torch.arange(60).repeat_interleave(4)
        rows = next(batches(labels.numpy(), 32, spec.batch.samples_per_class, 0, whole_passes=spec.batch.whole_passes))
        gradient = stepped(method, torch.randn(len(rows), 16), labels[rows])
        assert gradient.any() or setting != middle, "nothing is learned"


def odd_batches(loss: nn.Module, size: int) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Batches that honest data give: copies of images, trained proxies, classes alone, dead and long embeddings."""
    rows, labels = torch.randn(size, D), torch.arange(size) * CLASSES // size
    copies, opposite, axis, one_dead, third_dead, constant = (rows.clone() for _ in range(6))
    copies[1::2], opposite[1::2], axis[:] = rows[::2], -rows[::2], torch.eye(D)[0] * (-1) ** labels[:, None]
    one_dead[0], third_dead[::3], constant[0] = 0, 0, 1
    yield from (("equal rows", rows[:1].repeat(size, 1), labels), ("equal classes", rows[labels], labels))
    yield from (("copies", copies, labels), ("opposite rows", opposite, labels), ("one axis", axis, labels))
    yield from (("one class", rows, labels * 0), ("one a class", rows[:CLASSES], torch.arange(CLASSES)))
    yield from (("a single row", rows[:1], labels[:1]), ("a constant row", constant, labels))
    yield from (("a zero row", one_dead, labels), ("zero rows", third_dead, labels), ("only zeros", rows * 0, labels))
    yield from (("tiny", rows * 1e-8, labels), ("huge", rows * 1e8, labels))
    for parameter in loss.parameters():
        if parameter.ndim == 2 and D in parameter.shape and not parameter.numel() % (D * CLASSES):
            proxies = parameter.detach() if parameter.shape[1] == D else parameter.detach().t()
            own = proxies[labels * (len(proxies) // CLASSES)]
            yield from (("at the proxies", own.clone(), labels), ("opposite the proxies", -own, labels))


@pytest.mark.parametrize("name", WITH_LOSS)
def test_a_loss_is_finite_on_odd_batches(name: str) -> None:
    spec = open_card(load_card(name)).method
    size = CLASSES * max(1, spec.batch.samples_per_class)

    torch.manual_seed(0)
    failed = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        built = build_method(spec, [8] * CLASSES, D, size)
    for kind, rows, labels in odd_batches(built.loss, size):
        try:
            stepped(copy.deepcopy(built), rows, labels)
        except (AssertionError, RuntimeError) as error:
            failed[kind] = str(error).partition("\n")[0]
    assert failed == {}


@pytest.mark.late
def test_every_loss_falls_in_the_trial_that_users_losses_get() -> None:
    """Each at its defaults and in the middle of its ranges. So a loss that does not fall is a fault."""
    targets = np.arange(16).repeat(4)
    for opened in map(open_card, map(load_card, TAKEN)):
        for spec in () if opened.method.loss is None else (opened.method, opened.method.at(middle_of(opened.ranges))):
            training = TrainingSettings(batch_size=(spec.batch.samples_per_class or 4) * 8)
            assert loss_falls(spec, training, 4, targets), spec.name


def test_a_recipe_knows_what_a_loss_trains_and_what_its_card_leaves_alone() -> None:
    names = ("nir_proxy_anchor", "contextual", "margin_class", "untrained")
    nir, contextual, margin, untrained = (checked_card(name)[2] for name in names)
    assert untrained is None
    assert [one.parameters for one in (nir, contextual, margin)] == ["proxies", "others", "others"]
    assert nir.fixed == {"clamp": 2.0, "temperature": 1.0, "flow_lr_factor": 0.0125}
    assert (nir.warmup_passes, contextual.warmup_passes) == (1, 0)


# --- the losses of the papers ---


def loss(card: str) -> nn.Module:
    torch.manual_seed(0)
    return build_method(open_card(load_card(card), "cub200").method, [4] * 200, 64, 32).loss


def test_soft_triples_regulariser_is_the_mean_over_pairs_in_mlrc_and_half_of_it_in_nir() -> None:
    assert loss("soft_triple").regularizer == "mean"
    assert loss("nir_soft_triple").base_loss.regularizer == "halved"


def test_proxies_start_with_deviation_1_in_mlrc_and_one_eighth_elsewhere() -> None:
    assert loss("proxy_nca").proxies.std().item() == pytest.approx(1.0, rel=0.03)
    assert loss("proxy_nca_pp").proxies.std().item() == pytest.approx(1 / 8, rel=0.03)
    assert loss("nir_proxy_nca").base_loss.proxies.std().item() == pytest.approx(1 / 8, rel=0.03)
    assert loss("nir_proxy_anchor").base_loss.proxies.std().item() == pytest.approx(1 / 8, rel=0.03)
