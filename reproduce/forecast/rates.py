"""How fast a machine trains: by the trainings in the store, as given, or by a small table of machines."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from protocols.problem import Problem
from protocols.splits import from_ranges
from protocols.training.torch_state import device_name
from protocols.trunks.embedding_model import model_of, without_published_weights
from protocols.trunks.weights import TrunkError
from results.records.frames import Timing
from results.spec.training_spec import Component, FoldSpec, MethodSpec

EVALUATION_SPEED = 3
"""How many times as fast evaluation is assumed to be as training."""

REMEDY = "give --gpu h100|a100|4090|cpu, or --rate IMAGES_PER_SECOND; `bench` measures the rate of this machine"

ANY_METHOD = MethodSpec(name="any", loss=Component(name="ContrastiveLoss"), samples_per_class=0)

_RESNET50_OPERATIONS = 8.18e9
"""Floating point operations of ResNet-50's forward pass at 224 pixels: two for each of the 4.09 billion multiplications
and additions that torchvision's documentation gives."""

_FEATURE_STEPS = 5
"""How many times as many steps per second a training on features makes. It computes no trunk."""


@dataclass(frozen=True)
class Rates:
    """The speed of a machine.

    Attributes:
        training: Images per second in training; rows per second where trainings read features.
        source: Where the rate comes from, for people.
        here: Whether it was measured on this machine.
    """

    training: float
    source: str
    here: bool = False


@dataclass(frozen=True)
class Machine:
    """A kind of machine in the table.

    Attributes:
        resnet50: Images per second in training of ResNet-50 at 224 pixels, in float32 (TF32 on a GPU); on a CPU with
            one thread.
        steps: Most optimizer steps per second, estimated. Small networks on a GPU wait for the start of kernels.
        source: Source of `resnet50`.
    """

    resnet50: float
    steps: float
    source: str = "estimated"


MACHINES = {
    "h100": Machine(1700, 60),
    "a100": Machine(938, 50, "from NVIDIA DeepLearningExamples, ResNet50 v1.5 for PyTorch, 1 x A100 80GB, TF32"),
    "4090": Machine(700, 60),
    "cpu": Machine(3, 200),
}


def rows_word(problem: Problem) -> str:
    """Return what trainings read, for people: images, or rows of features."""
    return "rows of features" if problem.trunk.is_input_features else "images"


def given_rates(training: float) -> Rates:
    """Return the rate that was given with --rate."""
    return Rates(training, "as given with --rate")


def machine_rates(name: str, problem: Problem) -> Rates | str:
    """Return the rate of a machine of the table, or the reason why it is not known.

    ResNet-50's rate is scaled by the operations of the trunk. Networks with many small operations per weight, such as
    EfficientNet, are slower than this says.
    """
    machine, batch = MACHINES[name], problem.training.batch_size
    if problem.trunk.is_input_features:
        steps = _FEATURE_STEPS * machine.steps
        return Rates(steps * batch, f"for {name}: {steps:.0f} optimizer steps a second (estimated)")
    try:
        rate = machine.resnet50 * _RESNET50_OPERATIONS / operations(problem.fold_specs(ANY_METHOD, "calibration", 0)[0])
    except TrunkError as error:
        return str(error)
    source = f"for {name}: ResNet-50's rate ({machine.source}), scaled by the operations of this trunk"
    return Rates(min(rate, machine.steps * batch), source)


def stored_rates(problem: Problem, stored: Sequence[Timing]) -> Rates | str:
    """Return the rate of the stored trainings with the same trunk, crop and precision, or why there is none.

    Trainings on the same dataset count; if there are none, those on other datasets, without their validations.
    """
    alike = [timing for timing in stored if timing.iterations > 0 and _is_alike(timing.spec, problem)]
    same = [timing for timing in alike if timing.spec.dataset == problem.dataset.name]
    timings = same or alike
    if not timings:
        trained = "on such features" if problem.trunk.is_input_features else "with this trunk and these images"
        return f"the store has no training {trained}"
    work = sum(work_of(timing, problem if same else None) for timing in timings)
    on = problem.dataset.name if same else "other datasets"
    count = "1 training" if len(timings) == 1 else f"{len(timings)} trainings"
    return Rates(work / sum(timing.seconds for timing in timings), f"from {count} on {on} in the store", here=True)


def expected_rates(problem: Problem, stored: Sequence[Timing], device: str) -> Rates | str:
    """Return the rate of the stored trainings; before the first one, that of the table for this machine."""
    rates = stored_rates(problem, stored)
    return rates if isinstance(rates, Rates) else table_rates(problem, device) or rates


def table_rates(problem: Problem, device: str) -> Rates | str | None:
    """Return the rate of the table for a device of this machine; None if the table lacks it."""
    name = device_name(torch.device(device)).lower()
    machine = next((key for key in MACHINES if key in name), None)
    return None if machine is None else machine_rates(machine, problem)


def _is_alike(spec: FoldSpec, problem: Problem) -> bool:
    trunk, other = spec.trunk, problem.trunk
    same_trunk = (trunk.name, trunk.batch_norm, trunk.frozen) == (other.name, other.batch_norm, other.frozen)
    same_precision = spec.training.precision == problem.training.precision
    return same_trunk and same_precision and spec.images.crop == problem.images.crop


def work_of(timing: Timing, problem: Problem | None) -> float:
    """Return the work of a training as far as it has come, in images that are trained on.

    The images of its validations count a third each; without the problem they are not known and are left out.
    """
    spec, trained = timing.spec, timing.iterations * timing.spec.training.batch_size
    if problem is None:
        return trained
    images = problem.dataset.images
    steps = spec.training.steps_per_epoch(len(images.of_classes(from_ranges(spec.train_classes))))
    validations = 1 + timing.iterations // (steps * spec.training.validate_every)
    return trained + validations * len(images.of_classes(from_ranges(spec.validation_classes))) / EVALUATION_SPEED


def operations(spec: FoldSpec) -> float:
    """Count the floating point operations of a trunk's convolutions and linear layers in one image's forward pass."""
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
