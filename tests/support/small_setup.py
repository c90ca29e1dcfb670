"""A setup of sixteen classes of noisy stripes that a training is done with in a fraction of a second."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from protocols.datasets.splits import mlrc_split
from protocols.setup import Setup
from results.spec.component import Component
from results.spec.conditions import Conditions, ImageSettings, OptimizerSettings, TrainingSettings
from results.spec.method import Method
from results.spec.trunk_spec import TrunkSpec
from tests.support.packs import pack_arrays, packed_dataset

CLASSES, PER_CLASS, SIDE = 16, 4, 16


def small_setup(cache: Path, **changes: Any) -> Setup:
    noise = np.random.default_rng(0)
    labels = np.repeat(np.arange(CLASSES), PER_CLASS)
    stripes = (np.arange(SIDE)[None, :] * (labels[:, None] + 1)) % SIDE * (200 // SIDE)
    images = np.broadcast_to(stripes[:, None, :], (len(labels), SIDE, SIDE)) + noise.integers(0, 40, (64, SIDE, SIDE))
    packed = pack_arrays(images.astype(np.uint8)[..., None], cache / "stripes")
    names = [f"{row:02}" for row in range(len(labels))]
    dataset = packed_dataset("stripes", tuple(f"class {c}" for c in range(CLASSES)), names, labels, packed)
    training = TrainingSettings(
        batch_size=8,
        iterations_per_epoch=3,
        max_epochs=2,
        validate_every=1,
        optimizer=OptimizerSettings(name="Adam", lr=1e-3, arguments={}),
    )
    conditions = Conditions(
        images=ImageSettings(resize=None, crop=SIDE, flip=False),
        trunk=TrunkSpec(name="small_conv", weights="random"),
        embedding_size=8,
        training=training,
    )
    return with_changes(Setup(dataset, mlrc_split(dataset.n_classes), 2, conditions, seed=5), **changes)


def with_changes(setup: Setup, **changes: Any) -> Setup:
    """A setup with other values of its fields, or of the fields of its conditions."""
    conditions = {name: changes.pop(name) for name in [*changes] if name in Conditions.model_fields}
    return replace(setup, conditions=setup.conditions.model_copy(update=conditions), **changes)


TRIPLET = Method(name="triplet", loss=Component(name="TripletMarginLoss", arguments={"margin": 0.1}))
COSFACE = Method(name="cosface", loss=Component(name="CosFaceLoss"), samples_per_class=1, loss_lr=0.01)
UNTRAINED = Method(name="untrained", loss=None)
