"""`make bench-gpu`: measures a GPU; numbers are in results/measured/bench_gpu.json after every piece.

Each part runs in a process of its own. A piece that fails, or whose process dies or takes too long, is in the file with
the reason, and the rest goes on; the next command tries it again, and repeats nothing that is finished. `--smoke` runs
all parts on the CPU with tiny sizes, to test this file. Nothing here decides a test.
"""

import argparse
import json
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
from protocols.images.batch_source import BatchSource
from protocols.images.packed_images import LabelledImages
from protocols.metrics.retrieval import normalized, query_scores
from protocols.training.embedding_recorder import EpochEnd
from protocols.training.step_monitor import StepMonitor
from protocols.training.torch_state import torch_provenance, use_precision
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from reproduce.run.devices import prepare_process
from results.atomic_files import write_atomically
from results.spec.conditions import ImageSettings, TrainingSettings
from results.spec.trunk_spec import TrunkSpec
from tests.support.packs import pack_arrays, packed_dataset
from tests.support.toys import toy_fold

OUT = Path("results/measured/bench_gpu.json")
PART_SECONDS = 480
CLASSES = 100
PRECISIONS = ("float32", "tf32", "amp")

Piece = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Setup:
    """The device to measure, and whether to use tiny sizes."""

    device: torch.device
    smoke: bool

    @property
    def side(self) -> int:
        return 16 if self.smoke else 256

    def finished(self) -> float:
        """The time when the device has done all work so far."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def rates(self, step: Callable[[], Any], size: int = 1) -> dict[str, float]:
        """Median, lowest and highest of `size` times the steps a second in five intervals, after two to warm up."""
        for _ in range(2):
            step()
        found = []
        for _ in range(5):
            started, count = self.finished(), 0
            # Without a wait in between the host would run far ahead of the device.
            while self.finished() - started < (0.02 if self.smoke else 1):
                for _ in range(1 if self.smoke else 10):
                    step()
                    count += 1
            found.append(size * count / (self.finished() - started))
        return {"median": statistics.median(found), "lowest": min(found), "highest": max(found)}


def steps(setup: Setup) -> dict[str, Piece]:
    """Steps a second of one training, by trunk, batch and precision, and the GPU's memory."""

    def piece(trunk: str, batch: int, precision: Any) -> dict[str, Any]:
        use_precision(precision)
        found: dict[str, Any] = setup.rates(training_step(trunk, batch, precision, setup))
        if setup.device.type == "cuda":
            found["memory_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
            torch.cuda.reset_peak_memory_stats()
        return found

    trunks, batches = (("small_conv",), (8,)) if setup.smoke else (("bn_inception", "resnet50"), (32, 180))
    kinds = product(trunks, batches, PRECISIONS)
    return {f"{trunk}, batch {batch}, {way}": partial(piece, trunk, batch, way) for trunk, batch, way in kinds}


def training_step(trunk: Any, batch: int, precision: Any, setup: Setup) -> Callable[[], None]:
    """One training step as the suite's loop does it, on a batch that lies on the device. The weights are random."""
    device, side = setup.device, 32 if setup.smoke else 227
    model = EmbeddingModel(TrunkSpec(name=trunk, weights="random"), 128, precision=precision).place(device)
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


def whole_loop(setup: Setup) -> dict[str, Piece]:
    """A fold's training on noise as a run does it: loader, steps and validation, on packed images of 256 x 341."""
    trunk, per_class = ("small_conv", 4) if setup.smoke else ("bn_inception", 30)

    def piece(precision: Any, augmentation: Any) -> dict[str, Any]:
        labels = np.arange(CLASSES).repeat(per_class)
        with tempfile.TemporaryDirectory() as folder:
            names = tuple(f"{row:05}" for row in range(len(labels)))
            packing = pack_arrays(noise(len(labels), setup.side), Path(folder) / "noise")
            dataset = packed_dataset("noise", tuple(f"class {c}" for c in range(CLASSES)), names, labels, packing)
            iterations = 2 if setup.smoke else 100
            training = TrainingSettings(
                iterations_per_epoch=iterations, max_epochs=4, validate_every=2, precision=precision
            )
            images = ImageSettings(crop=setup.side * 7 // 8, augmentation=augmentation)
            spec, data = toy_fold(
                dataset,
                training=training,
                images=images,
                trunk=TrunkSpec(name=trunk, weights="random"),  # type: ignore[arg-type]
                embedding_size=128,
            )
            # The time after each epoch; the training has waited for the device before.
            times: list[float] = []

            def at_end(epoch: EpochEnd) -> None:
                times.append(time.perf_counter())

            train_fold(spec, data, device=str(setup.device), record=at_end)
        alone, with_validation = times[3] - times[2], times[4] - times[3]
        validation = {"validated_images": len(data.validation), "validation_seconds": with_validation - alone}
        return {"steps_per_second": iterations / alone, **validation}

    ways = [*product(PRECISIONS, ("faithful",)), ("amp", "device")]
    return {f"{trunk}, {precision}, crops {way}": partial(piece, precision, way) for precision, way in ways}


def crops(setup: Setup) -> dict[str, Piece]:
    """Images a second of crops on the host and on the device, from packed images of 256 x 341, without a training."""

    def piece(way: Any, resident: bool | None) -> dict[str, Any]:
        chance, pixels = np.random.default_rng(0), noise(16 if setup.smoke else 512, setup.side)
        with tempfile.TemporaryDirectory() as folder:
            everything = np.arange(len(pixels))
            images = LabelledImages(pack_arrays(pixels, Path(folder) / "packed").images, everything, everything)
            settings = ImageSettings(crop=setup.side * 7 // 8, augmentation=way)
            source = BatchSource(images, settings, setup.device, resident=resident)
            rows = (chance.integers(0, len(pixels), 32) for _ in iter(int, 1))
            batches = source.training_batches(rows, torch.Generator().manual_seed(0))
            found = setup.rates(lambda: next(batches), 32)
            batches.close()  # type: ignore[attr-defined]
        return found

    ways: dict[str, tuple[str, bool | None]] = {
        "host": ("faithful", None),
        "device, images kept there": ("device", True),
        "device, images sent": ("device", False),
    }
    return {name: partial(piece, *way) for name, way in ways.items()}


def noise(images: int, height: int) -> Any:
    return np.random.default_rng(0).integers(0, 256, (images, height, height * 4 // 3, 3), dtype=np.uint8)


def retrieval(setup: Setup) -> dict[str, Piece]:
    """Seconds of the retrieval metrics at the size of the SOP test set: 60,502 images of 11,316 classes."""
    images, classes, size = (200, 40, 16) if setup.smoke else (60_502, 11_316, 512)

    def piece() -> dict[str, Any]:
        rows = normalized(torch.randn(images, size, generator=torch.Generator().manual_seed(0))).to(setup.device)
        seconds = []
        for _ in range(3):
            started = setup.finished()
            scores = query_scores(rows, torch.arange(images) % classes).mean()
            seconds.append(setup.finished() - started)
        return {"seconds_each": seconds, "map_at_r": scores.map_at_r}

    return {f"{images:,} x {size}": piece}


def gpu_tests(setup: Setup) -> dict[str, Piece]:
    """The tests with the mark `gpu`, by file."""

    def piece(path: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "--tb=short", path]
        lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        return {"summary": lines[-1], "failures": [line for line in lines if line.startswith(("FAILED ", "ERROR "))]}

    mark = re.compile(r"^(@|pytestmark = )pytest\.mark\.gpu", re.MULTILINE)
    paths = [file.as_posix() for file in sorted(Path("tests").rglob("test_*.py")) if mark.search(file.read_text())]
    return {path: partial(piece, path) for path in paths[: 1 if setup.smoke else None]}


PARTS: dict[str, Callable[[Setup], dict[str, Piece]]] = {
    "retrieval": retrieval,
    "tests": gpu_tests,
    "steps": steps,
    "loop": whole_loop,
    "crops": crops,
}


def measure(part: str, setup: Setup, out: Path) -> None:
    """Measure the pieces of a part that the file lacks, in this process."""
    prepare_process(str(setup.device))
    origin = {**torch_provenance(setup.device).model_dump(mode="json"), "smoke": setup.smoke}
    for name, piece in PARTS[part](setup).items():
        if name in written(out).get(part, {}):
            continue
        write(out, part, name, {"failed": f"its process ended, or took more than {PART_SECONDS} s for the part"})
        use_precision("float32")
        try:
            found = piece()
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {error}".partition("\n")[0]}
        write(out, part, name, {**found, "origin": origin})


def written(out: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The numbers of a file: {part: {piece: numbers}}."""
    found: dict[str, dict[str, dict[str, Any]]] = json.loads(out.read_text()) if out.exists() else {}
    return found


def write(out: Path, part: str, name: str, numbers: dict[str, Any]) -> None:
    content = written(out)
    content.setdefault(part, {})[name] = numbers
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, json.dumps(content, indent=1) + "\n")


def run_part(part: str, out: Path, smoke: bool) -> str:
    """Run a part in a new process, and in another one after a piece that ended it; return what came of it in a line."""
    content = written(out)
    content[part] = {name: found for name, found in content.get(part, {}).items() if "failed" not in found}
    write_atomically(out, json.dumps(content, indent=1) + "\n")
    command = [sys.executable, "-m", "tests.benchmarks.gpu", "--part", part, "--out", str(out), *["--smoke"] * smoke]
    started, code, before = time.perf_counter(), 1, -1
    while code and len(written(out)[part]) > before and time.perf_counter() - started < PART_SECONDS:
        before = len(written(out)[part])
        try:
            code = subprocess.run(command, timeout=PART_SECONDS - (time.perf_counter() - started)).returncode
        except subprocess.TimeoutExpired:
            code = 1
    failed = {name: found["failed"] for name, found in written(out)[part].items() if "failed" in found}
    said = "".join(f"\n  failed: {name}: {reason}" for name, reason in failed.items())
    done = len(written(out)[part]) - len(failed)
    return f"{part}: {done} pieces done, {len(failed)} failed, {time.perf_counter() - started:.0f} s{said}"


def main(arguments: list[str] | None = None) -> int:
    """Measure all parts; the exit status is 2 without CUDA."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.gpu", description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, help=f"default: {OUT}")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all, in this order")
    parser.add_argument("--smoke", action="store_true", help="on the CPU with tiny sizes; needs --out")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.smoke and asked.out is None:
        parser.error("--smoke needs --out, so that no record is replaced by numbers of a CPU")
    if not asked.smoke and not torch.cuda.is_available():
        print("bench-gpu: this machine has no CUDA, so nothing was measured")
        return 2
    out = asked.out or OUT
    if asked.part:
        measure(asked.part, Setup(torch.device("cpu" if asked.smoke else "cuda"), asked.smoke), out)
        return 0
    for part in asked.parts:
        print(run_part(part, out, asked.smoke), flush=True)
    print(f"written: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
