"""The parts of `make bench-gpu`, each as pieces by name."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from losses import ProxyAnchorLoss
from losses.checks import values_are_checked
from protocols.datasets.dataset import from_packing
from protocols.images.batch_source import BatchSource
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import pack_arrays
from protocols.metrics.retrieval import normalized, retrieval_scores
from protocols.training.embedding_recorder import EpochEnd
from protocols.training.step_monitor import StepMonitor
from protocols.training.torch_state import isolated_random_numbers, use_precision
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.conditions import ImageSettings, TrainingSettings
from results.spec.trunk_spec import TrunkSpec
from tests.support.toys import toy_fold

CLASSES = 100
PRECISIONS = ("float32", "tf32", "amp")

Note = Callable[[dict[str, Any]], None]
"""Adds numbers to a piece; they are in the file at once."""
Piece = Callable[[Note], None]


class LeftOutError(Exception):
    """A piece cannot be measured on this machine. The message says why."""


@dataclass(frozen=True)
class Setup:
    """What a part gets: the device to measure, and whether to use tiny sizes."""

    device: torch.device
    smoke: bool

    @property
    def kinds(self) -> list[tuple[str, int, str]]:
        """Trunk, batch and precision of the steps that are measured."""
        trunks, batches = (("small_conv",), (8,)) if self.smoke else (("bn_inception", "resnet50"), (32, 180))
        return list(product(trunks, batches, PRECISIONS))


def finished(device: torch.device) -> float:
    """The time when the device has done all work so far."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def training_step(trunk: str, batch: int, precision: str, setup: Setup) -> Callable[[], None]:
    """One training step as the suite's loop does it, on a batch that lies on the device. The weights are random."""
    device, side = setup.device, 32 if setup.smoke else 227
    use_precision(precision)  # type: ignore[arg-type]
    model = EmbeddingModel(TrunkSpec(name=trunk, weights="random"), 128, precision=precision).place(device)  # type: ignore[arg-type]
    model.train()
    loss = ProxyAnchorLoss(CLASSES, 128).to(device)
    parameters = [*model.parameters(), *loss.parameters()]
    optimizer = torch.optim.RMSprop(parameters, lr=1e-6, weight_decay=1e-4, momentum=0.9)
    images = torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8, device=device)
    labels = torch.arange(batch, device=device) // 4
    monitor = StepMonitor(device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        embeddings = model(images)
        monitor.add_embeddings(embeddings, 0)
        with values_are_checked():
            value: Tensor = loss(embeddings, labels)
        value.backward()
        monitor.add_loss(value, 0)
        optimizer.step()

    return step


def steps_per_second(step: Callable[[], Any], device: torch.device, seconds: float) -> list[float]:
    """Steps a second in five intervals, after two steps to warm up."""
    for _ in range(2):
        step()
    rates = []
    for _ in range(5):
        started, count = finished(device), 0
        # Without a wait in between the host would run far ahead of the device.
        while finished(device) - started < seconds / 5:
            for _ in range(1 if device.type == "cpu" else 10):
                step()
                count += 1
        rates.append(count / (finished(device) - started))
    return rates


def spread(values: list[float]) -> dict[str, float]:
    """Median, lowest and highest."""
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def steps(setup: Setup) -> dict[str, Piece]:
    """Steps a second of one training alone, by trunk, batch and precision, and the GPU's memory."""

    def piece(trunk: str, batch: int, precision: str, note: Note) -> None:
        with isolated_random_numbers(str(setup.device)):
            step = training_step(trunk, batch, precision, setup)
            note(spread(steps_per_second(step, setup.device, 0.1 if setup.smoke else 4)))
        if setup.device.type == "cuda":
            note({"memory_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2)})
            torch.cuda.reset_peak_memory_stats()

    return {f"{trunk}, batch {n}, {way}": partial(piece, trunk, n, way) for trunk, n, way in setup.kinds}


def whole_loop(setup: Setup) -> dict[str, Piece]:
    """A fold's training on noise as a run does it: loader, steps and validation, on packed images of 256 x 341."""
    trunk, height, per_class = ("small_conv", 16, 4) if setup.smoke else ("bn_inception", 256, 30)

    def piece(precision: str, augmentation: str, note: Note) -> None:
        noise = np.random.default_rng(0)
        labels = np.arange(CLASSES).repeat(per_class)
        images = noise.integers(0, 256, (len(labels), height, height * 4 // 3, 3), dtype=np.uint8)
        with tempfile.TemporaryDirectory() as folder:
            names = tuple(f"{row:05}" for row in range(len(labels)))
            packing = pack_arrays(images, Path(folder) / "noise")
            dataset = from_packing("noise", tuple(f"class {c}" for c in range(CLASSES)), names, labels, packing)
            spec, data = toy_fold(
                dataset,
                training=TrainingSettings(
                    iterations_per_epoch=2 if setup.smoke else 100,
                    max_epochs=4,
                    validate_every=2,
                    precision=precision,  # type: ignore[arg-type]
                ),
                images=ImageSettings(crop=height // 2 if setup.smoke else 227, augmentation=augmentation),  # type: ignore[arg-type]
                trunk=TrunkSpec(name=trunk, weights="random"),
                embedding_size=128,
            )
            # The time after each epoch; the training has waited for the device before.
            times: list[float] = []

            def at_end(epoch: EpochEnd) -> None:
                times.append(time.perf_counter())
                note({"epochs": epoch.epoch})

            result = train_fold(spec, data, device=str(setup.device), record=at_end).result
        alone, with_validation = times[3] - times[2], times[4] - times[3]
        note(
            {
                "steps_per_second": result.iterations / 4 / alone,
                "validated_images": len(data.validation),
                "validation_seconds": with_validation - alone,
                "training_seconds": result.wall_time,
            }
        )

    ways = [*product(PRECISIONS, ("faithful",)), ("amp", "device")]
    return {f"{trunk}, {precision}, crops {way}": partial(piece, precision, way) for precision, way in ways}


def crops(setup: Setup) -> dict[str, Piece]:
    """Images a second of crops on the host and on the device, from packed images of 256 x 341, without a training."""

    def piece(way: str, resident: bool | None, note: Note) -> None:
        chance, height = np.random.default_rng(0), 16 if setup.smoke else 256
        pixels = chance.integers(0, 256, (16 if setup.smoke else 512, height, height * 4 // 3, 3), dtype=np.uint8)
        with tempfile.TemporaryDirectory() as folder:
            everything = np.arange(len(pixels))
            images = LabelledImages(pack_arrays(pixels, Path(folder) / "packed").images, everything, everything)
            settings = ImageSettings(crop=height // 2 if setup.smoke else 227, augmentation=way)  # type: ignore[arg-type]
            source = BatchSource(images, settings, setup.device, resident=resident)
            rows = (chance.integers(0, len(pixels), 32) for _ in iter(int, 1))
            batches = source.training_batches(rows, torch.Generator().manual_seed(0))
            rates = steps_per_second(lambda: next(batches), setup.device, 0.1 if setup.smoke else 8)
            note(spread([32 * value for value in rates]))
            batches.close()  # type: ignore[attr-defined]

    ways: dict[str, tuple[str, bool | None]] = {
        "host": ("faithful", None),
        "device, images kept there": ("device", True),
        "device, images sent": ("device", False),
    }
    return {name: partial(piece, *way) for name, way in ways.items()}


def retrieval(setup: Setup) -> dict[str, Piece]:
    """Seconds of the retrieval metrics at the size of the SOP test set: 60,502 images of 11,316 classes."""

    def piece(images: int, classes: int, size: int, note: Note) -> None:
        generator = torch.Generator().manual_seed(0)
        embeddings = normalized(torch.randn(images, size, generator=generator)).to(setup.device)
        labels = torch.arange(images) % classes
        seconds: list[float] = []
        for _ in range(3):
            started = finished(setup.device)
            scores = retrieval_scores(embeddings, labels).scores
            seconds.append(finished(setup.device) - started)
            note({"seconds_each": seconds, "map_at_r": scores.map_at_r})

    images, classes, size = (200, 40, 16) if setup.smoke else (60_502, 11_316, 512)
    return {f"{images:,} x {size}": partial(piece, images, classes, size)}


def run_tests(path: str, note: Note) -> None:
    """Run the tests with the mark `gpu` of a file, and note each outcome at once."""
    command = [sys.executable, "-m", "pytest", "-v", "-m", "gpu", "-p", "no:cacheprovider", "--tb=short", path]
    outcomes: dict[str, str] = {}
    failures: list[str] = []
    line = ""
    # pytest cuts the reasons of failures at the width of the terminal.
    wide = {**os.environ, "COLUMNS": "300"}
    with subprocess.Popen(command, env=wide, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tests:
        assert tests.stdout is not None
        for line in tests.stdout:
            if outcome := re.match(r"\S+?::(.*) (PASSED|FAILED|ERROR|SKIPPED|XFAIL)\b", line):
                outcomes[outcome[1]] = outcome[2].lower()
                note({"outcomes": outcomes})
            elif line.startswith(("FAILED ", "ERROR ")):
                failures.append(line.strip())
                note({"failures": failures})
    if tests.returncode:
        last = line.strip(" =\n")
        raise RuntimeError(f"pytest ended with {tests.returncode}: {last}")


def gpu_tests(setup: Setup) -> dict[str, Piece]:
    """The tests with the mark `gpu`, by file."""
    files, mark = (
        sorted(Path("tests").rglob("test_*.py")),
        re.compile(r"^(@|pytestmark = )pytest\.mark\.gpu", re.MULTILINE),
    )
    paths = [file.as_posix() for file in files if mark.search(file.read_text())]
    return {path: partial(run_tests, path) for path in paths[: 1 if setup.smoke else None]}
