"""Measures how fast a machine is at the parts of a run: training, augmentation, retrieval, and writing to the disk."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from protocols.datasets.stand_in import NoiseImages
from protocols.images.crops import training_batch
from protocols.images.packed_images import LabelledImages
from protocols.metrics.retrieval import normalized, retrieval_scores
from reproduce.config.experiment_file import load_experiments
from reproduce.execution.devices import prepare_process
from reproduce.execution.session import open_session
from reproduce.forecast.rates import measured_rates
from reproduce.storage import StoragePaths
from results.spec.training_spec import ImageSettings


@dataclass(frozen=True)
class BenchSizes:
    """The sizes of the measurements; the defaults take about two minutes on two CPU cores.

    Attributes:
        experiments: Experiments of the suite whose trainings are timed, on noise instead of photographs.
        seconds: About how long augmentation and retrieval are measured, each.
        queries: Number of embeddings of the retrieval. Default: the test images of CUB-200-2011.
        dimensions: Size of the embeddings.
        mebibytes: Size of the file that is written.
    """

    experiments: tuple[str, ...] = ("quickstart", "cub200_small", "mlrc_cub200_efficientnet")
    seconds: float = 3.0
    queries: int = 5924
    dimensions: int = 512
    mebibytes: int = 256


@dataclass(frozen=True)
class MachineRate:
    """One measured rate.

    Attributes:
        what: What was measured.
        rate: The rate with its unit, or the reason why there is none.
        note: How it was measured.
    """

    what: str
    rate: str
    note: str


def measure_machine(where: StoragePaths, device: str, sizes: BenchSizes = BenchSizes()) -> Iterator[MachineRate]:
    """Measure the rates of this machine, one after another.

    Args:
        where: Paths of the store; the file is written beside it.
        device: cpu, cuda or cuda:N.
        sizes: The sizes of the measurements.

    Yields:
        Each rate as soon as it is measured.

    Raises:
        InputError: An experiment cannot be opened, or the folder of the store cannot be made.
    """
    for name in sizes.experiments:
        yield from training_rates(name, where, device)
    prepare_process(device)
    yield augmentation_rate(sizes)
    yield retrieval_rate(sizes)
    yield disk_rate(where.artifacts.parent, sizes)


def training_rates(name: str, where: StoragePaths, device: str) -> Iterator[MachineRate]:
    """Measure the training of an experiment's first method, with random weights and without its images."""
    for key, experiment in load_experiments(name, {}).items():
        session = open_session(key, experiment, where, None, outline=True)
        rates = measured_rates(session.problem, device)
        batch, size = experiment.training.batch_size, experiment.images.crop
        what = f"training, {experiment.trunk.name} at {size} pixels"
        if isinstance(rates, str):
            yield MachineRate(what, "not measured", rates)
            continue
        steps = f"{rates.training / batch:.3g} steps/s"
        note = f"batches of {batch}: {rates.training:.3g} images/s, for `plan {key} --rate {rates.training:.3g}`"
        yield MachineRate(what, steps, note)


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
    """Return the mean duration of a call, over calls that take about `seconds`, after one call to warm up."""
    work()
    started, calls = time.perf_counter(), 0
    while not calls or time.perf_counter() - started < seconds:
        work()
        calls += 1
    return (time.perf_counter() - started) / calls
