"""A small table of machines with their speed, for plans of runs on a machine that is not at hand."""

from dataclasses import dataclass

import torch
from torch import nn

from protocols.training.torch_state import device_name
from protocols.trunks.embedding_model import model_of, without_published_weights
from results.training_spec import FoldSpec

RESNET50_OPERATIONS = 8.18e9
"""Floating point operations of ResNet-50's forward pass at 224 pixels: two for each of the 4.09 billion multiplications
and additions that torchvision's documentation gives."""


@dataclass(frozen=True)
class Machine:
    """A kind of machine.

    Attributes:
        resnet50: Images per second in training of ResNet-50 at 224 pixels, in float32 (TF32 on a GPU); on a CPU with
            one thread.
        steps: Most optimizer steps per second. On a GPU small networks wait for the start of kernels.
        source: Source of `resnet50`, or `estimated`. All values of `steps` are estimated.
    """

    resnet50: float
    steps: float
    source: str


MACHINES = {
    "h100": Machine(1700, 60, "estimated"),
    "a100": Machine(938, 50, "NVIDIA DeepLearningExamples, ResNet50 v1.5 for PyTorch, 1 x A100 80GB, TF32"),
    "4090": Machine(700, 60, "estimated"),
    "cpu": Machine(3, 200, "estimated"),
}


def machine_of(device: str) -> str | None:
    """Return the key of the table for a device of this machine (cpu, cuda or cuda:N); None if the table lacks it."""
    name = device_name(torch.device(device)).lower()
    return next((key for key in MACHINES if key in name), None)


def images_per_second(machine: Machine, spec: FoldSpec) -> float:
    """Estimate the images per second in training: ResNet-50's rate, scaled by the operations of the trunk.

    Trainings on features compute no trunk; only the number of optimizer steps limits them. Networks with many small
    operations per weight, such as EfficientNet, are slower than this says.

    Args:
        machine: The machine.
        spec: A training; its trunk, crop and batch size count.

    Raises:
        TrunkError: The trunk cannot be built here.
    """
    most = machine.steps * spec.training.batch_size
    if spec.trunk.is_input_features:
        return most
    rate = machine.resnet50 * RESNET50_OPERATIONS / operations(spec)
    return min(rate, most)


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
