"""The work that a protocol asks a lab for: trainings and test evaluations, as values that any process can get.

A protocol is a function that calls `lab.train` and `lab.test`. It does not depend on where the work is done, nor on
whether its outcome was in the store already.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from results.records.records import Event, FoldResult, RunRecord, run_fingerprint, run_name
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
    """The test evaluation of one reproduction.

    Attributes:
        trainings: The finished trainings whose models are tested, one per fold.
        protocol: Name of the protocol.
        hyperparameters: The setting that was trained, by target.
        run: Number of the reproduction, from 0 in every search.
        seed: The experiment's seed.
        search: Number of the search that found the setting, from 0.
        study: Fingerprint of the study that found it; None if nothing was searched.
        metrics: Names of further metrics to measure.
        choosers: The finished trainings that chose the epoch of the models; empty if nothing was chosen.
        choice_events: What happened in this choice.
    """

    trainings: tuple[FoldResult, ...]
    protocol: str
    hyperparameters: dict[str, JsonValue]
    run: int
    seed: int
    search: int = 0
    study: str | None = None
    metrics: tuple[str, ...] = ()
    choosers: tuple[FoldResult, ...] = ()
    choice_events: tuple[Event, ...] = ()

    @property
    def specs(self) -> tuple[FoldSpec, ...]:
        """The specifications of the trainings whose models are tested."""
        return tuple(training.spec for training in self.trainings)

    @property
    def chosen_by(self) -> tuple[str, ...]:
        """Fingerprints of the trainings that chose the epoch."""
        return tuple(training.fingerprint for training in self.choosers)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the run record that the evaluation makes."""
        return run_fingerprint(tuple(spec.fingerprint for spec in self.specs), self.metrics, self.chosen_by)

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened in the choice of the epoch and in the trainings."""
        return (*self.choice_events, *(event for training in self.trainings for event in training.events))

    @property
    def steps(self) -> int:
        """Iterations up to the checkpoints of the models, summed."""
        return sum(training.best_iteration for training in self.trainings)

    @property
    def iterations(self) -> int:
        """Iterations up to the end of the models' trainings, summed."""
        return sum(training.iterations for training in self.trainings)

    @property
    def early_steps(self) -> int | None:
        """Iterations of a training up to its early epoch; None where the trainings have none."""
        training, early = self.specs[0].conditions.training, self.specs[0].early_epoch
        if early is None or training.iterations_per_epoch is not None:
            return early and early * (training.iterations_per_epoch or 0)
        # The second validation comes after so many passes, unless the training diverged before.
        first = min(training.validate_every, early)
        validated = [one.curve[1].iteration for one in self.trainings if len(one.curve) > 1]
        return validated[0] // first * early if validated else None

    @property
    def wall_time(self) -> float:
        """Duration of all trainings in seconds, summed."""
        return math.fsum(training.wall_time for training in (*self.trainings, *self.choosers))

    @property
    def run_name(self) -> str:
        """Name of the run in messages."""
        return run_name(self.run, self.search)


Job = TrainJob | EvaluateJob
Outcome = FoldResult | RunRecord


class Missing(Exception):  # noqa: N818 - it is no error: the jobs are made, and the protocol is asked again.
    """What a protocol asked for is not there yet."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        super().__init__(f"{len(jobs)} jobs are to be made")
        self.jobs = jobs


class Lab(Protocol):
    """Has what a protocol asks for, or raises `Missing`: then it is made, and the protocol is asked again.

    So a protocol is a function without effects of its own: asked again, it asks for the same jobs in the same order.
    Both functions raise RefusedError if the method's own code refuses a job.
    """

    def train(self, jobs: Sequence[TrainJob]) -> list[FoldResult]:
        """Return the results of trainings in the same order; those that are missing are made side by side."""

    def test(self, jobs: Sequence[EvaluateJob]) -> list[RunRecord]:
        """Return the records of test evaluations, whose trainings are done, in the same order."""
