"""`python -m tests.benchmarks.images`: images a second that a training sees, by the way its crops are made.

Four ways side by side in one run, for one fold and for several folds at once (a process each, on the same device):

- step: the same training step on a batch that already lies on the device, which no input can beat;
- faithful: packed images, each crop resized by Pillow;
- device: packed images, a batch resized at once where the network trains;
- usual: a DataLoader whose workers decode, resize and crop each JPEG again in every epoch. It hands over uint8 pixels,
  which is less work than the usual float tensors.

The ways alternate and the median of the rounds is shown, with ratios, since those carry over from machine to machine.
The table goes to the terminal, all numbers and their origin to a JSON file. Nothing here decides a test.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
import torch
from PIL import Image
from pytorch_metric_learning.losses import ContrastiveLoss
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.multiprocessing import get_context
from torch.utils.data import DataLoader, Dataset

from protocols.images.batch_source import BatchSource
from protocols.images.crops import random_box
from protocols.images.decoding import decode
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import pack_files
from protocols.training.torch_state import device_name
from protocols.trunks.embedding_model import EmbeddingModel
from protocols.trunks.trunk_registry import TRUNKS
from results.records.provenance import provenance
from results.spec.training_spec import ImageSettings
from results.spec.trunk_spec import TrunkSpec

WAYS = ("step", "faithful", "device", "usual")
BATCH = 32
PATIENCE = 600  # Seconds after which a fold's process is given up: another one has failed.
Take = Callable[[], Tensor]


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.images", description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, help="folder of JPEGs, searched below; default: 256 made-up ones, 500x375")
    parser.add_argument("--images", type=int, default=2048, help="how many of them at most (default %(default)s)")
    parser.add_argument("--trunk", choices=sorted(TRUNKS), default="small_conv", help="default: %(default)s")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="default: %(default)s")
    parser.add_argument("--precision", choices=("float32", "amp"), default="float32", help="default: %(default)s")
    parser.add_argument("--crop", type=int, default=227, help="pixels (default %(default)s)")
    parser.add_argument("--folds", type=int, nargs="+", default=[1, 4], help="folds at once (default 1 4)")
    parser.add_argument("--workers", type=int, default=4, help="DataLoader processes a fold (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each way in each round (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path("runs/image_rates.json"), help="default: %(default)s")
    return parser.parse_args()


def made_up_images(folder: Path, count: int = 256) -> None:
    """JPEGs of CUB's size: coarse noise, enlarged."""
    chance = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(chance.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        coarse.resize((500, 375), Image.Resampling.BICUBIC).save(folder / f"{number}.jpg", quality=92)


class JPEGs(Dataset[Tensor]):
    """A training crop of each file, from the file."""

    def __init__(self, paths: list[Path], settings: ImageSettings) -> None:
        self.paths, self.settings = paths, settings

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Tensor:
        image = Image.fromarray(decode(self.paths[index], self.settings.resize))
        top, left, height, width = random_box(image.height, image.width, self.settings, torch.default_generator)
        side = (self.settings.crop, self.settings.crop)
        crop = image.crop((left, top, left + width, top + height)).resize(side, Image.Resampling.BILINEAR)
        if torch.rand(()) < 0.5:
            crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(np.asarray(crop).transpose(2, 0, 1).copy())


def batches_of(way: str, args: argparse.Namespace, pack: LabelledImages, paths: list[Path], seed: int) -> Take:
    """What gives the next batch on the device."""
    device = torch.device(args.device)
    if way == "step":
        crops = torch.randint(0, 256, (BATCH, 3, args.crop, args.crop), dtype=torch.uint8, device=device)
        return lambda: crops
    if way == "usual":
        loader = DataLoader(
            JPEGs(paths, ImageSettings(crop=args.crop)),
            batch_size=BATCH,
            shuffle=True,
            drop_last=True,
            num_workers=args.workers,
            pin_memory=device.type == "cuda",
            persistent_workers=args.workers > 0,
        )
        endless = (crops for _ in iter(int, 1) for crops in loader)
        return lambda: next(endless).to(device, non_blocking=True)
    source = BatchSource(pack, ImageSettings(crop=args.crop, augmentation=way), device)  # type: ignore[arg-type]
    stream = source.training_batches(_rows(len(paths), seed), torch.Generator().manual_seed(seed))
    return lambda: next(stream)[1]


def _rows(count: int, seed: int) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    chance = np.random.default_rng(seed)
    while True:
        yield chance.integers(0, count, BATCH)


def training_step(args: argparse.Namespace) -> Callable[[Tensor], None]:
    """Forward, loss, backward and update of trunk and embedder."""
    device = torch.device(args.device)
    model = EmbeddingModel(TrunkSpec(name=args.trunk, weights="random"), 128, precision=args.precision).place(device)
    model.train()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-6, weight_decay=1e-4, momentum=0.9)
    loss, labels = ContrastiveLoss(), torch.arange(BATCH, device=device) // 4

    def step(crops: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(model(crops), labels).backward()
        optimizer.step()

    return step


def rate(take: Take, step: Callable[[Tensor], None], args: argparse.Namespace) -> float:
    """Images a second, after a third of the time to warm up and to use up what was made ahead meanwhile."""

    def finished() -> float:
        if args.device != "cpu":
            torch.cuda.synchronize(args.device)
        return time.perf_counter()

    def steps_in(seconds: float) -> float:
        started, steps = finished(), 0
        while time.perf_counter() - started < seconds:
            step(take())
            steps += 1
        return steps * BATCH / (finished() - started)

    steps_in(args.seconds / 3)
    return steps_in(args.seconds)


def fold(
    number: int, args: argparse.Namespace, pack: LabelledImages, paths: list[Path], barrier: Any, results: Any
) -> None:
    """One fold's process: every way in every round, at the same time as the other folds."""
    torch.set_num_threads(1)
    torch.manual_seed(number)
    step = training_step(args)
    takes = {way: batches_of(way, args, pack, paths, number) for way in WAYS}
    for round_number in range(args.rounds):
        for way in WAYS:
            barrier.wait(PATIENCE)
            results.put((round_number, way, rate(takes[way], step, args)))
            barrier.wait(PATIENCE)


def measured(folds: int, args: argparse.Namespace, pack: LabelledImages, paths: list[Path]) -> dict[str, list[float]]:
    """Images a second of all folds together, by way and round."""
    context = get_context("spawn")
    barrier, results = context.Barrier(folds), context.Queue()
    processes = [
        context.Process(target=fold, args=(number, args, pack, paths, barrier, results)) for number in range(folds)
    ]
    for process in processes:
        process.start()
    rates = {way: [0.0] * args.rounds for way in WAYS}
    for _ in range(args.rounds * len(WAYS) * folds):
        try:
            round_number, way, images_a_second = results.get(timeout=PATIENCE)
        except Empty:
            raise SystemExit("a fold's process gave no result; its own message says why") from None
        rates[way][round_number] += images_a_second
    for process in processes:
        process.join()
    return rates


def table_of(rates: dict[int, dict[str, list[float]]], title: str) -> Table:
    """Medians, and each way's share of what the step alone reaches and of what the usual way reaches."""
    table = Table(title=title)
    for name in ("folds at once", "crops", "images/s", "of step", "usual = 1"):
        table.add_column(name, justify="right" if name != "crops" else "left")
    for folds, ways in rates.items():
        for way in WAYS:
            of_step, of_usual = (
                statistics.median(mine / other for mine, other in zip(ways[way], ways[base], strict=True))
                for base in ("step", "usual")
            )
            table.add_row(
                str(folds), way, f"{statistics.median(ways[way]):.0f}", f"{100 * of_step:.0f} %", f"{of_usual:.2f}"
            )
        table.add_section()
    return table


def main() -> None:
    """Measures, prints the table and writes the JSON file."""
    args = parsed()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.data or Path(temporary)
        if args.data is None:
            made_up_images(folder)
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))[: args.images]
        if len(paths) < BATCH:
            raise SystemExit(f"--data {folder}: {len(paths)} JPEGs found, a batch needs {BATCH}; name another folder")
        names = [str(path.relative_to(folder)) for path in paths]
        packed = pack_files(folder, names, ImageSettings().resize, Path(temporary) / "pack").images
        pack = LabelledImages(packed, np.arange(len(names)), np.arange(len(names)))
        rates = {folds: measured(folds, args, pack, paths) for folds in args.folds}
    name = device_name(torch.device(args.device))
    title = f"{args.trunk}, {args.precision}, batches of {BATCH} at {args.crop} pixels, {name}"
    Console(width=120).print(table_of(rates, title))
    settings = {key: str(value) if isinstance(value, Path) else value for key, value in vars(args).items()}
    settings["data"] = "made up" if args.data is None else f"{args.data.name} ({len(paths)} JPEGs)"
    origin = provenance(name, 1).model_dump(mode="json")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"settings": settings, "images_per_second": rates, "provenance": origin}, indent=1))
    print(f"written: {args.out}")


if __name__ == "__main__":
    main()
