"""`make bench`: retrieval and one fold beside pytorch-metric-learning (PML), measured in turn; both compute the same.

Writes results/measured/bench_cpu.json and the table of docs/speed.md. Each side has a process of its own, set up as its
users have it. PML's side of the fold is what a user of PML writes: `MetricLossOnly`, `GlobalEmbeddingSpaceTester` and
`AccuracyCalculator` on a DataLoader that transforms with Pillow. The two draw different batches, so their validation
MAP@R is compared over seeds. Nothing here decides a test.
"""

import argparse
import io
import json
import logging
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from pytorch_metric_learning import samplers, testers, trainers
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from scipy import stats
from torch import Tensor, nn
from torch.utils.data import Dataset as TorchDataset

from protocols.datasets.dataset import DataRequest
from protocols.datasets.dataset_registry import open_dataset
from protocols.images.crops import random_box
from protocols.images.packed_images import LabelledImages
from protocols.metrics.retrieval import normalized, query_scores
from protocols.training.build_method import build_method
from protocols.training.fold_data import FoldData
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import model_of
from reproduce.config.experiment_file import load_experiments
from reproduce.run.devices import prepare_process
from results.atomic_files import write_atomically
from results.records.provenance import processor, provenance
from results.spec.data_choice import DataChoice
from results.spec.training_spec import FoldSpec
from results.store.experiment_results import FOLDER
from results.values import derive_seed
from tests.support.toys import CONTRASTIVE, toy_fold

RECORD = FOLDER / "bench_cpu.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "speed.md"
START, END = "<!-- table: bench -->", "<!-- end of table -->"
SCORES = ("precision_at_1", "r_precision", "mean_average_precision_at_r")
TOLERANCE = 1e-4
"""Allowed difference of scores: distances round to float32 in other ways, and near images then change places."""

Rows = list[dict[str, Any]]

# --- retrieval ---


@cache
def embeddings(images: int, classes: int, size: int) -> tuple[Tensor, Tensor]:
    generator, labels = torch.Generator().manual_seed(0), torch.arange(images) % classes
    centres = normalized(torch.randn(classes, size, generator=generator))
    return normalized(centres[labels] + 0.1 * torch.randn(images, size, generator=generator)), labels


def scores(*size: int) -> tuple[float, ...]:
    found = query_scores(*embeddings(*size)).mean()
    return found.precision_at_1, found.r_precision, found.map_at_r


def scores_by_pml(*size: int) -> tuple[float, ...]:
    calculator = AccuracyCalculator(include=SCORES, k="max_bin_count", device=torch.device("cpu"))
    found = calculator.get_accuracy(*embeddings(*size))
    return tuple(float(found[key]) for key in SCORES)


def retrieval(rounds: int) -> Rows:
    """Search at the size of CUB's test set, on two threads."""
    size = (5924, 100, 512)
    ours, theirs = in_turn(scores, scores_by_pml, [size] * (4 * rounds), 2)
    difference = max(abs(one - other) for one, other in zip(ours[0][1], theirs[0][1], strict=True))
    assert difference < TOLERANCE, f"our scores differ from PML's by {difference}"
    return [row("retrieval, CUB, 5,924 x 512 / PML with faiss", ours, theirs, 1)]


# --- one fold ---


class PillowImages(TorchDataset[tuple[Tensor, int]]):
    """Grey images with the suite's transforms, as a user of PML without torchvision writes them."""

    def __init__(self, spec: FoldSpec, images: LabelledImages, *, training: bool) -> None:
        model = model_of(spec)
        self.images, self.settings, self.training = images, spec.conditions.images, training
        self.mean, self.std = model.mean, model.std

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        picture, side = Image.fromarray(self.images.image(index)[..., 0]), self.settings.crop
        if self.training:
            top, left, height, width = random_box(picture.height, picture.width, self.settings, torch.default_generator)
            picture = picture.crop((left, top, left + width, top + height))
            picture = picture.resize((side, side), Image.Resampling.BILINEAR)
            if self.settings.flip and torch.rand(()) < 0.5:
                picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        else:
            left, top = round((picture.width - side) / 2), round((picture.height - side) / 2)
            picture = picture.crop((left, top, left + side, top + side))
        pixels = torch.from_numpy(np.array(picture)).view(side, side, -1).permute(2, 0, 1).float() / 255
        return (pixels - self.mean) / self.std, int(self.images.labels[index])


