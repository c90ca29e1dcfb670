"""The parts of `make bench-gpu`. Each writes its file anew after every number, so a time limit loses one number."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor
from torch.multiprocessing import get_context

from losses import ProxyAnchorLoss
from losses.checks import values_are_checked
from protocols.images.batch_source import BatchSource
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import pack_arrays
from protocols.metrics.retrieval import normalized, retrieval_scores
from protocols.training.step_monitor import StepMonitor
from protocols.training.torch_state import isolated_random_numbers
from protocols.trunks.embedding_model import EmbeddingModel
from reproduce.execution.devices import prepare_process
from results.spec.training_spec import ImageSettings
from results.spec.trunk_spec import TrunkSpec
from results.whole_files import write_whole

CLASSES = 100


@dataclass(frozen=True)
class Setup:
    """What a part gets.

    Attributes:
        device: The device to measure.
        smoke: Whether to use tiny sizes.
        images: Folder of CUB-200-2011; None for none.
        out: The part's file.
    """

    device: torch.device
    smoke: bool
    images: Path | None
    out: Path

    def write(self, content: dict[str, Any]) -> None:
        """Write all numbers so far."""
        write_whole(self.out, json.dumps(content))


def _finished(device: torch.device) -> float:
    """The time when the device has done all work so far."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def training_step(trunk: str, batch: int, way: str, setup: Setup) -> Callable[[], None]:
    """One training step as the suite's loop does it, on a batch that lies on the device.

    Args:
        trunk: Name of the trunk; its weights are random.
        batch: Images per batch.
        way: `float32` or `amp`.
        setup: Device and sizes.
    """
    device, side = setup.device, 32 if setup.smoke else 227
    model = EmbeddingModel(TrunkSpec(name=trunk, weights="random"), 128, precision=way).place(device)  # type: ignore[arg-type]
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


def steps_per_second(step: Callable[[], None], device: torch.device, seconds: float) -> list[float]:
    """Steps a second in five intervals, after two steps to warm up."""
    for _ in range(2):
        step()
    rates = []
    for _ in range(5):
        started, count = _finished(device), 0
        # Without a wait in between the host would run far ahead of the device.
        while _finished(device) - started < seconds / 5:
            for _ in range(1 if device.type == "cpu" else 10):
                step()
                count += 1
        rates.append(count / (_finished(device) - started))
    return rates


