"""Plans an experiment: what it would train, how much of that is in the store, and how long the rest takes."""

import time
from dataclasses import dataclass

import optuna

from protocols.images.packed_images import LabelledImages
from protocols.problem import Problem
from protocols.search.study import Study
from protocols.splits import as_ranges
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
"""What is timed where only the untrained trunk is asked for."""


@dataclass(frozen=True)
class MethodPlan:
    """One method's trainings.

    Attributes:
        key: The method's key.
        title: The method's title.
        trainings: How many trainings its runs take in all.
        in_store: How many of them the store has.
        seconds_each: Mean duration of the trainings stored for dataset and method; None if there are none.
        shortest: The training that early stopping ends first. Tests are not counted.
        longest: The training that early stopping never ends.
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
    """How much there is to a training: iterations, images trained on, images scored in its validations."""

    iterations: int
    trained: int
    validated: int

    def seconds(self, rates: "Rates") -> float:
        """What it takes at these rates."""
        return self.trained / rates.training + self.validated / rates.evaluation


@dataclass(frozen=True)
class Rates:
    """Images per second, in training at the experiment's batch size and in evaluation; where they come from."""

    training: float
    evaluation: float
    source: str


def plan(session: Session, store: Store | None, storage: optuna.storages.BaseStorage | None) -> list[MethodPlan]:
    """One plan per method; `store` and `storage` are None where nothing has been run yet."""
    plans = []
    studies = session.studies(storage or optuna.storages.InMemoryStorage())
    for card, study in zip(session.cards, studies.values(), strict=True):
        known = [] if store is None else session.protocol.foreseeable(study)
        shortest, longest = lengths(study)
        plans.append(
            MethodPlan(
                card.key,
                card.title,
                session.protocol.trainings_of(study),
                0 if store is None else len(store.finished_folds([spec.fingerprint for spec in known])),
                None if store is None else mean_seconds(session.problem, card.key, store),
                shortest,
                longest,
            )
        )
    return plans


def lengths(study: Study) -> tuple[Length, Length]:
    """The shortest and the longest possible training of the first fold."""
    problem, settings = study.problem, study.problem.training
    fold = problem.split.folds[0]
    validation_images = len(problem.dataset.images.of_classes(fold.validation))
    if study.method.method.loss is None:
        once = Length(0, 0, validation_images)
        return once, once
    steps = settings.steps_per_epoch(len(problem.dataset.images.of_classes(fold.train)))
    # The first validation at which the untrained network is more than `patience` epochs ago.
    first_stop = (settings.patience // settings.validate_every + 1) * settings.validate_every

    def length(epochs: int) -> Length:
        iterations = epochs * steps
        validations = 1 + -(-epochs // settings.validate_every)
        return Length(iterations, iterations * settings.batch_size, validations * validation_images)

    return length(min(first_stop, settings.max_epochs)), length(settings.max_epochs)


def mean_seconds(problem: Problem, method: str, store: Store) -> float | None:
    """Mean duration of the method's stored trainings under the problem's settings, or None if there are none."""
    settings = (problem.training, problem.images, problem.trunk, problem.embedding_size)
    seconds = [
        wall_time
        for spec, wall_time in store.wall_times(problem.dataset.name, method)
        if (spec.training, spec.images, spec.trunk, spec.embedding_size or problem.embedding_size) == settings
    ]
    return sum(seconds) / len(seconds) if seconds else None


def measure_rates(session: Session, device: str) -> Rates:
    """Trains the first trained method for a few iterations on the first fold and embeds a few of its images."""
    prepare_process(device)
    trained = (m.method for m in session.open_methods().values() if m.method.loss is not None)
    spec = session.problem.fold_specs(next(trained, _ANY_METHOD), "calibration", 0)[0]
    data = session.problem.training_data(spec)
    few, ranks = _few(data.validation)
    # Drawn weights take the same time, and a plan is possible before the published ones are here.
    spec = without_published_weights(spec).model_copy(update={"validation_classes": as_ranges(ranks)})
    data = FoldData(data.train, few)
    # The first epoch also warms up; a second of one iteration shows what a validation takes.
    short = _last_interval(spec, data, device, epochs=2, iterations=1)
    long = _last_interval(spec, data, device, epochs=1, iterations=1 + _CALIBRATION_STEPS)
    per_iteration = max(1e-9, (long - short) / _CALIBRATION_STEPS)
    per_validation = max(1e-9, short - per_iteration)
    source = f"measured now on {device} with {session.problem.dataset.name}"
    if session.problem.dataset.fingerprint == "stand-in":
        source = f"measured now on {device} with noise in place of {session.problem.dataset.name}'s images"
    return Rates(session.problem.training.batch_size / per_iteration, len(few) / per_validation, source)


def measured_rates(session: Session, device: str) -> Rates | str:
    """The rates, or why they cannot be measured here: a trunk may take a package that is not installed."""
    try:
        return measure_rates(session, device)
    except TrunkError as error:
        return str(error)


def given_rates(training: float) -> Rates:
    """The rates of a machine whose training rate is known; an evaluation is a third of a training step's work."""
    return Rates(training, 3 * training, "as given with --rate; evaluation at three times that")


def _few(images: LabelledImages) -> tuple[LabelledImages, tuple[int, ...]]:
    """Some of the images, at least two of a class, and the ranks of their classes."""
    order = images.labels.argsort(kind="stable")[:_CALIBRATION_IMAGES]
    few = LabelledImages(images.images, images.rows[order], images.labels[order])
    return few, tuple(sorted(set(few.labels.tolist())))


def _last_interval(spec: FoldSpec, data: FoldData, device: str, epochs: int, iterations: int) -> float:
    """Seconds of the last epoch of a short training, its validation included."""
    update = {"iterations_per_epoch": iterations, "max_epochs": epochs, "validate_every": 1, "patience": epochs}
    spec = spec.model_copy(update={"training": spec.training.model_copy(update=update)})
    moments: list[float] = []
    train_fold(spec, data, device=device, on_validation=lambda _: moments.append(time.perf_counter()))
    return moments[-1] - moments[-2]