class PooledTrunk(nn.Module):
    """A trunk with average pooling: normalised images (n, c, h, w) to features (n, f)."""

    def __init__(self, trunk: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.trunk(images).mean((2, 3))
        return features


def train(spec: FoldSpec, data: FoldData) -> float:
    """Train with the suite; return the last validation MAP@R."""
    score = train_fold(spec, data).result.curve[-1].map_at_r
    assert score is not None
    return score


def train_by_pml(spec: FoldSpec, data: FoldData) -> float:
    """Train with PML's trainer and tester from the same weights; return the last validation MAP@R."""
    training = spec.conditions.training
    torch.manual_seed(derive_seed("network", spec.seed))
    model = model_of(spec)
    models = {"trunk": PooledTrunk(model.trunk), "embedder": model.embedder}
    make: Any = getattr(torch.optim, training.optimizer.name)
    rates = {"lr": training.optimizer.lr, "weight_decay": training.optimizer.weight_decay}
    optimizers = {
        f"{name}_optimizer": make(part.parameters(), **rates, **training.optimizer.arguments)
        for name, part in models.items()
    }
    tester = testers.GlobalEmbeddingSpaceTester(
        dataloader_num_workers=0,
        accuracy_calculator=AccuracyCalculator(include=SCORES, k="max_bin_count"),
        data_device=torch.device("cpu"),
    )
    validation, found = {"val": PillowImages(spec, data.validation, training=False)}, []

    def validate(trainer: Any = None) -> None:
        epoch = 0 if trainer is None else trainer.epoch
        if epoch % training.validate_every == 0:
            accuracies = tester.test(validation, epoch, models["trunk"], models["embedder"])["val"]
            found.append(accuracies["mean_average_precision_at_r_level0"])

    trainer = trainers.MetricLossOnly(
        models,
        optimizers,
        training.batch_size,
        {"metric_loss": build_method(spec.method, [1], model.dimensions, 1).loss},
        PillowImages(spec, data.train, training=True),
        loss_weights={"metric_loss": 1},
        sampler=samplers.MPerClassSampler(data.train.labels, spec.method.samples_per_class),
        iterations_per_epoch=training.iterations_per_epoch,
        dataloader_num_workers=0,
        data_device=torch.device("cpu"),
        freeze_trunk_batchnorm=True,
        end_of_epoch_hook=validate,
    )
    torch.manual_seed(spec.seed)
    np.random.seed(spec.seed)  # noqa: NPY002 -- the sampler draws from numpy's global generator
    with redirect_stderr(io.StringIO()):  # Progress bars.
        validate()
        trainer.train(num_epochs=training.max_epochs)
    return float(found[-1])


def fold(rounds: int) -> Rows:
    """A fold of the quickstart with another seed in every round, and whether both learn the same."""
    (experiment,) = load_experiments("quickstart", {}).values()
    given = experiment.conditions
    training = given.training.model_copy(update={"patience": given.training.max_epochs})
    with tempfile.TemporaryDirectory() as cache:
        dataset = open_dataset(DataRequest(DataChoice(name="glyphs"), given.images, Path(cache)))
        changes: dict[str, Any] = {
            "images": given.images,
            "trunk": given.trunk,
            "embedding_size": 128,
        }
        spec, data = toy_fold(dataset, CONTRASTIVE, training, **changes)
        seeds = [(spec.model_copy(update={"seed": seed}), data) for seed in range(max(rounds, 40))]
        ours, theirs = in_turn(train, train_by_pml, seeds, 1)
    difference = stats.ttest_rel([score for _, score in ours], [score for _, score in theirs]).confidence_interval()
    low, high = 100 * difference.low, 100 * difference.high
    verdict = "no difference seen" if low <= 0 <= high else "DIFFERENT"
    print(f"validation MAP@R of the suite less PML's: {low:+.2f} to {high:+.2f} points (95 %): {verdict}", flush=True)
    return [row("one fold of the quickstart (glyphs) / PML's trainer and tester", ours, theirs, 1.2)]


# --- measuring, and the record ---

Measured = list[tuple[float, Any]]
"""Seconds and result of each round."""


def in_turn(
    ours: Callable[..., Any], theirs: Callable[..., Any], rounds: Sequence[tuple[Any, ...]], threads: int
) -> tuple[Measured, Measured]:
    """Call both with the arguments of each round, after one to warm up; the first of a round is second in the next."""
    context, measured = multiprocessing.get_context("spawn"), ([], [])
    with (
        ProcessPoolExecutor(1, context, prepare_process, ("cpu", threads)) as suite,
        ProcessPoolExecutor(1, context, _prepare_pml, (threads,)) as pml,
    ):
        for number, arguments in enumerate((rounds[0], *rounds)):
            sides = [(suite, ours, measured[0]), (pml, theirs, measured[1])]
            for process, work, kept in sides if number % 2 else reversed(sides):
                found = process.submit(_timed, work, arguments).result()
                if number:
                    kept.append(found)
    return measured


def _prepare_pml(threads: int) -> None:
    import faiss

    torch.set_num_threads(threads)
    faiss.omp_set_num_threads(threads)
    logging.getLogger("PML").setLevel(logging.WARNING)


def _timed(work: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work(*arguments)
    return time.perf_counter() - started, found


def row(name: str, ours: Measured, theirs: Measured, bar: float) -> dict[str, Any]:
    seconds = {"ours": [of for of, _ in ours], "peer": [of for of, _ in theirs]}
    return {"name": name, **seconds, "bar": bar}


def as_markdown(record: dict[str, Any]) -> str:
    """The table of the docs: medians, the smallest and largest ratio of a round, and where each was measured."""
    lines = ["| what | ours | peer | times as fast | bar |", "|---|--:|--:|--:|---|"]
    origins = []
    for subject, found in record["subjects"].items():
        for one in found["rows"]:
            # Both sides of a round were measured next to each other.
            times = [peer / ours for ours, peer in zip(one["ours"], one["peer"], strict=True)]
            middle, met = statistics.median(times), statistics.median(times) >= one["bar"]
            ratio = f"{middle:.3g} ({min(times):.3g} to {max(times):.3g})"
            bar = f"at least {one['bar']:g}, {'met' if met else 'missed'}"
            lines.append(f"| {one['name']} | {_amount(one['ours'])} | {_amount(one['peer'])} | {ratio} | {bar} |")
        where = found["provenance"]
        origins.append(
            f"- {subject}: {where['device']}, {where['cpu_count']} cores, {where['threads']} thread(s), "
            f"{where['finished_at'][:10]}, commit {where['commit'][:12]}"
            f"{', with uncommitted changes' if where['tree_dirty'] else ''}, torch {where['versions']['torch']}"
        )
    return "\n".join([*lines, "", *origins])


def _amount(values: Sequence[float]) -> str:
    value = statistics.median(values)
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.3g} ms"


def main() -> None:
    """Measure the subjects; after each one, record and page are written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", choices=("retrieval", "glyphs"), help="the other one is kept")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s; short works take more")
    asked = parser.parse_args()
    for name, measure, threads in (("retrieval", retrieval, 2), ("glyphs", fold, 1)):
        if asked.only not in (None, name):
            continue
        record = json.loads(RECORD.read_text(encoding="utf-8"))
        origin = provenance(processor() or "cpu", threads).model_dump(mode="json")
        record["subjects"][name] = {"rows": measure(asked.rounds), "provenance": origin}
        write_atomically(RECORD, json.dumps(record, indent=1) + "\n")
        before, rest = PAGE.read_text(encoding="utf-8").split(START)
        write_atomically(PAGE, f"{before}{START}\n\n{as_markdown(record)}\n\n{END}{rest.split(END)[1]}")
    print(as_markdown(record))


if __name__ == "__main__":
    main()
