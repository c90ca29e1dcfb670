"""A training without the suite's loop: the same network, loss and batches, and a `Schedule` that calls the hooks."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from losses import Schedule
from protocols.images.batch_source import BatchSource
from protocols.training.batches import batches
from protocols.training.build_method import build_method
from protocols.training.fold_data import FoldData
from protocols.training.optimizer import build_optimizer
from protocols.trunks.embedding_model import model_of
from results.records.records import FoldResult
from results.spec.conditions import TrainingSettings
from results.spec.training_spec import Component, FoldSpec, MethodSpec
from results.values import derive_seed
from tests.support.small_setup import small_setup


def parts_of_training(spec: FoldSpec, data: FoldData) -> tuple[Any, Any, Any, Any, Any]:
    """Network, loss, optimizer, source of images and rows of the batches, as `train_fold` makes them from the seed."""
    torch.manual_seed(derive_seed("network", spec.seed))
    model = model_of(spec).place(torch.device("cpu"))
    torch.manual_seed(derive_seed("loss", spec.seed))
    targets = data.train_targets
    counts, batch_size = np.bincount(targets).tolist(), spec.conditions.training.batch_size
    method = build_method(spec.method, counts, model.dimensions, batch_size)
    optimizer = build_optimizer(spec.conditions.training.optimizer, model, method, spec.method)
    source = BatchSource(data.train, spec.conditions.images, torch.device("cpu"))
    rows = batches(targets, batch_size, spec.method.samples_per_class, derive_seed("batches", spec.seed))
    return model, method, optimizer, source, rows


def pool_images(spec: FoldSpec, source: BatchSource) -> Any:
    """What `Schedule` takes as `images`, with the crops of the suite's pool."""
    crops = torch.Generator().manual_seed(derive_seed("pool", spec.seed))
    return lambda rows: source.training_batch(rows, crops)


def losses_of_plain_loop(spec: FoldSpec, data: FoldData, suite: FoldResult) -> list[float]:
    """Mean loss of every epoch. Validation scores, which some losses act on, are those of the suite's training."""
    model, method, optimizer, source, rows = parts_of_training(spec, data)
    schedule = Schedule(
        method.loss,
        model,
        data.train_targets,
        spec.conditions.training.batch_size,
        images=pool_images(spec, source),
        steps_per_epoch=spec.conditions.training.iterations_per_epoch,
        seed=derive_seed("pool", spec.seed),
        generator=torch.Generator().manual_seed(derive_seed("plugin", spec.seed)),
    )
    crops = torch.Generator().manual_seed(derive_seed("crops", spec.seed))
    means = []
    schedule.evaluated({"map_at_r": suite.curve[0].map_at_r})
    for point in suite.curve[1:]:
        values = []
        model.train()
        method.loss.train()
        for _ in range(spec.conditions.training.iterations_per_epoch):
            schedule.start_step()
            batch = next(rows)
            optimizer.zero_grad()
            loss = method(model(source.training_batch(batch, crops)), torch.from_numpy(data.train_targets[batch]))
            loss.backward()
            if schedule.gradients_ready():
                optimizer.step()
            values.append(loss.item())
        means.append(sum(values) / len(values))
        schedule.evaluated({"map_at_r": point.map_at_r})
    return means


def five_epochs(loss: Component, folder: Path) -> tuple[FoldSpec, FoldData]:
    """A fold's training of a loss over five epochs, and its images."""
    settings = {**dict(small_setup(folder).conditions.training), "max_epochs": 5, "patience": 9}
    setup = small_setup(folder, training=TrainingSettings.model_validate(settings))
    spec = setup.fold_specs(MethodSpec(name="own", loss=loss, loss_lr=0.01), "reproduction", 0)[0]
    return spec, setup.training_data(spec)
