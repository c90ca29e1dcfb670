"""Plans an experiment: counts its trainings, those in the store, and estimates how long the rest takes."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import optuna

from protocols.problem import Problem
from protocols.samples import Samples
from protocols.splits import as_ranges, from_ranges
from protocols.training.fold_data import FoldData
from protocols.training.train_fold import train_fold
from protocols.trunks.embedding_model import without_published_weights
from protocols.trunks.weights import TrunkError
from reproduce.execution.devices import prepare_process
from reproduce.execution.session import Session
from results.store import Store
from results.training_spec import Component, FoldSpec, MethodSpec

_CALIBRATION_STEPS = 8
_CALIBRATION_IMAGES = 96
_ANY_METHOD = MethodSpec(name="any", loss=Component(name="ContrastiveLoss"), samples_per_class=0)
"""The method that is timed if the experiment only evaluates the untrained trunk."""


@dataclass(frozen=True)
class MethodPlan:
    """The planned trainings of one method. Test evaluations are not counted.

    Attributes:
        key: The method's key.
        title: The method's title.
        trainings: Number of trainings of all its trials and reproductions.
        in_store: How many of them are in the store.
        seconds_each: Mean duration in seconds of the stored trainings of this dataset and method; None if there are
            none.
        shortest: Lower bound of a training's length: early stopping ends it at the first possible validation.
        longest: Upper bound of a training's length: it runs for all epochs.
    """

    key: str
    title: str
    trainings: int
    in_store: int
    seconds_each: float | None
    shortest: "Length"
    longest: "Length"


@dataclass(frozen=True)
class Length:
    """The length of a training.

    Attributes:
        iterations: Number of optimizer steps.
        trained: Number of images in its batches.
        validated: Number of images embedded in its validations.
    """

    iterations: int
    trained: int
    validated: int

    def seconds(self, rates: "Rates") -> float:
        """Return the duration in seconds at the given rates."""
        return self.trained / rates.training + self.validated / rates.evaluation


@dataclass(frozen=True)
class Rates:
    """The speed of a machine.

    Attributes:
        training: Images per second in training, at the experiment's batch size.
        evaluation: Images per second in evaluation.
        source: How the rates were obtained, for people.
    """

    training: float
    evaluation: float
    source: str


def plan(session: Session, store: Store | None, storage: optuna.storages.BaseStorage | None) -> list[MethodPlan]:
    """Plan the trainings of an opened experiment.

    Args:
        session: The opened experiment.
        store: The store; None if there is none yet.
        storage: Optuna's storage of the studies; None if there is none yet.

    Returns:
        One plan per method.
    """
    plans = []
    studies = session.studies(storage or optuna.storages.InMemoryStorage())
    for card, study in zip(session.cards, studies.values(), strict=True):
        specs = [] if store is None else session.protocol.foreseeable(study)
        shortest, longest = lengths(session.problem, session.protocol.kinds(study))
        plans.append(
            MethodPlan(
                card.key,
                card.title,
                session.protocol.trainings_of(study),
                0 if store is None else len(store.finished_folds([spec.fingerprint for spec in specs])),
                None if store is None else mean_seconds(study.problem, card.key, store),
                shortest,
                longest,
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
        only_embedding = Length(0, 0, validation_images + (training_images if spec.method.embedder else 0))
        return only_embedding, only_embedding
    steps = settings.steps_per_epoch(training_images)
    # The epoch of the first validation that can stop a training: the first one later than `patience` epochs.
    first_stop = (settings.patience // settings.validate_every + 1) * settings.validate_every

    def length(epochs: int) -> Length:
        iterations = epochs * steps
        validations = 1 + -(-epochs // settings.validate_every)
        return Length(iterations, iterations * settings.batch_size, validations * validation_images)

    longest = length(settings.max_epochs)
    # Without validation classes nothing stops a training before its last epoch.
    return longest if not validation_images else length(min(first_stop, settings.max_epochs)), longest


def _by_part(choose: Callable[[Iterable[int]], int], lengths: Sequence[Length]) -> Length:
    """Choose among the lengths in each part separately."""
    return Length(
        choose(length.iterations for length in lengths),
        choose(length.trained for length in lengths),
        choose(length.validated for length in lengths),
    )


def mean_seconds(problem: Problem, method: str, store: Store) -> float | None:
    """Return the mean duration in seconds of the method's stored trainings with the problem's settings.

    Returns None if there are no such trainings.
    """
    settings = (problem.training, problem.images, problem.trunk, problem.embedding_size)
    seconds = [
        wall_time
        for spec, wall_time in store.wall_times(problem.dataset.name, method)
        if (spec.training, spec.images, spec.trunk, spec.embedding_size or problem.embedding_size) == settings
    ]
    return sum(seconds) / len(seconds) if seconds else None


def measure_rates(session: Session, device: str) -> Rates:
    """Measure the speed of this machine.

    The first method with a loss is trained for a few iterations on the first fold, and a few images are embedded.

    Raises:
        TrunkError: The trunk cannot be built here.
    """
    prepare_process(device)
    trained_methods = (m.method for m in session.open_methods().values() if m.method.loss is not None)
    spec = session.problem.fold_specs(next(trained_methods, _ANY_METHOD), "calibration", 0)[0]
    data = session.problem.training_data(spec)
    few, ranks = _few(data.validation)
    # Random weights take the same time, and they need no download.
    spec = without_published_weights(spec).model_copy(update={"validation_classes": as_ranges(ranks)})
    data = FoldData(data.train, few)
    # The first epoch warms up. The second has one iteration, so that its time is nearly that of a validation.
    short = _last_interval(spec, data, device, epochs=2, iterations=1)
    long = _last_interval(spec, data, device, epochs=1, iterations=1 + _CALIBRATION_STEPS)
    per_iteration = max(1e-9, (long - short) / _CALIBRATION_STEPS)
    per_validation = max(1e-9, short - per_iteration)
    source = f"measured now on {device} with {session.problem.dataset.name}"
    if session.problem.dataset.fingerprint == "stand-in":
        source = f"measured now on {device} with noise in place of {session.problem.dataset.name}'s images"
    return Rates(session.problem.training.batch_size / per_iteration, len(few) / per_validation, source)


def measured_rates(session: Session, device: str) -> Rates | str:
    """Measure the rates; return the reason if that is not possible, for instance if a trunk's package is missing."""
    try:
        return measure_rates(session, device)
    except TrunkError as error:
        return str(error)


def given_rates(training: float) -> Rates:
    """Return the rates of a machine whose training rate is given. Evaluation is assumed to be three times as fast."""
    return Rates(training, 3 * training, "as given with --rate; evaluation assumed to be three times as fast")


def _few(images: Samples) -> tuple[Samples, tuple[int, ...]]:
    """Return some of the images, with at least two of a class, and the ranks of their classes."""
    order = images.labels.argsort(kind="stable")[:_CALIBRATION_IMAGES]
    few = images.select(order)
    return few, tuple(sorted(set(few.labels.tolist())))


def _last_interval(spec: FoldSpec, data: FoldData, device: str, epochs: int, iterations: int) -> float:
    """Return the duration in seconds of the last epoch of a short training, with its validation."""
    update = {"iterations_per_epoch": iterations, "max_epochs": epochs, "validate_every": 1, "patience": epochs}
    spec = spec.model_copy(update={"training": spec.training.model_copy(update=update)})
    moments: list[float] = []
    train_fold(spec, data, device=device, on_validation=lambda _: moments.append(time.perf_counter()))
    return moments[-1] - moments[-2]
