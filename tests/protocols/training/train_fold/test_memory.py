"""A training reads only memory that it has written, so torch need not fill new tensors."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from protocols.training import train_fold as training
from protocols.training.torch_state import isolated_random_numbers
from protocols.training.train_fold import train_fold
from results.spec.conditions import OptimizerSettings
from results.spec.trunk_spec import TrunkSpec
from tests.support.toys import CONTRASTIVE, IMAGES, pattern_dataset, same_weights, settings, toy_fold


def filling() -> bool:
    return bool(torch.utils.deterministic.fill_uninitialized_memory)


def test_the_setting_of_torch_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    assert filling()
    with isolated_random_numbers("cpu"):
        assert not filling()
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", False)
    with isolated_random_numbers("cpu", fill_memory=True):
        assert filling()
    assert not filling()


@pytest.mark.parametrize(
    ("trunk", "side"), [("small_conv", 8), ("small_conv", 32), ("bn_inception", 32), ("efficientnet_lite0", 32)]
)
def test_filled_memory_changes_nothing(tmp_path: Path, trunk: str, side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that leaves a part of its result unset would give NaN where the memory is filled."""
    dataset = pattern_dataset(tmp_path, side=side)
    short = settings(lr=1e-4, max_epochs=1, optimizer=OptimizerSettings(name="Adam", lr=1e-4, arguments={}))
    images = IMAGES.model_copy(update={"crop": side})
    spec, data = toy_fold(dataset, CONTRASTIVE, short, images=images, trunk=TrunkSpec(name=trunk, weights="random"))

    @contextmanager
    def filled(device: str, *, fill_memory: bool = False) -> Iterator[None]:
        with isolated_random_numbers(device, fill_memory=True):
            yield

    plain = train_fold(spec, data)
    monkeypatch.setattr(training, "isolated_random_numbers", filled)
    again = train_fold(spec, data)
    assert plain.result.curve == again.result.curve
    assert same_weights(plain.weights, again.weights)
    assert plain.result.status == "ok"


@pytest.mark.parametrize(("precision", "expected"), [("float32", False), ("amp", True)])
def test_only_bfloat16_on_a_cpu_fills_memory(
    tmp_path: Path, precision: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    original = training.embed_crops
    monkeypatch.setattr(training, "embed_crops", lambda *given: seen.append(filling()) or original(*given))
    images = IMAGES.model_copy(update={"crop": 16})
    short = settings(max_epochs=1, precision=precision)
    train_fold(*toy_fold(pattern_dataset(tmp_path, side=16), CONTRASTIVE, short, images=images))
    assert set(seen) == {expected}
