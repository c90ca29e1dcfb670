"""The typical length of a training: from the store, from the measured experiments, or assumed."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from protocols.problem import Problem
from results.records.experiment_summary import ExperimentSummary
from results.records.frames import Timing
from results.spec.experiment_spec import Experiment
from results.spec.training_spec import TrainingSettings
from results.spec.trunk_spec import TrunkSpec
from results.store.experiment_results import FOLDER


@dataclass(frozen=True)
class TypicalLength:
    """How long trainings typically are.

    Attributes:
        share: Mean number of iterations, as a fraction of the largest possible number.
        source: How it was obtained, for people.
    """

    share: float
    source: str


def typical_length(problem: Problem, shortest: int, longest: int, timings: Iterable[Timing]) -> TypicalLength:
    """Return the typical length of trainings with the problem's settings.

    The source is the first of these that exists: trainings in the store; measured experiments of the suite with the
    same settings; measured experiments with the same trunk, whose place between the shortest and the longest training
    is taken over; and the geometric mean of the shortest and the longest training, which is assumed.

    Args:
        problem: The problem.
        shortest: Iterations of a training that stops as early as possible.
        longest: Iterations of a training with all epochs.
        timings: Timings of stored trainings.
    """
    if shortest == longest:
        return TypicalLength(1.0, "no training stops early")
    stored = [timing.iterations for timing in timings if _is_alike(timing, problem)]
    if stored:
        share = sum(stored) / len(stored) / longest
        source = "1 training" if len(stored) == 1 else f"the mean of {len(stored)} trainings"
        return TypicalLength(min(1.0, share), f"{source} in the store")
    measured = [length for length in _measured_lengths() if _has_trunk_of(problem, length.experiment.trunk)]
    for length in measured:
        if length.experiment.training == problem.training:
            return TypicalLength(
                min(1.0, length.iterations / longest),
                f"the mean of the trainings in results/measured/{length.name}.json",
            )
    if shortest:
        for length in measured:
            share = (shortest / longest) ** (1 - length.place)
            return TypicalLength(
                share,
                f"as far from the shortest to the longest as in results/measured/{length.name}.json, with this trunk",
            )
    share = math.sqrt(shortest / longest)
    return TypicalLength(share, "assumed: the geometric mean of the shortest and the longest training")


def first_stop(settings: TrainingSettings) -> int:
    """Return the epoch after which a training can stop first: its first validation later than `patience` epochs."""
    epoch = (settings.patience // settings.validate_every + 1) * settings.validate_every
    return min(epoch, settings.max_epochs)


def _is_alike(timing: Timing, problem: Problem) -> bool:
    spec = timing.spec
    stops_early = spec.checkpoint_epoch is None and timing.iterations > 0
    same = spec.dataset == problem.dataset.name and _has_trunk_of(problem, spec.trunk)
    return same and stops_early and spec.training == problem.training


def _has_trunk_of(problem: Problem, trunk: TrunkSpec) -> bool:
    return (trunk.name, trunk.frozen) == (problem.trunk.name, problem.trunk.frozen)


@dataclass(frozen=True)
class MeasuredLength:
    """The length of the trainings of a measured experiment.

    Attributes:
        name: Name of its file.
        experiment: Its settings.
        iterations: Mean number of iterations of a training, in the searches too if they are known.
    """

    name: str
    experiment: Experiment
    iterations: float

    @property
    def place(self) -> float:
        """The place of the mean between the shortest (0) and the longest (1) training, on a logarithmic scale."""
        settings = self.experiment.training
        steps = settings.iterations_per_epoch or 1
        shortest, longest = first_stop(settings) * steps, settings.max_epochs * steps
        if shortest == longest:
            return 1.0
        return min(1.0, max(0.0, math.log(self.iterations / shortest) / math.log(longest / shortest)))


@cache
def _measured_lengths() -> list[MeasuredLength]:
    """Read the lengths of the trainings of the measured experiments."""
    lengths = []
    for path in sorted(FOLDER.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        # Only the settings are checked: a run's record is long, and a plan must be fast. Simulations have no summary.
        summary = ExperimentSummary.model_validate(content["summary"]) if "summary" in content else None
        runs = [run for run in content.get("records", []) if run.get("iterations")]
        if summary is not None and runs:
            lengths.append(
                MeasuredLength(path.stem, summary.experiment, _mean_length(runs, content.get("searches", [])))
            )
    return lengths


def _mean_length(runs: list[dict[str, Any]], searches: list[dict[str, Any]]) -> float:
    """Mean number of iterations of the trainings of runs and searches. Bad settings can take longer than the best."""
    folds = len(runs[0]["fold_fingerprints"])
    total, trainings = sum(run["iterations"] for run in runs), sum(len(run["fold_fingerprints"]) for run in runs)
    for search in searches:
        if search.get("iterations") is not None:
            count = len(search["trial_scores"]) * folds
            total, trainings = total + search["iterations"] * count, trainings + count
    return float(total / trainings)
