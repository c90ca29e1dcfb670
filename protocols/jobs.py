"""What a protocol asks to have done: trainings and evaluations, as values that an executor can carry anywhere.

A protocol is a generator: it yields jobs that may run side by side and is sent their outcomes, in order. Who runs them,
where, and whether they were done before is not its concern.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from protocols.problem import Problem
from results.records import FoldResult, RunRecord, run_fingerprint
from results.training_spec import FoldSpec


@dataclass(frozen=True)
class TrainJob:
    """A training. `run`: name of the test evaluation that needs its weights; None in a search."""

    spec: FoldSpec
    run: str | None = None


@dataclass(frozen=True)
class EvaluateJob:
    """The test evaluation of one reproduction, whose trainings are done.

    training_time: the trainings' seconds, summed. flags: warnings about the trainings. steps: iterations up to the
    models' checkpoints, summed. iterations: up to the end of the models' trainings, summed. metrics: further metrics to
    measure, by name.
    """

    specs: tuple[FoldSpec, ...]
    protocol: str
    hyperparameters: dict[str, JsonValue]
    run: int
    seed: int
    training_time: float
    flags: tuple[str, ...] = ()
    steps: int = 0
    iterations: int = 0
    metrics: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """The name of the run record it makes."""
        return run_fingerprint(tuple(spec.fingerprint for spec in self.specs), self.metrics)


Job = TrainJob | EvaluateJob
Outcome = FoldResult | RunRecord
T = TypeVar("T")
Work = Generator[list[Job], list[Outcome], T]


def evaluation_job(
    problem: Problem,
    protocol: str,
    specs: tuple[FoldSpec, ...],
    results: Sequence[tuple[str, FoldResult]],
    hyperparameters: dict[str, JsonValue],
    run: int,
) -> EvaluateJob:
    """The test evaluation of trained models.

    Args:
        problem: What the experiment's methods share.
        protocol: The protocol's name.
        specs: The trainings whose models are tested, one per fold.
        results: Each training that the models needed, with a name for its warnings; those of `specs` come last.
        hyperparameters: The setting that was trained, by target.
        run: Number of the reproduction, from 0.
    """
    return EvaluateJob(
        specs,
        protocol,
        hyperparameters,
        run,
        problem.seed,
        training_time=sum(result.wall_time for _, result in results),
        flags=tuple(f"{name}: {result.flag}" for name, result in results if result.flag),
        steps=sum(result.best_iteration for _, result in results[-len(specs) :]),
        iterations=sum(result.iterations for _, result in results[-len(specs) :]),
        metrics=problem.metrics,
    )


def trainings(jobs: list[TrainJob]) -> Work[list[FoldResult]]:
    """Asks for trainings and hands back their results."""
    outcomes = yield list(jobs)
    return [outcome for outcome in outcomes if isinstance(outcome, FoldResult)]


def evaluations(jobs: list[EvaluateJob]) -> Work[list[RunRecord]]:
    """Asks for test evaluations and hands back their records."""
    outcomes = yield list(jobs)
    return [outcome for outcome in outcomes if isinstance(outcome, RunRecord)]
