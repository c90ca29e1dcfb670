"""Plans an experiment: counts its trainings, those in the store, and estimates how long the rest takes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from protocols.problem import Problem
from protocols.splits import from_ranges
from reproduce.execution.session import Session
from reproduce.forecast.rates import EVALUATION_SPEED, Rates, stored_rates, table_rates
from results.records.frames import Timing
from results.spec.training_spec import FoldSpec
from results.store.store import Store


@dataclass(frozen=True)
class Length:
    """The length of a training.

    Attributes:
        iterations: Number of optimizer steps.
        work: Number of images in its batches, and a third of those in its validations.
    """

    iterations: int
    work: float


@dataclass(frozen=True)
class MethodPlan:
    """The planned trainings and tests of one method.

    Attributes:
        title: The method's title.
        trainings: Number of trainings of all its trials and reproductions.
        in_store: How many of them are in the store.
        shortest: Lower bound of a training's length: early stopping ends it at the first possible validation.
        longest: Upper bound of a training's length: it runs for all epochs.
        typical: A typical training's share of the longest.
        typical_source: How this share was obtained, for people.
        tests: Work of the tests of all runs, in images that are trained on.
        own_rates: Rate of the method's stored trainings; None if there are none. Losses differ in speed, most of all
            where the trunk is frozen.
    """

    title: str
    trainings: int
    in_store: int
    shortest: Length
    longest: Length
    typical: float
    typical_source: str
    tests: float = 0.0
    own_rates: Rates | None = None

    @property
    def to_do(self) -> int:
        """Number of trainings that are not in the store."""
        return self.trainings - self.in_store

    def has_own_rates(self, rates: Rates) -> bool:
        """Whether trainings are left to do, and the method's own rate comes before that of the machine."""
        return self.to_do > 0 and rates.here and self.own_rates is not None

    def seconds_to_do(self, rates: Rates) -> tuple[float, float, float]:
        """Return the least, a typical and the largest duration of what is to do, one after another, in seconds.

        Tests are taken to be missing in the proportion of the trainings.
        """
        if not self.to_do:
            return 0.0, 0.0, 0.0
        own = self.own_rates if self.own_rates is not None and rates.here else rates
        least, most = self.shortest.work / own.training, self.longest.work / own.training
        middle = max(least, self.typical * most)
        tests = self.tests / rates.training * self.to_do / self.trainings
        return self.to_do * least + tests, self.to_do * middle + tests, self.to_do * most + tests


def seconds_to_do(plans: Sequence[MethodPlan], rates: Rates, workers: int) -> tuple[float, float, float]:
    """Return the least, a typical and the largest duration of all methods with so many trainings at a time."""
    least, typical, most = zip(*(method.seconds_to_do(rates) for method in plans), strict=True)
    return sum(least) / workers, sum(typical) / workers, sum(most) / workers


def plan(
    session: Session,
    store: Store | None,
    timings: Sequence[Timing] = (),
) -> list[MethodPlan]:
    """Plan each method of an opened experiment. The store is only read; None where there is none yet."""
    plans = []
    studies = session.studies(store.searches if store else None)
    for key, study in studies.items():
        problem = study.problem
        specs = [] if store is None else session.protocol.foreseeable(study)
        shortest, longest = lengths(problem, session.protocol.kinds(study))
        own = [timing for timing in timings if timing.spec.method.name == key]
        rates = stored_rates(problem, own)
        plans.append(
            MethodPlan(
                session.titles[key],
                session.protocol.trainings_of(study) - study.spared(),
                0 if store is None else len(store.finished_folds([spec.fingerprint for spec in specs])),
                shortest,
                longest,
                *typical_share(problem, shortest, longest, timings),
                study.n_runs * work_of_test(problem),
                rates if isinstance(rates, Rates) else None,
            )
        )
    return plans


def lengths(problem: Problem, kinds: Sequence[FoldSpec]) -> tuple[Length, Length]:
    """Return a lower and an upper bound of the length of trainings, given one example of each kind of training."""
    bounds = [_bounds(problem, spec) for spec in kinds]
    least, most = [least for least, _ in bounds], [most for _, most in bounds]
    return (
        Length(min(length.iterations for length in least), min(length.work for length in least)),
        Length(max(length.iterations for length in most), max(length.work for length in most)),
    )


def _bounds(problem: Problem, spec: FoldSpec) -> tuple[Length, Length]:
    settings, images = spec.training, problem.dataset.images
    validation_images = len(images.of_classes(from_ranges(spec.validation_classes)))
    training_images = len(images.of_classes(from_ranges(spec.train_classes)))
    if spec.method.loss is None:
        # An embedder that is computed needs the features of the training images.
        embedded = validation_images + (0 if spec.embedder_size is None else training_images)
        return (Length(0, embedded / EVALUATION_SPEED),) * 2
    steps = settings.steps_per_epoch(training_images)

    def length(epochs: int) -> Length:
        validations = 1 + -(-epochs // settings.validate_every)
        validated = validations * validation_images
        return Length(epochs * steps, epochs * steps * settings.batch_size + validated / EVALUATION_SPEED)

    longest = length(settings.max_epochs)
    if not validation_images:
        # Nothing stops a training without validation classes before its last epoch.
        return longest, longest
    # The first validation later than `patience` epochs.
    first_stop = (settings.patience // settings.validate_every + 1) * settings.validate_every
    return length(min(first_stop, settings.max_epochs)), longest


def typical_share(problem: Problem, shortest: Length, longest: Length, timings: Sequence[Timing]) -> tuple[float, str]:
    """Return a typical training's share of the longest, and how it was obtained.

    It is the mean of the stored trainings with the same settings. Before the first one it is assumed.
    """
    if shortest.iterations == longest.iterations:
        return 1.0, "no training stops early"
    settings = (problem.dataset.name, problem.training, problem.trunk.name, problem.trunk.frozen)
    stored = [
        iterations
        for spec, iterations, _ in timings
        if iterations
        and spec.checkpoint_epoch is None
        and (spec.dataset, spec.training, spec.trunk.name, spec.trunk.frozen) == settings
    ]
    if stored:
        count = "1 training" if len(stored) == 1 else f"the mean of {len(stored)} trainings"
        return min(1.0, sum(stored) / len(stored) / longest.iterations), f"{count} in the store"
    share = math.sqrt(shortest.iterations / longest.iterations)
    return share, "assumed: the geometric mean of the shortest and the longest training"


def work_of_test(problem: Problem) -> float:
    """Return the work of a run's test, which embeds the test images with the model of each fold."""
    return problem.folds * len(problem.dataset.images.of_classes(problem.split.test)) / EVALUATION_SPEED


def expected_test(problem: Problem, device: str) -> float | None:
    """Return how many seconds the test of a run takes, by the table of machines; None if the table does not tell."""
    rates = table_rates(problem, device)
    return work_of_test(problem) / rates.training if isinstance(rates, Rates) else None
