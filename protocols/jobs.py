"""The work that a protocol asks a lab for: trainings and test evaluations, as values that can be sent anywhere.

A protocol is a function that calls `lab.train` and `lab.test`. It does not depend on where the work is done, nor on
whether its outcome was in the store already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from protocols.problem import Problem
from results.records.records import FoldResult, RunRecord, run_fingerprint, run_name
from results.spec.training_spec import FoldSpec


@dataclass(frozen=True)
class TrainJob:
    """One training.

    Attributes:
        spec: All that decides its outcome.
        run: Fingerprint of the test evaluation that needs the weights; None if no test needs them.
        chooses_epoch: Whether its validations choose the epoch of a reproduction.
    """

    spec: FoldSpec
    run: str | None = None
    chooses_epoch: bool = False

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

    @property
    def run_name(self) -> str:
        """Name of the run in messages."""
        return run_name(self.run, self.search)


Job = TrainJob | EvaluateJob
Outcome = FoldResult | RunRecord


class Lab(Protocol):
    """Makes what a protocol asks for, or finds it in the store. Everything that is made is stored at once.

    Both functions raise RefusedError if the method's own code refuses a job, and KeyboardInterrupt if somebody asked
    this process to stop.
    """

    def train(self, jobs: Sequence[TrainJob]) -> list[FoldResult]:
        """Make trainings, side by side if workers are free, and return their results in the same order."""

    def test(self, jobs: Sequence[EvaluateJob]) -> list[RunRecord]:
        """Make test evaluations, whose trainings are done, and return their records in the same order."""


def evaluation_job(
    problem: Problem,
    protocol: str,
    specs: tuple[FoldSpec, ...],
    results: Sequence[tuple[str, FoldResult]],
    hyperparameters: dict[str, JsonValue],
    run: int,
    study: str | None,
    *,
    chosen_by: Sequence[FoldResult] = (),
    flags: tuple[str, ...] = (),
) -> EvaluateJob:
    """Describe the test evaluation of one reproduction, with the times, warnings and iterations of its trainings.

    Args:
        problem: Data, split, network and training settings of the experiment.
        protocol: Name of the protocol.
        specs: The trainings whose models are tested, one per fold.
        results: Results of `specs`, each with a name for its warnings.
        hyperparameters: The setting that was trained, by target.
        run: Number of the reproduction, from 0.
        study: Fingerprint of the study that found the setting; None if nothing was searched.
        chosen_by: Results of the trainings that chose the epoch of the models.
        flags: Warnings about this choice, which come before those about the models.
    """
    return EvaluateJob(
        specs,
        protocol,
        hyperparameters,
        run,
        problem.seed,
        training_time=sum(result.wall_time for _, result in results) + sum(fold.wall_time for fold in chosen_by),
        flags=(*flags, *(f"{name}: {result.flag}" for name, result in results if result.flag)),
        steps=sum(result.best_iteration for _, result in results),
        iterations=sum(result.iterations for _, result in results),
        metrics=problem.metrics,
        chosen_by=tuple(fold.fingerprint for fold in chosen_by),
        search=problem.search,
        study=study,
    )
