"""In a trainer of pytorch-metric-learning, as the docs set it up, a loss is the method that the suite runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from losses import Schedule
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.training_spec import Component
from results.values import derive_seed
from tests.support.documentation import ROOT, blocks
from tests.support.plain_loop import five_epochs, parts_of_training

METHODS: dict[str, dict[str, Any]] = {
    "ProxyISALoss": {"memory_size": 24, "memory_start_pass": 1, "filter_start_pass": 2},
    "NIRLoss": {"base_loss": "proxy_anchor", "n_blocks": 2, "num_classes": "$num_classes"},
}


class Crops(torch.utils.data.Dataset):
    """The suite's training batches, image by image, in the order in which the sampler asks for them."""

    def __init__(self, source: Any, targets: np.ndarray, rows: list[np.ndarray], seed: int) -> None:
        crops = torch.Generator().manual_seed(seed)
        self.images = torch.cat([source.training_batch(batch, crops) for batch in rows])
        self.rows, self.targets = np.concatenate(rows), targets

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, position: int) -> tuple[torch.Tensor, int]:
        return self.images[position], int(self.targets[self.rows[position]])


class Trunk(nn.Module):
    """The trunk of the suite's model, which takes images as bytes."""

    def __init__(self, model: EmbeddingModel) -> None:
        super().__init__()
        self.trunk, self.whole = model.trunk, [model]  # In a list, so that the embedder is no part of this module.

    def train(self, mode: bool = True) -> "Trunk":
        self.whole[0].train(mode)
        return super().train(mode)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.whole[0].features(images)


def documented_trainer() -> Any:
    """The class of the page on losses elsewhere, after its whole example was run."""
    names: dict[str, Any] = {}
    own_loop, in_trainer = (
        code for code in blocks(ROOT / "docs" / "losses_elsewhere.md", "python") if "Schedule(" in code
    )
    exec(own_loop, names)
    exec(in_trainer, names)
    assert names["loss"].started
    return names["Trainer"]


@pytest.mark.parametrize("name", METHODS)
def test_the_values_are_those_of_the_suite_s_loop(name: str, tmp_path: Path) -> None:
    spec, data = five_epochs(Component(name=name, arguments=METHODS[name]), tmp_path)
    suite = train_fold(spec, data).result
    model, built, optimizer, source, rows = parts_of_training(spec, data)
    dataset = Crops(source, data.train_targets, [next(rows) for _ in range(15)], derive_seed("crops", spec.seed))
    values: list[float] = []
    trainer = documented_trainer()(
        models={"trunk": Trunk(model), "embedder": model.embedder},
        optimizers={"trunk_optimizer": optimizer},
        batch_size=8,
        loss_funcs={"metric_loss": built.loss},
        dataset=dataset,
        sampler=range(len(dataset)),
        iterations_per_epoch=3,
        dataloader_num_workers=0,
        data_device=torch.device("cpu"),
        end_of_iteration_hook=lambda trainer: values.append(trainer.losses["metric_loss"].item()),
    )
    trunk, embedder = trainer.models.values()
    trainer.schedule = Schedule(
        *(built.loss, torch.nn.Sequential(trunk, embedder), torch.from_numpy(data.train_targets), 8),
        trunk=trunk,
        steps_per_epoch=3,
        seed=derive_seed("plugin", spec.seed),
    )
    trainer.train(num_epochs=5)
    assert trainer.schedule.step == 15
    means = np.asarray(values).reshape(5, 3).mean(axis=1)
    np.testing.assert_allclose(means, [point.loss for point in suite.curve[1:]], rtol=1e-6)
