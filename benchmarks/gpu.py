"""`make bench-gpu`: the suite on a GPU beside pytorch-metric-learning's own trainer, in at most nine minutes.

BN-Inception at 227 pixels with random weights, batches of 32, Proxy-Anchor, RMSprop. Numbers are in the record after
every part. Each part is a process of its own; one that fails or takes too long is named in the record, and the rest
goes on. `--smoke` runs everything on a CPU with tiny sizes, to test this file. Nothing here decides a test.
"""

import argparse
import json
import os
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from protocols.datasets.dataset import DataRequest, Dataset
from protocols.datasets.dataset_registry import open_dataset
from protocols.jobs import TrainJob
from protocols.machine.torch_state import torch_provenance
from protocols.metrics.retrieval import normalized, query_scores
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import EmbeddingModel
from protocols.trunks.trunk_registry import identified_trunk
from reproduce.run.devices import prepare_process
from reproduce.run.local import LocalProcesses
from reproduce.run.tasks import TrainTask
from results.atomic_files import write_atomically
from results.records.records import FoldResult
from results.spec.component import Component
from results.spec.conditions import ImageSettings, OptimizerSettings, TrainingSettings
from results.spec.data_choice import DataChoice
from results.spec.method import Method
from results.spec.trunk_spec import TrunkSpec
from tests.support.toys import toy_fold

OUT = Path("results/measured/bench_gpu.json")
SECONDS = {"suite": 155, "pml": 100, "first_step": 60, "run": 65, "precision": 75, "tests": 40, "retrieval": 10}
"""The parts in their order, and how long each may take."""
CLASSES, PER_CLASS = 100, 60
PROXY_ANCHOR = Method(name="proxy_anchor", loss=Component(name="ProxyAnchorLoss"), samples_per_class=4, loss_lr=1e-4)


@dataclass(frozen=True)
class Bench:
    """The device to measure, whether sizes are tiny, and the folder of the images, of the cache and of the record."""

    device: torch.device
    smoke: bool
    images: Path
    work: Path

    def dataset(self, resize: int) -> Dataset:
        """The images as the suite reads them; packed once."""
        settings = ImageSettings(resize=resize)
        return open_dataset(DataRequest(DataChoice(name="folder", root=self.images), settings, self.work / "cache"))

    def side(self, pixels: int) -> int:
        return 32 if self.smoke else pixels

    def four(self, precision: Any) -> list[list[FoldResult]]:
        """Train four folds at once, as a run does it: with few epochs and with many, in processes that are warm."""
        with closing(LocalProcesses(self.device.type, 4)) as executor:
            found = []
            for epochs in (2, 2, 8):
                folds = [self.fold(fold, precision, epochs) for fold in range(4)]
                futures = [executor.submit(TrainTask(TrainJob(spec), data, None)) for spec, data in folds]
                found.append([future.result().result for future in futures])  # type: ignore[union-attr]
        return found[1:]

    def fold(self, fold: int = 0, precision: Any = "float32", epochs: int = 4, seed: int = 1) -> Any:
        """MLRC's training with fewer epochs: the specification and the images."""
        steps = {"iterations_per_epoch": 2 if self.smoke else 100, "max_epochs": epochs, "precision": precision}
        return toy_fold(
            self.dataset(self.side(256)),
            PROXY_ANCHOR,
            TrainingSettings(**steps),
            fold=fold,
            seed=seed,
            images=ImageSettings(resize=self.side(256), crop=self.side(227)),
            trunk=TrunkSpec(name="small_conv" if self.smoke else "bn_inception", weights="random"),
            embedding_size=128,
        )


