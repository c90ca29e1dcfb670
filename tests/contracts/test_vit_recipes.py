"""The recipes of vision transformers train with the settings of their files, on a stand-in for timm."""

import sys
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from protocols.training.optimizer import check_training
from protocols.training.train_fold import train_fold
from protocols.trunks import library_trunks
from reproduce.config.experiment_file import load_experiments
from reproduce.config.open_method import load_card, open_method
from results.spec.conditions import ImageSettings
from results.spec.experiment_spec import Experiment
from tests.support.toys import pattern_dataset, toy_fold


class Transformer(nn.Module):
    """A vision transformer of two blocks with the names of timm's, for images of 16 x 16 in patches of 8 x 8."""

    num_features = 8

    def __init__(self) -> None:
        super().__init__()
        self.cls_token, self.pos_embed = nn.Parameter(torch.zeros(1, 1, 8)), nn.Parameter(torch.zeros(1, 5, 8))
        self.patch_embed = nn.Sequential(OrderedDict(proj=nn.Conv2d(3, 8, 8, stride=8)))
        self.blocks = nn.Sequential(*(nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True) for _ in range(2)))
        self.norm = nn.LayerNorm(8)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patch_embed(images).flatten(2).mT
        tokens = torch.cat([self.cls_token.expand(len(images), -1, -1), patches], 1) + self.pos_embed
        features: Tensor = self.norm(self.blocks(tokens))[:, 0]
        return features


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    config = SimpleNamespace(mean=(0.5,) * 3, std=(0.5,) * 3, hf_hub_id="here", url="")
    module = SimpleNamespace(
        is_model=lambda name: name == "vit_small_patch16_224.dino",
        get_pretrained_cfg=lambda name: config,
        create_model=lambda name, **given: Transformer(),
    )
    monkeypatch.setitem(sys.modules, "timm", module)
    library_trunks.timm_entry.cache_clear()
    yield
    library_trunks.timm_entry.cache_clear()


def panels(name: str) -> dict[str, Experiment]:
    return {key.partition("/")[2]: one for key, one in load_experiments(name, {}).items()}


def test_the_frozen_form_takes_back_what_a_frozen_trunk_has_no_use_for() -> None:
    for one in load_experiments("vit_cub200", {"trunk.frozen": True}).values():
        assert one.conditions.trunk.frozen
        assert one.conditions.training.gradient_cache is None
        assert one.conditions.training.optimizer.layer_decay is None
        assert one.conditions.training.optimizer.weight_decay_of == "matrices"


@pytest.mark.parametrize("panel", ["dimensions_128", "large_batches"])
@pytest.mark.parametrize("method", ["proxy_anchor", "recall_at_k", "roadmap"])
@pytest.mark.usefixtures("timm")
def test_a_fold_trains_by_the_recipe(tmp_path: Path, panel: str, method: str) -> None:
    whole = panels("vit_cub200")[panel]
    check_training(whole.conditions.training, whole.conditions.trunk)
    short: dict[str, Any] = {"iterations_per_epoch": 1, "max_epochs": 8, "batch_size": 8}
    if whole.conditions.training.gradient_cache:
        short["gradient_cache"] = 3
    spec, data = toy_fold(
        pattern_dataset(tmp_path, side=16),
        open_method(whole, load_card(method)).method,
        whole.conditions.training.model_copy(update=short),
        trunk=whole.conditions.trunk.model_copy(update={"weights": "random"}),
        images=ImageSettings(resize=None, crop=16),
    )
    one, other = train_fold(spec, data), train_fold(spec, data)
    assert one.result.status == "ok"
    assert one.result.curve == other.result.curve, "dropout draws the same numbers in both trainings"
    assert len({point.loss for point in one.result.curve}) > 3
