"""The jobs that a protocol yields: trainings and test evaluations, as values that an executor can send anywhere.

A protocol is a generator. It yields lists of jobs that may run in parallel and receives their outcomes in the same
order. The protocol does not depend on where the jobs run, nor on whether their outcomes were in the store already.
Trainings that are marked `if_idle` only tell what may be needed next. The protocol receives no outcome for them.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import JsonValue

from protocols.problem import Problem
from protocols.training.build_method import RefusedError
from results.records.records import FoldResult, RunRecord, run_fingerprint, run_name
from results.spec.training_spec import FoldSpec


@dataclass(frozen=True)
class TrainJob:
    """One training.

    Attributes:
        spec: All that decides its outcome.
        run: Fingerprint of the test evaluation that needs the weights; None if no test needs them.
        chooses_epoch: Whether its validations choose the epoch of a reproduction.
        if_idle: Whether the protocol may need it later, but does not wait for it now. It is started only on a worker
            that would be idle, and its outcome is not sent back.
    """

    spec: FoldSpec
    run: str | None = None
    chooses_epoch: bool = False
    if_idle: bool = False

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the training."""
        return self.spec.fingerprint


@dataclass(frozen=True)
class EvaluateJob:
    """The test evaluation of one reproduction. Its trainings are done.

    Attributes:
        specs: The trainings whose models are tested, one per fold.
        protocol: Name of the protocol.
        hyperparameters: The setting that was trained, by target.
        run: Number of the reproduction, from 0 in every search.
        seed: The experiment's seed.
        training_time: Seconds of all trainings, summed.
        flags: Warnings about the trainings.
        steps: Iterations up to the checkpoints of the models, summed.
        iterations: Iterations up to the end of the models' trainings, summed.
        metrics: Names of further metrics to measure.
        chosen_by: Fingerprints of the trainings that chose the epoch of the models; empty if nothing was chosen.
        search: Number of the search that found the setting, from 0.
        study: Fingerprint of the study that found it; None if nothing was searched.
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
    chosen_by: tuple[str, ...] = ()
    search: int = 0
    study: str | None = None

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the run record that the evaluation makes."""
        return run_fingerprint(tuple(spec.fingerprint for spec in self.specs), self.metrics, self.chosen_by)

    def after_choice(self, folds: Sequence[FoldResult], flags: tuple[str, ...]) -> "EvaluateJob":
        """Add the trainings that chose the epoch of the models.

        Args:
            folds: Results of these trainings. Their times are added.
            flags: Warnings about the choice, which come before those about the models.
        """
        return replace(
            self,
            training_time=self.training_time + sum(fold.wall_time for fold in folds),
            flags=(*flags, *self.flags),
            chosen_by=tuple(fold.fingerprint for fold in folds),
        )

    @property
    def run_name(self) -> str:
        """Name of the run in messages."""
        return run_name(self.run, self.search)


@dataclass(frozen=True)
class Refusal:
    """The outcome of a job that the method's own code refuses, or that is not needed after another refusal."""

    reason: str


Job = TrainJob | EvaluateJob
Outcome = FoldResult | RunRecord | Refusal
T = TypeVar("T")
Work = Generator[list[Job], list[Outcome], T]


def evaluation_job(
    problem: Problem,
    protocol: str,
    specs: tuple[FoldSpec, ...],
    results: Sequence[tuple[str, FoldResult]],
    hyperparameters: dict[str, JsonValue],
    run: int,
    study: str | None,
) -> EvaluateJob:
    """Describe the test evaluation of one reproduction.

    Args:
        problem: Data, split, network and training settings of the experiment.
        protocol: Name of the protocol.
        specs: The trainings whose models are tested, one per fold.
        results: Results of `specs`, each with a name for its warnings.
        hyperparameters: The setting that was trained, by target.
        run: Number of the reproduction, from 0.
        study: Fingerprint of the study that found the setting; None if nothing was searched.

    Returns:
        The job, with the times, warnings and iterations of its trainings.
    """
    return EvaluateJob(
        specs,
        protocol,
        hyperparameters,
        run,
        problem.seed,
        training_time=sum(result.wall_time for _, result in results),
        flags=tuple(f"{name}: {result.flag}" for name, result in results if result.flag),
        steps=sum(result.best_iteration for _, result in results),
        iterations=sum(result.iterations for _, result in results),
        metrics=problem.metrics,
        search=problem.search,
        study=study,
    )


def trainings(jobs: list[TrainJob]) -> Work[list[FoldResult]]:
    """Yield trainings and return their results in the same order; raise RefusedError if one is refused."""
    outcomes = _not_refused((yield list(jobs)))
    return [outcome for outcome in outcomes if isinstance(outcome, FoldResult)]


def evaluations(jobs: list[EvaluateJob]) -> Work[list[RunRecord]]:
    """Yield test evaluations and return their records in the same order; raise RefusedError if one is refused."""
    outcomes = _not_refused((yield list(jobs)))
    return [outcome for outcome in outcomes if isinstance(outcome, RunRecord)]


def _not_refused(outcomes: list[Outcome]) -> list[Outcome]:
    for outcome in outcomes:
        if isinstance(outcome, Refusal):
            raise RefusedError(outcome.reason)
    return outcomes
