"""Experiments whose trainings cost nothing: a function of method and setting gives the score of each."""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from reproduce.config.experiment_file import load_experiments
from reproduce.run.run_experiment import Finished, run
from reproduce.run.session import Session, open_session
from reproduce.run.tasks import Task, Trained, TrainTask, write_tensors
from reproduce.storage import storage_paths
from results.records.records import EarlyScores, Scores
from results.spec.training_spec import FoldSpec
from tests.support.sample_records import invented_run, some_result

Surface = Callable[[str, FoldSpec], float]
"""The score, a fraction of 1, of a training: the method's key and the specification."""


class SurfaceExecutor:
    """Gives each training the score of a surface, and each test the same one."""

    device, workers, sharing = "cpu", 1, 0

    def __init__(self, surface: Surface) -> None:
        self.surface, self.trained = surface, list[FoldSpec]()

    def submit(self, task: Task) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(self._trained(task) if isinstance(task, TrainTask) else self._tested(task))
        except Exception as error:
            future.set_exception(error)
        return future

    def _trained(self, task: TrainTask) -> Trained:
        spec = task.job.spec
        self.trained.append(spec)
        if task.weights is not None:
            write_tensors(task.weights, {})
        return Trained(some_result(spec, self.surface(spec.method.name, spec), stopped_by="patience"), None)

    def _tested(self, task: Any) -> Any:
        job, early = task.job, None
        if (epoch := job.specs[0].early_epoch) is not None:
            scores = self._scores([_cut_at(spec, epoch) for spec in job.specs])
            early = EarlyScores(steps=job.early_steps, separated=scores, concatenated=scores)
        scores = self._scores(job.specs)
        whole = {"fold_scores": (scores,) * len(job.specs), "concatenated": scores, "early": early}
        return invented_run(job).model_copy(update={**whole, "hyperparameters": job.hyperparameters})

    def _scores(self, specs: Sequence[FoldSpec]) -> Scores:
        value = float(np.mean([self.surface(spec.method.name, spec) for spec in specs]))
        return Scores(precision_at_1=value, r_precision=value, map_at_r=value)

    def close(self) -> None:
        pass


def _cut_at(spec: FoldSpec, epoch: int) -> FoldSpec:
    training = spec.conditions.training.model_copy(update={"max_epochs": epoch})
    return spec.model_copy(update={"conditions": spec.conditions.model_copy(update={"training": training})})


def value_of(spec: FoldSpec, target: str) -> float:
    """The value of a hyperparameter in a training."""
    return float(str(spec.method.values_of([target])[target]))


def peaked_at(alpha: float) -> Surface:
    """Proxy-Anchor's score falls with the distance of its alpha from a best one, on a log scale; others are worse."""

    def surface(method: str, spec: FoldSpec) -> float:
        low = 0.3 + noise(spec, 0.002)
        if method != "proxy_anchor":
            return low
        return low + 0.1 - 0.05 * abs(math.log(value_of(spec, "loss.alpha") / alpha))

    return surface


def noise(spec: FoldSpec, deviation: float) -> float:
    """Normal noise of one training: the same training has the same. Methods share seeds, and not their noise."""
    return float(deviation * np.random.default_rng([spec.seed, *spec.method.name.encode()]).standard_normal())


def open_surface(folder: Path, content: str, name: str = "surface") -> Session:
    """Open an experiment on glyphs; `content` is its file."""
    file = folder / f"{name}.yaml"
    file.write_text(content)
    where = storage_paths(str(folder / "store.sqlite"), None, folder / "cache").absolute()
    (key, experiment), *_ = load_experiments(str(file), {}).items()
    return open_session(key, experiment, where)


def run_surface(folder: Path, content: str, surface: Surface) -> tuple[Finished, SurfaceExecutor]:
    """Run an experiment on a surface."""
    executor = SurfaceExecutor(surface)
    return run(open_surface(folder, content), lambda: executor), executor


CONTENT = """
title: Surfaces
dataset: {{name: glyphs}}
methods: [proxy_anchor, {other}]
trunk: {{name: small_conv, weights: random}}
embedding_size: 16
images: {{resize: null, crop: 32, area: [0.6, 1.0], ratio: [0.9, 1.1], flip: false}}
training:
  iterations_per_epoch: 10
  max_epochs: 4
  optimizer: {{name: Adam, lr: 1.0e-3, weight_decay: 1.0e-4, arguments: {{}}}}
search: {search}
reproductions: 1
{further}
folds: 2
seed: {seed}
"""


def surface_file(search: Mapping[str, Any], seed: int = 0, further: str = "", other: str = "normalized_softmax") -> str:
    """The file of an experiment of Proxy-Anchor and another loss with a search."""
    return (
        CONTENT.format(search=dict(search), seed=seed, further=further, other=other)
        .replace("True", "true")
        .replace("'", "")
    )
