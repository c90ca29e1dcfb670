"""What an experiment has left to do, and how long that takes: numbers of each stage of each row.

`plan`, the first lines of `run` (`reproduce.run.expectation`) and the time left during a run all ask here. A number
that is expected and at most is an array of both, so that every sum is written once. The numbers of steps and folds are
expected from kept records (`results.answer.durations`); so is the speed, unless it is given or measured.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from protocols.protocol_registry import ProtocolEntry
from protocols.study import Study
from results.answer.durations import (
    START,
    Expected,
    Rate,
    Stage,
    expected_folds,
    expected_steps,
    kept_rate,
    seconds_without_steps,
)
from results.spec.conditions import Conditions
from results.store.store import Store

STAGES: tuple[Stage, ...] = ("search", "reproductions", "tests")

Both = npt.NDArray[np.float64]
"""A number that is expected, and the same at most."""


@dataclass(frozen=True)
class Work:
    """One stage of a row: its trainings, or its tests.

    Attributes:
        key: Key of the row.
        title: Its title in tables.
        stage: Name of the stage.
        searches: Number of searches of the row.
        planned: Number of trainings, or of tests; with racing at most.
        in_store: How many of them are in the store.
        most_abreast: How many of them can run at a time.
        samples: Number of images, or rows of features, that a validation embeds, or the test of one run.
        conditions: Those of its trainings.
        epoch_steps: Number of steps of an epoch; 0 without a loss.
        steps: Expected steps of a training; 0 of tests.
        folds: The part of the trainings that racing is expected to leave.
        rate: How fast they are; None if it is not known.
    """

    key: str
    title: str
    stage: Stage
    searches: int
    planned: int
    in_store: int
    most_abreast: int
    samples: int
    conditions: Conditions
    epoch_steps: int
    steps: Expected
    folds: Expected
    rate: Rate | None = None

    @property
    def left(self) -> int:
        """Number of trainings, or of tests, that are not in the store."""
        return self.planned - self.in_store

    @property
    def abreast(self) -> int:
        """How many of those that are left can run at a time."""
        return min(self.left, self.most_abreast)

    @property
    def most_steps(self) -> int:
        """Number of steps of a training that early stopping does not end."""
        return self.epoch_steps * self.conditions.training.max_epochs

    @property
    def is_known(self) -> bool:
        """Whether it is known how long they take."""
        return self.rate is not None or not self.epoch_steps

    @property
    def expected(self) -> float:
        """Number of those that are left that is expected."""
        return self.left * self.folds.value

    @property
    def each(self) -> Both:
        """Seconds of one training or test; NaN if they are not known."""
        if not self.epoch_steps:
            return np.full(2, 0.0 if self.stage == "tests" else seconds_without_steps(self.conditions, self.key))
        if self.rate is None:
            return np.full(2, math.nan)
        return self._test(self.rate) if self.stage == "tests" else self._training(self.rate)

    @property
    def seconds(self) -> Both:
        """Seconds of all that are left, added up; NaN if they are not known."""
        return np.array([self.expected, self.left]) * self.each if self.left else np.zeros(2)

    def _training(self, rate: Rate) -> Both:
        steps = np.array([self.steps.value, self.most_steps])
        validations = 1 + np.ceil(steps / self.epoch_steps / self.conditions.training.validate_every)
        return rate.training + steps * rate.step + validations * self.samples * rate.image

    def _test(self, rate: Rate) -> Both:
        image = rate.image or rate.step / self.conditions.training.batch_size
        return np.full(2, self.samples * image if rate.test is None else rate.test)


class RowWork(NamedTuple):
    """The stages of a row."""

    search: Work
    reproductions: Work
    tests: Work

    @property
    def trainings(self) -> int:
        """Number of trainings."""
        return self.search.planned + self.reproductions.planned

    @property
    def to_do(self) -> int:
        """Number of trainings that are not in the store."""
        return self.search.left + self.reproductions.left

    def chain(self, workers: int) -> Both:
        """Seconds of one search and its reproductions, which follow one another."""
        search, runs = self.search, self.reproductions
        side_by_side = max(1, min(search.abreast // search.searches, workers))
        of_search = search.seconds / search.searches / side_by_side
        of_runs = runs.seconds / search.searches / workers
        return of_search + (np.maximum(runs.each, of_runs) if runs.left else 0.0)


RateOf = Callable[[Work, int], Rate | None]
"""Returns how fast the trainings of a row are, given its search and how many run at a time; None if it is not known."""


def work_of(
    studies: Mapping[str, Study], protocol: ProtocolEntry, store: Store | None, experiment: str
) -> dict[str, RowWork]:
    """Plan the rows of an experiment, by key; how fast they are says `with_rates`.

    Args:
        studies: Its rows; their log is that of the store.
        protocol: Its protocol.
        store: Only read; None where there is none yet.
        experiment: Its fingerprint.
    """
    tested = [] if store is None else [run.method for run in store.experiment_runs(experiment)]
    return {key: _work_of_row(study, protocol, store, tested.count(key)) for key, study in studies.items()}


def _work_of_row(study: Study, protocol: ProtocolEntry, store: Store | None, tested: int) -> RowWork:
    row, setup, (of_folds, on_all) = study.row, study.setup, protocol.models(study)
    kinds, images, training = protocol.kinds(study), setup.dataset.images, setup.conditions.training
    runs, racing = row.searches * row.reproductions, study.search.racing
    of_runs = runs * (of_folds + on_all)
    of_trials = protocol.trainings_of(study) - of_runs - study.skipped()
    known = [] if store is None else protocol.foreseeable(study)
    known_trials = [name for one in study.searches for name in one.known_trainings()] if known else []
    made, searched = (len(store.finished_folds(names)) if store and names else 0 for names in (known, known_trials))
    epoch_steps = 0
    if study.method.loss is not None:
        epoch_steps = max(training.steps_per_epoch(len(images.of_classes(kind.train))) for kind in kinds)
    trials, longer = (setup.conditions_of(study.method, purpose) for purpose in ("search", "reproduction"))
    search = Work(
        key=row.key,
        title=row.title,
        stage="search",
        searches=row.searches,
        planned=of_trials,
        in_store=searched,
        # Trials of a search follow one another, and so do the folds of a raced trial.
        most_abreast=row.searches * (1 if racing else setup.folds),
        samples=len(images.of_classes(kinds[0].validation)),
        conditions=trials,
        epoch_steps=epoch_steps,
        steps=expected_steps(trials, epoch_steps, row.key, "search", setup.dataset.name),
        folds=expected_folds(row.key, setup.dataset.name) if racing and row.trials else Expected(1.0),
    )
    reproductions = replace(
        search,
        stage="reproductions",
        planned=of_runs,
        in_store=made - searched,
        most_abreast=of_runs,
        conditions=longer,
        steps=expected_steps(longer, epoch_steps, row.key, "reproductions", setup.dataset.name),
        folds=Expected(1.0),
    )
    tests = replace(
        reproductions,
        stage="tests",
        planned=runs,
        in_store=tested,
        most_abreast=runs,
        samples=(on_all or of_folds) * len(images.of_classes(setup.split.test)),
        steps=Expected(0.0),
    )
    return RowWork(search, reproductions, tests)


def rate_of_records(gpus: int = 0) -> RateOf:
    """Return what gives the rate that kept records have for a row, spread over so many GPUs; 0 is a CPU."""
    return lambda search, number: kept_rate(search.conditions, search.epoch_steps, search.key, _sharing(number, gpus))


def _sharing(number: int, gpus: int) -> int:
    """Return how many of so many trainings at a time share a GPU; 0 on CPUs."""
    return math.ceil(number / gpus) if gpus else 0


def at_a_time(rows: Mapping[str, RowWork], workers: int) -> dict[Stage, int]:
    """Return how many trainings, or tests, of each stage run at a time: there may be fewer than workers."""
    found: dict[Stage, int] = {}
    for stage in STAGES:
        of_stage = [one for row in rows.values() for one in row if one.stage == stage]
        trained = sum(one.abreast for one in of_stage if one.epoch_steps)
        found[stage] = max(1, min(workers, trained or sum(one.abreast for one in of_stage)))
    return found


def with_rates(rows: Mapping[str, RowWork], workers: int, rate_of: RateOf) -> dict[str, RowWork]:
    """Return the rows with the speed of each stage, as many at a time as really run: fewer may be faster."""
    numbers = at_a_time(rows, workers)

    def rated(row: RowWork) -> RowWork:
        return RowWork(*(replace(one, rate=rate_of(row.search, numbers[one.stage])) for one in row))

    return {key: rated(row) if row.search.epoch_steps else row for key, row in rows.items()}


@dataclass(frozen=True)
class Duration:
    """How long the trainings and tests that are left take.

    Attributes:
        seconds: With so many trainings at a time and the start of their processes.
        work: Seconds of work, of a core or of a GPU: those that share it count once.
        longest: Title of the row whose search alone takes as long as everything, so that more workers change little.
    """

    seconds: Both
    work: Both
    longest: str | None


def duration(rows: Mapping[str, RowWork], workers: int, gpus: int = 0) -> Duration | None:
    """Return how long what is left takes, on so many GPUs or on CPUs; None if the speed of a row is not known."""
    left = [one for row in rows.values() for one in row if one.left]
    if not all(one.is_known for one in left):
        return None

    def in_all(per: Mapping[Stage, int]) -> Both:
        return sum((one.seconds / per[one.stage] for one in left), np.zeros(2))

    numbers = at_a_time(rows, workers)
    work = in_all({stage: max(1, _sharing(number, gpus)) for stage, number in numbers.items()})
    chains = {row.search.title: row.chain(workers) for row in rows.values() if row.to_do}
    if not chains:
        return Duration(in_all(numbers), work, None)
    longest = max(chains, key=lambda title: tuple(chains[title]))
    all_busy = in_all(dict.fromkeys(STAGES, workers))
    return Duration(
        seconds=START + np.maximum(in_all(numbers), np.max(list(chains.values()), axis=0)),
        work=work,
        longest=longest if chains[longest][0] > all_busy[0] else None,
    )