def suite(bench: Bench) -> Iterator[tuple[str, Any]]:
    """Steps a second with a validation every second epoch, alone and four folds at once."""
    for precision in ("float32", "amp", "ieee"):
        with gpu_share(bench) as share:
            times: list[float] = []

            def at_validation(model: EmbeddingModel, iterations: int, times: list[float] = times) -> None:
                times.append(time.perf_counter())

            spec, data = bench.fold(precision=precision, epochs=2 if precision == "ieee" else 4)
            train_fold(spec, data, device=str(bench.device), observe=at_validation)
        steps = spec.conditions.training.iterations_per_epoch
        # A validation is after every second epoch.
        rates = {"steps_per_second": 2 * steps / (times[-1] - times[-2])}
        rates["from_the_start"] = 2 * steps * (len(times) - 1) / (times[-1] - times[0])
        yield f"alone, {precision}", {**rates, "validated": len(data.validation), **share}
        if precision == "ieee":
            return
        with gpu_share(bench) as share:
            short, long = bench.four(precision)
        steps = sum(result.iterations for result in long) - sum(result.iterations for result in short)
        # What a training takes before its first steps is not in the difference.
        rate = steps / (max(result.wall_time for result in long) - max(result.wall_time for result in short))
        graphs = long[0].provenance.math.get("CUDA graphs")
        # MLRC: 50 trials and 10 reproductions of four folds, as long as the issue assumes: 6,000 steps each.
        hours = (50 + 10) * 4 * 6000 / rate / 3600
        yield f"four at once, {precision}", {"steps_per_second": rate, "graphs": graphs, "cell_hours": hours, **share}


@contextmanager
def gpu_share(bench: Bench) -> Iterator[dict[str, float]]:
    """Mean share of the time in which the GPU had work, by nvidia-smi, in percent."""
    found: dict[str, float] = {}
    seen: list[float] = []
    done = threading.Event()

    def watch() -> None:
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not done.wait(0.5):
            seen.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]))

    if bench.device.type == "cuda":
        threading.Thread(target=watch, daemon=True).start()
    yield found
    done.set()
    found.update({"gpu_percent": statistics.mean(seen)} if seen else {})


def pml(bench: Bench) -> Iterator[tuple[str, Any]]:
    """pytorch-metric-learning's trainer and tester as their users write it, on the files of the same fold."""
    for count in (1, 4):
        command = [sys.executable, "-m", "benchmarks.pml_peer", str(bench.images), str(bench.device)]
        command += ["2", "32", "8", "1"] if bench.smoke else ["50", "227", "32", "8"]
        with (bench.work / "peer.txt").open("w+") as said:
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": said}
            runs = [subprocess.Popen(command, text=True, **pipes) for _ in range(count)]
            try:
                for run in runs:
                    assert run.stdout is not None
                    next(line for line in run.stdout if line == "ready\n")
                for run in runs:
                    assert run.stdin is not None
                    run.stdin.write("go\n")
                    run.stdin.flush()
                rates = [[float(rate) for rate in run.communicate()[0].split()[-2:]] for run in runs]
                warm, whole = map(sum, zip(*rates, strict=True))
            except (StopIteration, ValueError, OSError):
                said.seek(0)
                raise RuntimeError(f"the peer failed: {said.read().strip().splitlines()[-1:]}") from None
        yield "alone" if count == 1 else "four at once", {"steps_per_second": warm, "from_the_start": whole}


EXPERIMENT = """
title: A small run
dataset: {{name: folder}}
methods: [contrastive, proxy_anchor]
trunk: {{name: {trunk}, weights: random, batch_norm: frozen}}
images: {{resize: {resize}, crop: {crop}}}
training: {{iterations_per_epoch: {steps}, max_epochs: {epochs}, validate_every: {epochs}}}
search: {{trials: 1}}
reproductions: 1
"""


def first_step(bench: Bench) -> Iterator[tuple[str, Any]]:
    """Seconds from a command until its first training of one step is stored, with images in the cache."""
    bench.dataset(bench.side(256))
    yield "until the first training of one step", run_command(bench, only_first=True, steps=1, epochs=1)


def whole_run(bench: Bench) -> Iterator[tuple[str, Any]]:
    """A whole small run of 16 trainings, with its page."""
    yield "whole", run_command(bench, only_first=False, steps=2 if bench.smoke else 50, epochs=2)


