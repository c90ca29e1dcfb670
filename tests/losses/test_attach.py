"""In a trainer of pytorch-metric-learning an attached loss is the method that the suite runs."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pytorch_metric_learning import trainers
from torch import nn

from losses import CCPLoss, Clock, ProxyISALoss, attach
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.conditions import TrainingSettings
from results.spec.training_spec import Component, MethodSpec
from results.values import derive_seed
from tests.support.plain_loop import parts_of_training
from tests.support.small_setup import small_setup

METHODS = {
    "ProxyISALoss": {"memory_size": 24, "memory_start_pass": 1, "filter_start_pass": 2},
    "HierarchicalProxyLoss": {"num_groups": 3, "coarse_weight": 1.0},
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


@pytest.mark.parametrize("name", METHODS)
def test_the_values_are_those_of_the_suite_s_loop(name: str, tmp_path: Path) -> None:
    settings = TrainingSettings.model_validate(
        {**dict(small_setup(tmp_path).conditions.training), "max_epochs": 5, "patience": 9}
    )
    setup = small_setup(tmp_path, training=settings)
    method = MethodSpec(name="own", loss=Component(name=name, arguments=METHODS[name]), loss_lr=0.01)
    spec = setup.fold_specs(method, "reproduction", 0)[0]
    data = setup.training_data(spec)
    suite = train_fold(spec, data).result
    model, built, optimizer, source, rows = parts_of_training(spec, data)
    dataset = Crops(source, data.train_targets, [next(rows) for _ in range(15)], derive_seed("crops", spec.seed))
    values: list[float] = []
    trainer = trainers.MetricLossOnly(
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
    schedule = attach(built.loss, trainer, labels=data.train_targets, seed=derive_seed("plugin", spec.seed))
    trainer.train(num_epochs=5)
    assert schedule.step == 15
    means = np.asarray(values).reshape(5, 3).mean(axis=1)
    np.testing.assert_allclose(means, [point.loss for point in suite.curve[1:]], rtol=1e-6)


def small_trainer(loss: nn.Module, **settings: Any) -> trainers.MetricLossOnly:
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(24, 3), torch.arange(24) % 4)
    trunk, embedder = nn.Linear(3, 5), nn.Linear(5, 4)
    return trainers.MetricLossOnly(
        models={"trunk": trunk, "embedder": embedder},
        optimizers={
            "trunk_optimizer": torch.optim.SGD(trunk.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1),
            "metric_loss_optimizer": torch.optim.SGD(loss.param_groups(0.1, 0.0)),
        },
        batch_size=8,
        loss_funcs={"metric_loss": loss},
        dataset=data,
        dataloader_num_workers=0,
        data_device=torch.device("cpu"),
        dtype=torch.float32,
        **settings,
    )


def test_ccp_picks_its_proxies_and_moves_on_when_the_score_no_longer_rises() -> None:
    loss = CCPLoss.from_card(num_classes=4, embedding_size=4, proxies_per_class=2, pool_size=3, patience=1)
    trainer = small_trainer(loss)
    with pytest.raises(ValueError, match="CCPLoss acts on validation scores; give validate="):
        attach(loss, trainer)
    scores = iter([0.1, 0.2, 0.15, 0.3])
    ended = []
    trainer.end_of_epoch_hook = lambda trainer: ended.append(trainer.epoch)
    attach(loss, trainer, validate=lambda trainer: {"map_at_r": next(scores)})
    assert loss.started
    trainer.train(num_epochs=3)
    assert ended == [1, 2, 3]
    assert int(loss.instance) == 1
    assert float(loss.best_score) == 0.3


def test_a_step_that_the_loss_skips_changes_no_weight() -> None:
    class Skipping(ProxyISALoss):
        def on_gradients(self, clock: Clock) -> bool:
            return clock.step != 1

    loss = Skipping(num_classes=4, embedding_size=4)
    weights: list[torch.Tensor] = []
    trainer = small_trainer(
        loss, end_of_iteration_hook=lambda trainer: weights.append(trainer.models["trunk"].weight.detach().clone())
    )
    attach(loss, trainer)
    trainer.train(num_epochs=1)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])


def test_a_dataset_without_labels_is_refused() -> None:
    loss = ProxyISALoss(num_classes=4, embedding_size=4)
    trainer = small_trainer(loss)
    trainer.dataset = list(range(24))
    with pytest.raises(ValueError, match="the dataset has neither targets nor labels; give labels="):
        attach(loss, trainer)


# --- nothing is left behind ---


def test_hooks_do_not_pile_up_and_leave_model_and_loss_as_they_are() -> None:
    one, two = (ProxyISALoss(num_classes=4, embedding_size=4, memory_size=24) for _ in range(2))
    trainer = small_trainer(one)
    schedules = [attach(loss, trainer) for loss in (one, two)]
    with pytest.raises(ValueError, match="ProxyISALoss is attached to this trainer already"):
        attach(one, trainer)
    trainer.train(num_epochs=1)
    assert [schedule.step for schedule in schedules] == [3, 3]
    for part in (one, *trainer.models.values()):
        assert pickle.loads(pickle.dumps(part)).state_dict().keys() == copy.deepcopy(part).state_dict().keys()
