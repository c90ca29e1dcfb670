"""A training reads only memory that it has written, so torch need not fill new tensors."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from protocols.training import train_fold as training
from protocols.training.torch_state import isolated_random_numbers
from protocols.training.train_fold import train_fold
from results.spec.conditions import OptimizerSettings
from results.spec.trunk_spec import TrunkSpec
from tests.support.toys import CONTRASTIVE, IMAGES, pattern_dataset, same_weights, settings, toy_fold


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