def run_command(bench: Bench, *, only_first: bool, **training: int) -> dict[str, float]:
    """Run a small experiment to its end, or until its first training is stored, and return how long that took."""
    sizes = {"resize": bench.side(256), "crop": bench.side(227)}
    trunk, name = "small_conv" if bench.smoke else "bn_inception", f"run_{training['steps']}"
    file, store = bench.work / f"{name}.yaml", bench.work / f"{name}.sqlite"
    file.write_text(EXPERIMENT.format(**sizes, **training, trunk=trunk))
    command = [sys.executable, "-m", "reproduce", "run", str(file), "--data", str(bench.images), "--workers", "4"]
    command += ["--store", str(store), "--cache", str(bench.work / "cache"), "--device", bench.device.type]
    with (bench.work / "run.txt").open("w+") as said:
        started = time.time()
        run = subprocess.Popen(command, stdout=said, stderr=said)
        while (code := run.poll()) is None and not (only_first and stored_seconds(store)):
            time.sleep(0.1)
        took = time.time() - started
        run.terminate()
        with suppress(subprocess.TimeoutExpired):  # It ends MPS too.
            run.wait(8)
        if code:
            said.seek(0)
            raise RuntimeError(said.read().strip().splitlines()[-1])
    return {"seconds": took, "the first training took": stored_seconds(store)[0]}


