"""One fold trained by the suite and by pytorch-metric-learning (PML), measured in turn: same work, other code.

Both start from the same weights and get the same images, batch size, loss, optimizer class, rates, number of iterations
and number of validations. PML's side is what a user of PML writes: `MetricLossOnly`, `GlobalEmbeddingSpaceTester` and
`AccuracyCalculator` on a DataLoader that decodes files and transforms them with Pillow. The two draw different batches,
so the validation MAP@R of both is compared over seeds.
"""

import logging
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from scipy import stats

from protocols.datasets.cub200 import list_cub200
from protocols.datasets.dataset import DataRequest, Dataset
from protocols.datasets.dataset_registry import open_dataset
from protocols.training.train_fold import train_fold
from reproduce.config.experiment_file import load_experiments
from reproduce.execution.devices import prepare_process
from results.spec.conditions import ImageSettings, OptimizerSettings, TrainingSettings
from results.spec.data_choice import DataChoice
from results.spec.training_spec import Component, FoldSpec, MethodSpec
from results.spec.trunk_spec import TrunkSpec
from tests.benchmarks.bench_record import BenchRow
from tests.benchmarks.peer_training import FoldWork, train_by_pml
from tests.support.toys import toy_fold

CONTRASTIVE = MethodSpec(
    name="contrastive", loss=Component(name="ContrastiveLoss", arguments={"pos_margin": 0.0, "neg_margin": 0.5})
)


def train_by_suite(work: FoldWork, spec: FoldSpec) -> float:
    """Train with the suite; return the last validation MAP@R."""
    score = train_fold(spec, work.data).result.curve[-1].map_at_r
    assert score is not None
    return score


def fold_work(
    name: str, bar: float, dataset: Dataset, files: list[Path] | None, workers: int, **changes: Any
) -> FoldWork:
    """Make a work of the first fold of a dataset; `changes` are the images, the trunk and the training."""
    spec, data = toy_fold(dataset, CONTRASTIVE, embedding_size=128, seed=0, **changes)
    return FoldWork(name, bar, spec, data, files, workers)


def glyphs(rounds: int) -> list[BenchRow]:
    """Measure a fold of the quickstart; at least 40 seeds are compared."""
    (experiment,) = load_experiments("quickstart", {}).values()
    with tempfile.TemporaryDirectory() as cache:
        dataset = open_dataset(DataRequest(DataChoice(name="glyphs"), experiment.conditions.images, Path(cache)))
        # Workers would only add to PML's time here, since a step is short and nothing is decoded.
        work = fold_work(
            "one fold of the quickstart (glyphs) / PML's trainer and tester",
            1.2,
            dataset,
            None,
            0,
            images=experiment.conditions.images,
            trunk=experiment.conditions.trunk,
            training=experiment.conditions.training.model_copy(
                update={"patience": experiment.conditions.training.max_epochs}
            ),
        )
        return [measure_work(work, max(rounds, 40))]


def photographs(rounds: int, images: Path) -> list[BenchRow]:
    """Measure a short fold of photographs with EfficientNet-Lite0 at 96 pixels; at least ten seeds are compared.

    The optimizer is MLRC's with a higher rate.
    """
    settings = ImageSettings(resize=108, crop=96)
    training = TrainingSettings(
        iterations_per_epoch=20, max_epochs=2, validate_every=1, patience=2, optimizer=OptimizerSettings(lr=1e-5)
    )
    listing = list_cub200(images)
    with tempfile.TemporaryDirectory() as cache:
        dataset = open_dataset(DataRequest(DataChoice(name="cub200", subset=True), settings, Path(cache), images))
        work = fold_work(
            "one fold of photographs (EfficientNet-Lite0, 96 px) / PML's trainer and tester",
            2,
            dataset,
            [listing.root / name for name in listing.names],
            2,
            images=settings,
            trunk=TrunkSpec(name="efficientnet_lite0", weights="imagenet"),
            training=training,
        )
        return [measure_work(work, max(rounds, 10))]


def equality(ours: Sequence[float], peers: Sequence[float]) -> str:
    """Compare the scores of both over seeds, paired: with a seed both start from the same weights.

    Args:
        ours: MAP@R of the suite, by seed.
        peers: MAP@R of PML, by seed.

    Returns:
        The mean difference with the 95 % t interval of paired differences, in words.
    """
    found = stats.ttest_rel(ours, peers)
    low, high = found.confidence_interval(0.95)
    verdict = "no difference seen" if low <= 0 <= high else "DIFFERENT"
    return (
        f"validation MAP@R {100 * statistics.mean(ours):.2f} % and PML's {100 * statistics.mean(peers):.2f} % over "
        f"{len(ours)} seeds: difference {100 * (low + high) / 2:+.2f} points, 95 % interval {100 * low:+.2f} to "
        f"{100 * high:+.2f}: {verdict}"
    )


def measure_work(work: FoldWork, rounds: int) -> BenchRow:
    """Train with both sides in turn, with another seed in every round, after one round to warm up.

    Each side has a process of its own, set up as its users have it.
    """
    seconds: tuple[list[float], list[float]] = ([], [])
    scores: tuple[list[float], list[float]] = ([], [])
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(1, context, prepare_process, ("cpu", 1)) as suite,
        ProcessPoolExecutor(1, context, _prepare_pml) as pml,
    ):
        for seed in range(rounds + 1):
            spec = work.spec.model_copy(update={"seed": seed})
            sides = [(suite, train_by_suite, 0), (pml, train_by_pml, 1)]
            for process, train, side in sides if seed % 2 else reversed(sides):
                score, duration = process.submit(_timed, train, work, spec).result()
                if seed:
                    seconds[side].append(duration)
                    scores[side].append(score)
    print(equality(*scores), flush=True)
    return BenchRow(name=work.name, ours=tuple(seconds[0]), peer=tuple(seconds[1]), bar=work.bar)


def _prepare_pml() -> None:
    torch.set_num_threads(1)
    logging.getLogger("PML").setLevel(logging.WARNING)


def _timed(train: Callable[[FoldWork, FoldSpec], float], work: FoldWork, spec: FoldSpec) -> tuple[float, float]:
    started = time.perf_counter()
    score = train(work, spec)
    return score, time.perf_counter() - started
