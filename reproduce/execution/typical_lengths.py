"""The typical length of a training: from the store, from the measured experiments, or assumed."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from protocols.problem import Problem
from results.experiment_results import FOLDER
from results.experiment_spec import Experiment
from results.experiment_summary import ExperimentSummary
from results.timing import Timing
from results.training_spec import TrainingSettings


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

    The source is the first of these that exists: trainings in the store, measured experiments that come with the suite,
    and the geometric mean of the shortest and the longest possible training, which is assumed.

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
        return TypicalLength(min(1.0, share), f"the mean of {len(stored)} trainings in the store")
    for name, share in _measured_shares(problem.training, problem.trunk.name, longest):
        return TypicalLength(share, f"the mean of the trainings in results/measured/{name}.json")
    share = math.sqrt(shortest / longest)
    return TypicalLength(share, "assumed: the geometric mean of the shortest and the longest training")


def _is_alike(timing: Timing, problem: Problem) -> bool:
    spec = timing.spec
    same = (spec.dataset, spec.trunk.name) == (problem.dataset.name, problem.trunk.name)
    stops_early = spec.checkpoint_epoch is None and timing.iterations > 0
    return same and stops_early and spec.training == problem.training


def _measured_shares(training: TrainingSettings, trunk: str, longest: int) -> Iterable[tuple[str, float]]:
    """Names of measured experiments with these settings, and the mean share of the longest training."""
    for name, experiment, iterations in _measured_lengths():
        if experiment.training == training and experiment.trunk.name == trunk:
            yield name, min(1.0, iterations / longest)


@cache
def _measured_lengths() -> list[tuple[str, Experiment, float]]:
    """Names and settings of the measured experiments, with the mean number of iterations of their trainings."""
    lengths = []
    for path in sorted(FOLDER.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        # Only the settings are checked: a run's record is long, and a plan must be fast. Simulations have no summary.
        summary = ExperimentSummary.model_validate(content["summary"]) if "summary" in content else None
        runs = [run for run in content.get("records", []) if run.get("iterations")]
        if summary is not None and summary.experiment is not None and runs:
            mean = sum(run["iterations"] / len(run["fold_fingerprints"]) for run in runs) / len(runs)
            lengths.append((path.stem, summary.experiment, mean))
    return lengths