def stored_seconds(store: Path) -> list[float]:
    """How long each training took that a store has, if it is there."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as rows:
        return [json.loads(row)["wall_time"] for (row,) in rows.execute("select content from trainings order by rowid")]
    return []


def precision(bench: Bench) -> Iterator[tuple[str, Any]]:
    """Validation MAP@R of one setting in each precision over five seeds: does TF32 change where a training goes?"""
    weights = "random" if bench.smoke else "imagenet"
    trunk = identified_trunk(TrunkSpec(name="small_conv" if bench.smoke else "efficientnet_lite0", weights=weights))
    optimizer = OptimizerSettings(name="Adam", lr=1e-4, arguments={})
    steps = {"iterations_per_epoch": 2 if bench.smoke else 100, "max_epochs": 2, "optimizer": optimizer}
    dataset = bench.dataset(bench.side(128))
    with closing(LocalProcesses(bench.device.type, 2 if bench.smoke else 5)) as executor:
        futures = {}
        for kind in ("amp", "float32", "ieee"):
            for seed in range(1 if bench.smoke else 5):
                spec, data = toy_fold(
                    dataset,
                    PROXY_ANCHOR,
                    TrainingSettings(precision=kind, **steps),
                    seed=seed,
                    images=ImageSettings(resize=bench.side(128), crop=bench.side(112)),
                    trunk=trunk,
                    embedding_size=128,
                )
                futures[kind, seed] = executor.submit(TrainTask(TrainJob(spec), data, None))
        for kind in ("amp", "float32", "ieee"):
            scores = [f.result().result.best_map_at_r for (k, _), f in futures.items() if k == kind]  # type: ignore[union-attr]
            yield kind, {"best_validation_map_at_r": scores}


def retrieval(bench: Bench) -> Iterator[tuple[str, Any]]:
    """Seconds of the retrieval metrics at the size of SOP's test set, and of faiss's search alone if it is there."""
    images, classes, size = (200, 40, 16) if bench.smoke else (60_502, 11_316, 512)
    rows = normalized(torch.randn(images, size, generator=torch.Generator().manual_seed(0))).to(bench.device)
    yield f"{images:,} x {size}", {"seconds": timed(lambda: query_scores(rows, torch.arange(images) % classes))}
    try:
        import faiss

        index = faiss.index_cpu_to_all_gpus(faiss.IndexFlatL2(size))
        values = rows.cpu().numpy()
        index.add(values)
        yield "faiss-gpu, 21 neighbours", {"seconds": timed(lambda: index.search(values, 21))}
    except (ImportError, AttributeError, NameError) as error:  # faiss for a CPU has no names of a GPU.
        yield "faiss-gpu, 21 neighbours", {"failed": f"{type(error).__name__}: {error}"}


def timed(work: Callable[[], Any]) -> list[float]:
    found = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return found


def gpu_tests(bench: Bench) -> Iterator[tuple[str, Any]]:
    """The tests with the mark `gpu`."""
    mark = re.compile(r"^(@|pytestmark = )pytest\.mark\.gpu", re.MULTILINE)
    paths = [file.as_posix() for file in sorted(Path("tests").rglob("test_*.py")) if mark.search(file.read_text())]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "--tb=short"]
    command += paths[: 1 if bench.smoke else None]
    wide = os.environ | {"COLUMNS": "400"}  # Or the reasons of failures are cut off.
    lines = subprocess.run(command, capture_output=True, text=True, env=wide).stdout.splitlines()
    failures = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    yield "tests", {"summary": lines[-1], "failures": failures}


PARTS: dict[str, Callable[[Bench], Iterator[tuple[str, Any]]]] = {
    "suite": suite,
    "pml": pml,
    "first_step": first_step,
    "run": whole_run,
    "precision": precision,
    "tests": gpu_tests,
    "retrieval": retrieval,
}


def make_images(folder: Path, smoke: bool) -> None:
    """Write smooth pictures of a pattern for each class, as large as photographs of CUB-200-2011."""
    classes, per_class, size = (16, 4, (48, 36)) if smoke else (CLASSES, PER_CLASS, (500, 375))

    def picture(number: int) -> None:
        kind, chance = number // per_class, np.random.default_rng(number)
        values = np.random.default_rng(-1 - kind & 0xFFFF).integers(0, 256, (8, 8, 3)) * 0.6
        small = (values + chance.integers(0, 100, (8, 8, 3))).clip(0, 255).astype(np.uint8)
        path = folder / f"{kind:03}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).save(path, quality=90)

    with ThreadPoolExecutor() as pool:
        list(pool.map(picture, range(classes * per_class)))


def measure(part: str, bench: Bench, out: Path) -> None:
    """Measure a part in this process and write each number as soon as it is there."""
    prepare_process(str(bench.device))
    origin = {**torch_provenance(bench.device).model_dump(mode="json"), "smoke": bench.smoke}
    write(out, part, {"origin": origin, "images": len(list(bench.images.glob("*/*")))})
    try:
        for name, found in PARTS[part](bench):
            write(out, part, {name: found})
    except Exception as error:
        write(out, part, {"failed": f"{type(error).__name__}: {error}".partition("\n")[0]})


def write(out: Path, part: str, numbers: dict[str, Any]) -> None:
    content = json.loads(out.read_text()) if out.exists() else {}
    content.setdefault(part, {}).update(numbers)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, json.dumps(content, indent=1) + "\n")
    print(part, {key: value for key, value in numbers.items() if key != "origin"}, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Measure all parts; the exit status is 2 without CUDA."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, help=f"default: {OUT}")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all, in this order")
    parser.add_argument("--data", type=Path, help="folder with one folder of images per class; default: made here")
    parser.add_argument("--smoke", action="store_true", help="on the CPU with tiny sizes; needs --out")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.smoke and asked.out is None:
        parser.error("--smoke needs --out, so that no record is replaced by numbers of a CPU")
    if not asked.smoke and not torch.cuda.is_available():
        print("bench-gpu: this machine has no CUDA, so nothing was measured")
        return 2
    out = asked.out or OUT
    if asked.part:
        measure(
            asked.part, Bench(torch.device("cpu" if asked.smoke else "cuda"), asked.smoke, asked.data, asked.work), out
        )
        return 0
    with tempfile.TemporaryDirectory() as work:
        images = asked.data or Path(work) / "images"
        if asked.data is None:
            make_images(images, asked.smoke)
        for part in asked.parts:
            content = json.loads(out.read_text()) if out.exists() else {}
            write_atomically(out, json.dumps({key: found for key, found in content.items() if key != part}))
            command = [sys.executable, "-m", "benchmarks.gpu", "--part", part, "--out", str(out)]
            command += ["--data", str(images), "--work", work, *["--smoke"] * asked.smoke]
            most = SECONDS[part] * (10 if asked.smoke else 1)
            process = subprocess.Popen(command, start_new_session=True)
            try:
                code: int | str = process.wait(most)
            except subprocess.TimeoutExpired:
                code = f"it took more than {most} s"
            finally:
                with suppress(ProcessLookupError):  # What it started and left would slow the next part.
                    os.killpg(process.pid, signal.SIGKILL)
            if code:
                write(out, part, {"failed": f"its process ended: {code}"})
    print(f"written: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
