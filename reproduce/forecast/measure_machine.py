"""Measures how fast a machine is at the parts of a run: training, augmentation, retrieval, and writing to the disk."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from protocols.datasets.stand_in import NoiseImages
from protocols.images.crops import training_batch
from protocols.images.packed_images import LabelledImages
from protocols.metrics.retrieval import normalized, retrieval_scores
from protocols.problem import Problem
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import without_published_weights
from protocols.trunks.weights import TrunkError
from reproduce.config.experiment_file import load_experiments
from reproduce.execution.devices import prepare_process
from reproduce.execution.session import open_session
from reproduce.forecast.rates import ANY_METHOD, operations
from reproduce.storage import StoragePaths
from results.spec.training_spec import ImageSettings

_SMALL_BATCH = 8
_QUICK_OPERATIONS = 2e9
"""A CPU needs less than a second for a batch with fewer operations in its forward pass."""


@dataclass(frozen=True)
class BenchSizes:
    """The sizes of the measurements; the defaults take about two minutes on two CPU cores.

    Attributes:
        experiments: Experiments of the suite whose trainings are timed, on noise instead of photographs.
        seconds: About how long each part is measured, a training about twice as long.
        queries: Number of embeddings of the retrieval. Default: the test images of CUB-200-2011.
        dimensions: Size of the embeddings.
        mebibytes: Size of the file that is written.
    """

    experiments: tuple[str, ...] = ("quickstart", "cub200_small", "mlrc_cub200_efficientnet")
    seconds: float = 4.0
    queries: int = 5924
    dimensions: int = 512
    mebibytes: int = 256


@dataclass(frozen=True)
class MachineRate:
    """What was measured, its rate with the unit, and how it was measured or why there is no rate."""

    what: str
    rate: str
    note: str


def measure_machine(where: StoragePaths, device: str, sizes: BenchSizes = BenchSizes()) -> Iterator[MachineRate]:
    """Measure the rates of this machine, and yield each as soon as it is known."""
    prepare_process(device)
    for name in sizes.experiments:
        yield from training_rates(name, where, device, sizes)
    yield augmentation_rate(sizes)
    yield retrieval_rate(sizes)
    yield disk_rate(where.artifacts.parent, sizes)


def training_rates(name: str, where: StoragePaths, device: str, sizes: BenchSizes) -> Iterator[MachineRate]:
    """Measure the training of an experiment's panels, with random weights and without its images."""
    for key, experiment in load_experiments(name, {}).items():
        problem = open_session(key, experiment, where, None, outline=True).problem
        what = f"training, {experiment.trunk.name} at {experiment.images.crop} pixels"
        try:
            batch, seconds = _seconds_of_step(problem, device, 2 * sizes.seconds)
        except TrunkError as error:
            yield MachineRate(what, "not measured", str(error))
            continue
        rate = f"{batch / seconds:.3g}"
        note = f"batches of {batch}: {rate} images/s, for `plan {key} --rate {rate}`"
        yield MachineRate(what, f"{1 / seconds:.3g} steps/s", note)


class _EnoughError(Exception):
    """The measurement has taken its time."""


def _seconds_of_step(problem: Problem, device: str, seconds: float) -> tuple[int, float]:
    """Train for some seconds without validations; return the batch size and the mean duration of a step.

    Large networks on a CPU get small batches.
    """
    spec, batch = problem.fold_specs(ANY_METHOD, "calibration", 0)[0], problem.training.batch_size
    if device == "cpu" and batch * operations(spec) > _QUICK_OPERATIONS:
        batch = min(batch, _SMALL_BATCH)
    epochs = 10**6
    training = spec.training.model_copy(update={"batch_size": batch, "iterations_per_epoch": 1, "max_epochs": epochs})
    # A training that takes its last checkpoint needs no validations.
    changes = {"training": training, "validation_classes": (), "checkpoint_epoch": epochs}
    spec = without_published_weights(spec).model_copy(update=changes)
    moments: list[float] = []

    def note(_: object) -> None:
        moments.append(time.perf_counter())
        # Three: before the first step, after it (which warms up), and after a second one.
        if len(moments) >= 3 and moments[-1] - moments[0] > seconds:
            raise _EnoughError

    with suppress(_EnoughError):
        train_fold(spec, problem.training_data(spec), device=device, record=note)
    return batch, (moments[-1] - moments[1]) / (len(moments) - 2)


def augmentation_rate(sizes: BenchSizes) -> MachineRate:
    """Measure random crops of photographs, as one training makes them."""
    rows = np.arange(32)
    images = LabelledImages(NoiseImages(Path("."), "", len(rows)), rows, rows)
    settings, generator = ImageSettings(), torch.Generator().manual_seed(0)
    seconds = _seconds_each(lambda: training_batch(images, rows, settings, generator), sizes.seconds)
    note = f"random crops to {settings.crop} pixels, one process"
    return MachineRate("augmentation", f"{len(rows) / seconds:.3g} images/s", note)


def retrieval_rate(sizes: BenchSizes) -> MachineRate:
    """Measure the retrieval metrics of a test, beside the bare product of all pairs."""
    generator = torch.Generator().manual_seed(0)
    embeddings = normalized(torch.randn(sizes.queries, sizes.dimensions, generator=generator))
    labels = torch.arange(sizes.queries) % max(1, sizes.queries // 60)
    scored = _seconds_each(lambda: retrieval_scores(embeddings, labels), sizes.seconds)
    product = _seconds_each(lambda: embeddings @ embeddings.T, sizes.seconds)
    what = f"retrieval, {sizes.queries:,} x {sizes.dimensions}"
    return MachineRate(what, f"{scored:.3g} s", f"{scored / product:.2f} times the bare product, {product:.3g} s")


def disk_rate(folder: Path, sizes: BenchSizes) -> MachineRate:
    """Measure how fast a file is written to the disk of the store, until the disk has it."""
    block = os.urandom(2**20)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        started = time.perf_counter()
        for _ in range(sizes.mebibytes):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        seconds = time.perf_counter() - started
    return MachineRate(
        "disk", f"{sizes.mebibytes / seconds:.3g} MiB/s", f"a file of {sizes.mebibytes} MiB beside the store"
    )


def _seconds_each(work: Callable[[], object], seconds: float) -> float:
    work()
    started, calls = time.perf_counter(), 0
    while not calls or time.perf_counter() - started < seconds:
        work()
        calls += 1
    return (time.perf_counter() - started) / calls
