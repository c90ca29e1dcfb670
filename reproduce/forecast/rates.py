"""How fast a machine trains: by the trainings in the store, as given, or by a small table of machines."""

from collections.abc import Mapping, Sequence
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
"""How many times as many steps per second a training on features makes. It computes no trunk, so of about 1,000
operations that the host starts in a step only the 125 to 240 of the loss and the optimizer are left."""

_HOST_STEPS = 140
"""Most steps per second of one training on any GPU: the host needs about 7 ms (5 to 9) to start the operations of a
step of BN-Inception, one by one. Nobody has measured it. Several trainings side by side have a host each."""


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
        resnet50: Images per second in training of ResNet-50 at 224 pixels, by precision, if nothing waits for the host;
            on a CPU with one thread. A precision that is not named has the rate of float32.
        steps: Most optimizer steps per second, estimated.
        source: Source of the rates that are not estimates.
        published: The precisions whose rate is from the source.
    """

    resnet50: Mapping[str, float]
    steps: float = _HOST_STEPS
    source: str = ""
    published: tuple[str, ...] = ()


# H100: a step of BN-Inception at batch 32 has 0.4e12 operations with its backward. In float32 that is 8.5 ms at 70 % of
# its data sheet (67e12 a second). TF32 is taken to need 5 ms: convolutions this small use a sixth of its tensor cores,
# and about 9 GB go to and from memory, which takes 2.7 ms. Both are turned into images of ResNet-50. amp: the A100's
# published rate times 1.65, the ratio of the speeds of their memories.
# A100 in float32: V100's 367 images a second from the same source, times the ratio of their data sheets.
# 4090: half of the A100's speed of memory, which decides in amp; in float32 and TF32 arithmetic makes up for a part.
MACHINES = {
    "h100": Machine({"float32": 1900, "tf32": 3200, "amp": 4000}),
    "a100": Machine(
        {"float32": 460, "tf32": 938, "amp": 2470},
        source="from NVIDIA DeepLearningExamples, ResNet50 v1.5 for PyTorch, 1 x A100 80GB",
        published=("tf32", "amp"),
    ),
    "4090": Machine({"float32": 650, "tf32": 700, "amp": 1200}),
    "cpu": Machine({"float32": 3}, steps=200),
}
"""Nothing in this table was measured by this suite."""


def rows_word(problem: Problem) -> str:
    """Return what trainings read, for people: images, or rows of features."""
    return "rows of features" if problem.trunk.is_input_features else "images"


def given_rates(training: float) -> Rates:
    """Return the rate that was given with --rate."""
    return Rates(training, "as given with --rate")


def machine_rates(name: str, problem: Problem) -> Rates | str:
    """Return the rate of one training alone on a machine of the table, or the reason why it is not known.

    It is that of the slower one of host and device. The device's is ResNet-50's in this precision, scaled by the
    operations of the trunk. Networks with many small operations per weight, such as EfficientNet, are slower than this
    says.
    """
    machine, training = MACHINES[name], problem.training
    on_features = problem.trunk.is_input_features
    steps = machine.steps * (_FEATURE_STEPS if on_features else 1)
    limited = Rates(steps * training.batch_size, f"for {name}: {steps:.0f} optimizer steps a second (estimated)")
    if on_features:
        return limited
    try:
        needed = operations(problem.fold_specs(ANY_METHOD, "calibration", 0)[0]) / _RESNET50_OPERATIONS
    except TrunkError as error:
        return str(error)
    precision = training.precision if training.precision in machine.resnet50 else "float32"
    rate = machine.resnet50[precision] / needed
    if limited.training <= rate:
        return limited
    source = machine.source if precision in machine.published else "estimated"
    scaled = f"ResNet-50's rate in {precision} ({source}), scaled by the operations of this trunk"
    return Rates(rate, f"for {name}: {scaled}")


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
