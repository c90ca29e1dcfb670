"""What a protocol asks to have done: trainings and evaluations, as values that an executor can carry anywhere.

A protocol is a generator: it yields jobs that may run side by side and is sent their outcomes, in order. Who runs them,
where, and whether they were done before is not its concern.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

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

    training_time: their seconds, summed. flags: what they have to say about it. steps: iterations up to the models'
    checkpoints, summed. iterations: up to the end of the models' trainings, summed. metrics: further metrics to
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


def trainings(jobs: list[TrainJob]) -> Work[list[FoldResult]]:
    """Asks for trainings and hands back their results."""
    outcomes = yield list(jobs)
    return [outcome for outcome in outcomes if isinstance(outcome, FoldResult)]


def evaluations(jobs: list[EvaluateJob]) -> Work[list[RunRecord]]:
    """Asks for test evaluations and hands back their records."""
    outcomes = yield list(jobs)
    return [outcome for outcome in outcomes if isinstance(outcome, RunRecord)]