def _rate(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def steps(setup: Setup) -> None:
    """Steps a second of one fold, by trunk, batch and way. TF32 is on for products and convolutions."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    content: dict[str, Any] = {}
    trunks, batches = (("small_conv",), (8,)) if setup.smoke else (("bn_inception", "resnet50"), (32, 180))
    for trunk in trunks:
        for batch in batches:
            for way in ("float32", "amp"):
                name = f"{trunk}, batch {batch}, {way}"
                try:
                    with isolated_random_numbers(str(setup.device)):
                        step = training_step(trunk, batch, way, setup)
                        content[name] = _rate(steps_per_second(step, setup.device, 0.1 if setup.smoke else 4))
                except Exception as error:  # one way that fails is a result; the others go on
                    content[name] = {"failed": str(error).partition("\n")[0]}
                setup.write(content)


def _fold(trunk: str, batch: int, setup: Setup, ready: Any, results: Any) -> None:
    """One fold's process: waits until all folds are ready, then measures."""
    prepare_process(str(setup.device))
    step = training_step(trunk, batch, "float32", setup)
    step()
    ready.wait(60)
    results.put(statistics.median(steps_per_second(step, setup.device, 0.2 if setup.smoke else 5)))


def folds(setup: Setup) -> None:
    """Steps a second of all folds together: 1, 2 and 4 processes on one device, at batch 32."""
    content: dict[str, Any] = {}
    context = get_context("spawn")
    for trunk in ("small_conv",) if setup.smoke else ("bn_inception", "resnet50"):
        for number in (1, 2) if setup.smoke else (1, 2, 4):
            ready, results = context.Barrier(number), context.Queue()
            arguments = (trunk, 8 if setup.smoke else 32, setup, ready, results)
            processes = [context.Process(target=_fold, args=arguments) for _ in range(number)]
            for process in processes:
                process.start()
            try:
                content[f"{trunk}, {number} folds"] = sum(results.get(timeout=100) for _ in processes)
            except Empty:
                content[f"{trunk}, {number} folds"] = {"failed": "a process ended without a result"}
            for process in processes:
                process.join(10)
                process.terminate()
            setup.write(content)


def augmentation(setup: Setup) -> None:
    """Images a second of both augmentations, from packed images of 256 x 341 pixels, without a training."""
    content: dict[str, Any] = {}
    chance, height = np.random.default_rng(0), 16 if setup.smoke else 256
    pixels = chance.integers(0, 256, (16 if setup.smoke else 512, height, height * 4 // 3, 3), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        packing = pack_arrays(pixels, Path(folder) / "packed")
        everything = np.arange(len(pixels))
        images = LabelledImages(packing.images, everything, everything)
        for way, resident in (("faithful", None), ("device", True), ("device", False)):
            settings = ImageSettings(crop=height // 2 if setup.smoke else 227, augmentation=way)  # type: ignore[arg-type]
            source = BatchSource(images, settings, setup.device, resident=resident)
            rows = (chance.integers(0, len(pixels), 32) for _ in iter(int, 1))
            batches = source.training_batches(rows, torch.Generator().manual_seed(0))
            rates = steps_per_second(lambda stream=batches: next(stream), setup.device, 0.1 if setup.smoke else 8)  # type: ignore[misc]
            name = way if resident is None else f"{way}, images {'kept on the device' if resident else 'sent'}"
            content[name] = _rate([32 * value for value in rates])
            batches.close()  # type: ignore[attr-defined]
            setup.write(content)


def retrieval(setup: Setup) -> None:
    """Seconds of the retrieval metrics at the size of the SOP test set: 60,502 images of 11,316 classes."""
    images, classes, size = (200, 40, 16) if setup.smoke else (60_502, 11_316, 512)
    generator = torch.Generator().manual_seed(0)
    embeddings = normalized(torch.randn(images, size, generator=generator)).to(setup.device)
    labels = torch.arange(images) % classes
    seconds = []
    for _ in range(3):
        started = _finished(setup.device)
        scores = retrieval_scores(embeddings, labels).scores
        seconds.append(_finished(setup.device) - started)
        setup.write({"images": images, "dimensions": size, "seconds_each": seconds, "map_at_r": scores.map_at_r})


def gpu_tests(setup: Setup) -> None:
    """The tests that are marked `gpu`, by outcome."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "tests"]
    if setup.smoke:
        command[-1] = "tests/protocols/training/train_fold/test_precision.py"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    failures = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    setup.write({"exit_status": done.returncode, "summary": lines[-1] if lines else "", "failures": failures})


def short_experiment(folder: Path) -> Path:
    """Write `mlrc_cub200_efficientnet` with two epochs per training, and return the file."""
    experiment = yaml.safe_load(Path("reproduce/experiments/mlrc_cub200_efficientnet.yaml").read_text())
    experiment |= {"training": {"max_epochs": 2}, "test_curves": False}
    file = folder / "short.yaml"
    file.write_text(yaml.safe_dump(experiment))
    return file


def short_run(setup: Setup) -> None:
    """A short `mlrc_cub200_efficientnet` on a folder of images, if there is one."""
    if setup.images is None:
        setup.write({"left_out": "no folder was given with --images"})
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "reproduce", "run", str(short_experiment(Path(folder))), "--subset"]
        command += ["--data", str(setup.images), "--methods", "contrastive", "--trials", "1", "--reproductions", "1"]
        command += ["--device", str(setup.device), "--store", f"{folder}/store.db", "--cache", f"{folder}/cache"]
        command += ["--artifacts", f"{folder}/artifacts", "--tables", f"{folder}/tables"]
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        last = (done.stderr if done.returncode else done.stdout).strip().splitlines()[-3:]
        setup.write({"exit_status": done.returncode, "run_seconds": time.perf_counter() - started, "last_lines": last})


PARTS: dict[str, Callable[[Setup], None]] = {
    "tests": gpu_tests,
    "retrieval": retrieval,
    "steps": steps,
    "folds": folds,
    "augmentation": augmentation,
    "run": short_run,
}
