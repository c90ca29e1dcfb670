"""A small table of machines with their speed, for plans of runs on a machine that is not at hand."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from protocols.training.torch_state import device_name
from protocols.trunks.embedding_model import model_of, without_published_weights
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import NO_TRUNK

RESNET50_OPERATIONS = 8.18e9
"""Floating point operations of ResNet-50's forward pass at 224 pixels: two for each of the 4.09 billion multiplications
and additions that torchvision's documentation gives."""


@dataclass(frozen=True)
class MeasuredRows:
    """The measured speed of a network on a machine, or of trainings on features. A row is an image, or its features.

    A step with a batch of n rows takes `1 / steps + n / rows` seconds.

    Attributes:
        rows: Rows per second in training, beside what every step takes.
        steps: Steps per second of an empty batch.
        evaluated: Rows per second in evaluation, without the retrieval.
        crop: Side of the images in pixels; None for features.
    """

    rows: float
    steps: float
    evaluated: float
    crop: int | None = None


@dataclass(frozen=True)
class Machine:
    """A kind of machine.

    Attributes:
        resnet50: Images per second in training of ResNet-50 at 224 pixels, in float32 (TF32 on a GPU); on a CPU with
            one thread.
        steps: Most optimizer steps per second. On a GPU small networks wait for the start of kernels.
        source: Source of `resnet50`, or `estimated`. All values of `steps` are estimated.
        measured: What was measured, by the name of the trunk; `none` stands for features.
        measured_on: The machine on which it was measured.
        comparisons: Pairs of embeddings that a retrieval compares per second. Infinite: retrieval is not counted.
    """

    resnet50: float
    steps: float
    source: str
    measured: Mapping[str, MeasuredRows] = field(default_factory=dict)
    measured_on: str = ""
    comparisons: float = math.inf

    def measured_for(self, spec: FoldSpec) -> MeasuredRows | None:
        """Return what was measured with the trunk of a training, or with features if it gets features."""
        return self.measured.get(NO_TRUNK if spec.trunk.is_input_features else spec.trunk.name)


MACHINES = {
    "h100": Machine(1700, 60, "estimated"),
    "a100": Machine(938, 50, "NVIDIA DeepLearningExamples, ResNet50 v1.5 for PyTorch, 1 x A100 80GB, TF32"),
    "4090": Machine(700, 60, "estimated"),
    "cpu": Machine(
        3,
        200,
        "estimated",
        measured={
            "small_conv": MeasuredRows(12000, 610, 39000, crop=32),
            NO_TRUNK: MeasuredRows(110000, 1500, 170000),
        },
        measured_on="one thread of an AMD EPYC",
        comparisons=4.1e8,
    ),
}


def machine_of(device: str) -> str | None:
    """Return the key of the table for a device of this machine (cpu, cuda or cuda:N); None if the table lacks it."""
    name = device_name(torch.device(device)).lower()
    return next((key for key in MACHINES if key in name), None)


def rows_per_second(machine: Machine, spec: FoldSpec) -> float:
    """Return the images, or rows of features, per second in training.

    Trunks without a measurement get ResNet-50's rate, scaled by their operations. Those with many small operations per
    weight, such as EfficientNet, are slower than this says. Trainings on features compute no trunk, so without a
    measurement only the number of optimizer steps limits them.

    Args:
        machine: The machine.
        spec: A training; its trunk, crop and batch size count.

    Raises:
        TrunkError: The trunk cannot be built here.
    """
    batch = spec.training.batch_size
    measured = machine.measured_for(spec)
    if measured is not None:
        return batch / (1 / measured.steps + batch * _size_beside(measured, spec) / measured.rows)
    most = machine.steps * batch
    if spec.trunk.is_input_features:
        return most
    rate = machine.resnet50 * RESNET50_OPERATIONS / operations(spec)
    return min(rate, most)


def evaluated_per_second(machine: Machine, spec: FoldSpec) -> float | None:
    """Return the measured images, or rows of features, per second in evaluation; None without a measurement.

    Args:
        machine: The machine.
        spec: A training; its trunk and crop count.

    Raises:
        TrunkError: The trunk cannot be built here.
    """
    measured = machine.measured_for(spec)
    return None if measured is None else measured.evaluated / _size_beside(measured, spec)


def _size_beside(measured: MeasuredRows, spec: FoldSpec) -> float:
    """How many times as many operations an image of a training needs as one of the measurement."""
    if measured.crop in (None, spec.images.crop) or spec.trunk.is_input_features:
        return 1.0
    images = spec.images.model_copy(update={"crop": measured.crop})
    return operations(spec) / operations(spec.model_copy(update={"images": images}))


def operations(spec: FoldSpec) -> float:
    """Count the floating point operations of a trunk's convolutions and linear layers on one image, in a forward pass.

    Raises:
        TrunkError: The trunk cannot be built here.
    """
    model = model_of(without_published_weights(spec)).eval()
    counts: list[int] = []

    def count(layer: nn.Module, _: object, output: torch.Tensor) -> None:
        weight = layer.weight
        assert isinstance(weight, torch.Tensor)
        counts.append(2 * output.numel() * weight[0].numel())

    for layer in model.trunk.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(count)
    # torch's own counter would import torch's compiler, which takes longer than the rest of a plan.
    with torch.inference_mode():
        model.trunk(torch.zeros(1, model.channels, spec.images.crop, spec.images.crop))
    return float(sum(counts))
