"""Plans an experiment: counts its trainings, those in the store, and estimates how long the rest takes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from protocols.problem import Problem
from protocols.splits import from_ranges
from reproduce.execution.session import Session
from reproduce.forecast.machine_rates import machine_of
from reproduce.forecast.rates import Rates, machine_rates, stored_rates
from reproduce.forecast.typical_lengths import TypicalLength, first_stop, typical_length
from results.records.frames import Timing
from results.spec.training_spec import FoldSpec
from results.store.store import Store


@dataclass(frozen=True)
class MethodPlan:
    """The planned trainings and tests of one method.

    Attributes:
        key: The method's key.
        title: The method's title.
        trainings: Number of trainings of all its trials and reproductions.
        in_store: How many of them are in the store.
        seconds_each: Mean duration in seconds of the stored trainings of this dataset and method; None if there are
            none.
        shortest: Lower bound of a training's length: early stopping ends it at the first possible validation.
        longest: Upper bound of a training's length: it runs for all epochs.
        typical: The typical length.
        runs: Number of runs, each with one test.
        test: What one test embeds and compares.
        own_rates: Rates of the method's stored trainings; None if there are none. Losses differ in speed, most of all
            where the trunk is frozen.
    """

    key: str
    title: str
    trainings: int
    in_store: int
    seconds_each: float | None
    shortest: "Length"
    longest: "Length"
    typical: TypicalLength
    runs: int = 0
    test: "Length | None" = None
    own_rates: Rates | None = None

    @property
    def to_do(self) -> int:
        """Number of trainings that are not in the store."""
        return self.trainings - self.in_store

    def has_own_rates(self, rates: Rates) -> bool:
        """Whether trainings are left to do, and the method's own rates come before those of the machine."""
        return self.to_do > 0 and rates.here and self.own_rates is not None

    def seconds_to_do(self, rates: Rates | None) -> tuple[float, float, float] | None:
        """Return the least, a typical and the largest duration of what is to do, one after another, in seconds.

        Tests are taken to be missing in the proportion of the trainings. Without rates they are not counted.

        Args:
            rates: Speed of the machine. If it is this one, the method's own rates come first. None takes the durations
                of stored trainings for all three.

        Returns:
            The durations; None if neither rates nor stored trainings are known.
        """
        if not self.to_do:
            return 0.0, 0.0, 0.0
        if rates is None:
            return None if self.seconds_each is None else (self.to_do * self.seconds_each,) * 3
        training = self.own_rates if self.own_rates is not None and rates.here else rates
        least, most = self.shortest.seconds(training), self.longest.seconds(training)
        middle = self.typical.share * most
        if rates.here and self.seconds_each is not None:
            middle = self.seconds_each
            least, most = min(least, middle), max(most, middle)
        middle = min(max(middle, least), most)
        tests = self.test.seconds(rates) * self.runs * self.to_do / self.trainings if self.test else 0.0
        return self.to_do * least + tests, self.to_do * middle + tests, self.to_do * most + tests


@dataclass(frozen=True)
class Length:
    """The length of a training.

    Attributes:
        iterations: Number of optimizer steps.
        trained: Number of images in its batches.
        validated: Number of images embedded in its validations.
        compared: Number of pairs of embeddings compared in the retrieval of its validations.
    """

    iterations: int
    trained: int
    validated: int
    compared: int = 0

    def seconds(self, rates: Rates) -> float:
        """Return the duration in seconds at the given rates."""
        embedding = self.trained / rates.training + self.validated / rates.evaluation
        return embedding + self.compared / rates.comparisons


def plan(
    session: Session,
    store: Store | None,
    timings: Sequence[Timing] = (),
) -> list[MethodPlan]:
    """Plan the trainings of an opened experiment. The store is only read.

    Args:
        session: The opened experiment.
        store: The store; None if there is none yet.
        timings: Timings of all trainings in the store.

    Returns:
        One plan per method.
    """
    plans = []
    studies = session.studies(store.searches if store else None)
    for card, study in zip(session.cards, studies.values(), strict=True):
        specs = [] if store is None else session.protocol.foreseeable(study)
        shortest, longest = lengths(study.problem, session.protocol.kinds(study))
        plans.append(
            MethodPlan(
                card.key,
                card.title,
                session.protocol.trainings_of(study) - study.spared(),
                0 if store is None else len(store.finished_folds([spec.fingerprint for spec in specs])),
                _seconds_each(study.problem, card.key, timings),
                shortest,
                longest,
                typical_length(study.problem, shortest.iterations, longest.iterations, timings),
                study.n_runs,
                length_of_test(study.problem),
                _own_rates(study.problem, card.key, timings),
            )
        )
    return plans


