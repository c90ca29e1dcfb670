"""The speed of the machine that a plan is for: given, from the store, from a table of machines, or measured shortly."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from protocols.problem import Problem
from protocols.samples import Samples
from protocols.splits import as_ranges, from_ranges
from protocols.training.fold_data import FoldData
from protocols.trunks.embedding_model import without_published_weights
from protocols.trunks.weights import TrunkError
from reproduce.execution.devices import prepare_process
from reproduce.forecast.machine_rates import MACHINES, evaluated_per_second, machine_of, operations, rows_per_second
from results.records.frames import Timing
from results.spec.training_spec import Component, FoldSpec, MethodSpec

EVALUATION_SPEED = 3
"""How many times as fast evaluation is assumed to be as training."""

UNKNOWN = "the store has no training with this trunk and these images"
UNKNOWN_FEATURES = "the store has no training on such features"
REMEDY = "give --gpu h100|a100|4090|cpu, or --rate IMAGES_PER_SECOND, or measure for some seconds with --measure"

_MEASURED_SECONDS = 8.0
_MEASURED_BATCH = 8
_QUICK_OPERATIONS = 2e9
"""A batch with fewer operations in its forward pass is measured as it is; a CPU needs less than a second for it."""

_ANY_METHOD = MethodSpec(name="any", loss=Component(name="ContrastiveLoss"), samples_per_class=0)


@dataclass(frozen=True)
class Rates:
    """The speed of a machine. Where a training gets features, their rows take the place of images.

    Attributes:
        training: Images per second in training.
        source: How the rate was obtained, for people.
        here: Whether it is the speed of this machine.
        evaluated: Measured images per second in evaluation; None assumes `EVALUATION_SPEED` times those of training.
        comparisons: Pairs of embeddings that the retrieval of a validation compares per second. Infinite: the time of
            the retrieval is part of `evaluated`.
    """

    training: float
    source: str
    here: bool = False
    evaluated: float | None = None
    comparisons: float = math.inf

    @property
    def evaluation(self) -> float:
        """Images per second in evaluation."""
        return EVALUATION_SPEED * self.training if self.evaluated is None else self.evaluated

    @property
    def evaluation_in_words(self) -> str:
        """How many times as fast as training evaluation is, and whether that is assumed."""
        times = f"{self.evaluation / self.training:.0f} times as fast"
        return f"evaluation is assumed to be {times}" if self.evaluated is None else f"evaluation is {times}"


def training_rows_word(problem: Problem) -> str:
    """Return what a training of the problem reads, for people: images, or rows of features."""
    return "rows of features" if problem.trunk.is_input_features else "images"


def given_rates(training: float) -> Rates:
    """Return the rates of a machine whose training rate is given with --rate, in images per second."""
    return Rates(training, "as given with --rate")


def machine_rates(name: str, problem: Problem) -> Rates | str:
    """Return the rates of a machine of the table, or the reason why they are not known.

    Args:
        name: A key of `MACHINES`.
        problem: The problem, with trunk, images and batch size.
    """
    machine, spec = MACHINES[name], problem.fold_specs(_ANY_METHOD, "calibration", 0)[0]
    try:
        rate, evaluated = rows_per_second(machine, spec), evaluated_per_second(machine, spec)
    except TrunkError as error:
        return str(error)
    if machine.measured_for(spec) is not None:
        source = f"for {name}: measured on {machine.measured_on}"
        return Rates(rate, source, evaluated=evaluated, comparisons=machine.comparisons)
    if problem.trunk.is_input_features:
        return Rates(rate, f"for {name}: {machine.steps:.0f} optimizer steps a second (estimated)")
    source = "estimated" if machine.source == "estimated" else f"from {machine.source}"
    return Rates(rate, f"for {name}: ResNet-50's rate ({source}), scaled by the operations of this trunk")


def stored_rates(problem: Problem, stored: Sequence[Timing]) -> Rates | str:
    """Return the rates of the stored trainings with the same trunk, crop and precision, or why there are none.

    Trainings on the same dataset count; if there are none, those on other datasets, without their validations.

    Args:
        problem: The problem, with trunk and images.
        stored: Timings of all trainings in the store.
    """
    alike = [timing for timing in stored if timing.iterations > 0 and _is_alike(timing.spec, problem)]
    name = problem.dataset.name
    same = [timing for timing in alike if timing.spec.dataset == name]
    timings = same or alike
    if not timings:
        return UNKNOWN_FEATURES if problem.trunk.is_input_features else UNKNOWN
    seconds = sum(timing.seconds for timing in timings)
    work = sum(images_of_training(timing, problem if same else None) for timing in timings)
    on = name if same else "other datasets"
    count = "1 training" if len(timings) == 1 else f"{len(timings)} trainings"
    return Rates(work / seconds, f"from {count} on {on} in the store", here=True)


def expected_rates(problem: Problem, stored: Sequence[Timing], device: str) -> Rates | str:
    """Return the rates of the stored trainings; without any that are alike, those of the table for this machine.

    Args:
        problem: The problem.
        stored: Timings of all stored trainings.
        device: cpu, cuda or cuda:N.

    Returns:
        The rates, or the reason why they are unknown.
    """
    rates = stored_rates(problem, stored)
    machine = machine_of(device)
    if isinstance(rates, Rates) or machine is None:
        return rates
    return machine_rates(machine, problem)


def _is_alike(spec: FoldSpec, problem: Problem) -> bool:
    trunk, other = spec.trunk, problem.trunk
    same_trunk = (trunk.name, trunk.batch_norm, trunk.frozen) == (other.name, other.batch_norm, other.frozen)
    same_precision = spec.training.precision == problem.training.precision
    return same_trunk and same_precision and spec.images.crop == problem.images.crop


def images_of_training(timing: Timing, problem: Problem | None) -> float:
    """Count the images of a training, in units of images that are trained on.

    Args:
        timing: The training, as far as it has come.
        problem: The problem with its images, to count the images of its validations too; None leaves them out.
    """
    spec, trained = timing.spec, timing.iterations * timing.spec.training.batch_size
    if problem is None:
        return trained
    images = problem.dataset.images
    steps = spec.training.steps_per_epoch(len(images.of_classes(from_ranges(spec.train_classes))))
    validations = 1 + timing.iterations // (steps * spec.training.validate_every)
    validated = validations * len(images.of_classes(from_ranges(spec.validation_classes)))
    return trained + validated / EVALUATION_SPEED


class _EnoughError(Exception):
    """The measurement has taken its time."""


def measured_rates(problem: Problem, device: str) -> Rates | str:
    """Measure the rate of this machine in some seconds, with small batches; return the reason if that fails.

    Args:
        problem: The problem, with trunk and images.
        device: cpu, cuda or cuda:N.
    """
    from protocols.training.train_fold import train_fold  # Only a measurement trains.

    prepare_process(device)
    spec = without_published_weights(problem.fold_specs(_ANY_METHOD, "calibration", 0)[0])
    data = problem.training_data(spec)
    few, ranks = _few(data.validation)
    try:
        batch = measured_batch(problem, spec, device)
    except TrunkError as error:
        return str(error)
    short = {"batch_size": batch, "iterations_per_epoch": 1, "max_epochs": 100, "validate_every": 1, "patience": 100}
    training = spec.training.model_copy(update=short)
    spec = spec.model_copy(update={"training": training, "validation_classes": as_ranges(ranks)})
    moments: list[float] = []
    started = time.perf_counter()

    def note(*_: object) -> None:
        moments.append(time.perf_counter())
        # Three: before the first step, after it (which warms up), and after a second one.
        if len(moments) >= 3 and moments[-1] - started > _MEASURED_SECONDS:
            raise _EnoughError

    try:
        train_fold(spec, FoldData(data.train, few), device=device, observe=note)
    except _EnoughError:
        pass
    except TrunkError as error:
        return str(error)
    seconds = (moments[-1] - moments[1]) / (len(moments) - 2)
    source = f"measured now on {device} with {problem.dataset.name}"
    if problem.dataset.fingerprint == "stand-in":
        source = f"measured now on {device} with noise in place of {problem.dataset.name}'s images"
    rate = (batch + len(few) / EVALUATION_SPEED) / seconds
    return Rates(rate, source, here=True, comparisons=compared_per_second(device))


def compared_per_second(device: str, count: int = 4000) -> float:
    """Measure how many pairs of embeddings with 128 dimensions a retrieval compares per second.

    Args:
        device: cpu, cuda or cuda:N.
        count: Number of embeddings that are compared with one another.
    """
    from protocols.metrics.retrieval import normalized, retrieval_scores

    generator = torch.Generator().manual_seed(0)
    embeddings = normalized(torch.randn(count, 128, generator=generator)).to(device)
    labels = torch.arange(count) % (count // 50)
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        retrieval_scores(embeddings, labels)
        seconds.append(time.perf_counter() - started)
    return count * count / min(seconds)


def measured_batch(problem: Problem, spec: FoldSpec, device: str) -> int:
    """Return the batch size of a measurement: that of the problem, except for large networks on a CPU.

    Args:
        problem: The problem.
        spec: One of its trainings.
        device: cpu, cuda or cuda:N.
    """
    batch = problem.training.batch_size
    if device != "cpu" or problem.trunk.is_input_features or batch * operations(spec) < _QUICK_OPERATIONS:
        return batch
    return min(batch, _MEASURED_BATCH)


def _few(images: Samples, count: int = _MEASURED_BATCH) -> tuple[Samples, Sequence[int]]:
    """Return some of the images, with at least two of a class, and the ranks of their classes."""
    order = images.labels.argsort(kind="stable")[:count]
    few = images.select(order)
    return few, tuple(sorted(set(few.labels.tolist())))