def lengths(problem: Problem, kinds: Sequence[FoldSpec]) -> tuple[Length, Length]:
    """Return a lower and an upper bound of the length of a method's trainings.

    Args:
        problem: The problem that the trainings belong to.
        kinds: One example of each kind of training.
    """
    bounds = [_bounds(problem, spec) for spec in kinds]
    return _by_part(min, [least for least, _ in bounds]), _by_part(max, [most for _, most in bounds])


def _bounds(problem: Problem, spec: FoldSpec) -> tuple[Length, Length]:
    """Return the lengths of the shortest and the longest possible training of one kind."""
    settings, images = spec.training, problem.dataset.images
    validation_images = len(images.of_classes(from_ranges(spec.validation_classes)))
    training_images = len(images.of_classes(from_ranges(spec.train_classes)))
    if spec.method.loss is None:
        # An embedder that is computed needs the features of the training images.
        embedded = validation_images + (training_images if spec.method.embedder else 0)
        only_embedding = Length(0, 0, embedded, validation_images**2)
        return only_embedding, only_embedding
    steps = settings.steps_per_epoch(training_images)

    def length(epochs: int) -> Length:
        iterations = epochs * steps
        validations = 1 + -(-epochs // settings.validate_every)
        return Length(
            iterations,
            iterations * settings.batch_size,
            validations * validation_images,
            validations * validation_images**2,
        )

    longest = length(settings.max_epochs)
    # Without validation classes nothing stops a training before its last epoch.
    return longest if not validation_images else length(first_stop(settings)), longest


def length_of_test(problem: Problem) -> Length:
    """Return what the test of a run embeds and compares: the test images with the model of each fold.

    The concatenated embeddings have as many dimensions as those of all folds together, so they count as much.
    """
    images = len(problem.dataset.images.of_classes(problem.split.test))
    parts = problem.folds if problem.folds == 1 else 2 * problem.folds
    return Length(0, 0, problem.folds * images, parts * images**2)


def expected_test(problem: Problem, device: str) -> float | None:
    """Return how many seconds the test of a run takes, by the table of machines; None if the table does not tell.

    Args:
        problem: The problem.
        device: cpu, cuda or cuda:N.
    """
    machine = machine_of(device)
    rates = None if machine is None else machine_rates(machine, problem)
    return length_of_test(problem).seconds(rates) if isinstance(rates, Rates) else None


def _by_part(choose: Callable[[Iterable[int]], int], lengths: Sequence[Length]) -> Length:
    """Choose among the lengths in each part separately."""
    return Length(
        choose(length.iterations for length in lengths),
        choose(length.trained for length in lengths),
        choose(length.validated for length in lengths),
        choose(length.compared for length in lengths),
    )


def _seconds_each(problem: Problem, method: str, timings: Sequence[Timing]) -> float | None:
    """Mean duration in seconds of the method's stored trainings with the problem's settings; None without any."""
    settings = (problem.dataset.name, problem.training, problem.images, problem.trunk, problem.embedding_size)
    seconds = [
        timing.seconds
        for timing in timings
        if timing.spec.method.name == method and _settings(timing.spec, problem) == settings
    ]
    return sum(seconds) / len(seconds) if seconds else None


def _own_rates(problem: Problem, method: str, timings: Sequence[Timing]) -> Rates | None:
    """Rates of the method's stored trainings with the problem's trunk, crop and precision; None without any."""
    rates = stored_rates(problem, [timing for timing in timings if timing.spec.method.name == method])
    return rates if isinstance(rates, Rates) else None


def _settings(spec: FoldSpec, problem: Problem) -> tuple[object, ...]:
    # A method without an embedder has no embedding size.
    return (spec.dataset, spec.training, spec.images, spec.trunk, spec.embedding_size or problem.embedding_size)
