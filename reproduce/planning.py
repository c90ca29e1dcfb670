"""What an experiment would train, what of it is in the store, and how long the rest takes."""

import time
from dataclasses import dataclass

import optuna

from protocols.hyperparameters import OpenMethod
from protocols.mlrc import open_search, reproductions_of
from protocols.problem import Problem
from protocols.training import train_fold
from reproduce.executors import prepare_process
from reproduce.session import Session
from results.specs import FoldSpec
from results.store import Store

_CALIBRATION_STEPS = 10


@dataclass(frozen=True)
class MethodPlan:
    """One method's trainings. seconds_each: mean of those stored for dataset and method, None if there are none."""

    key: str
    title: str
    trainings: int
    in_store: int
    seconds_each: float | None
    trains: bool


@dataclass(frozen=True)
class Pricing:
    """Longest possible training, measured on this machine: seconds per iteration and per validation."""

    per_iteration: float
    per_validation: float
    longest: float


def plan(session: Session, store: Store, studies: optuna.storages.BaseStorage) -> list[MethodPlan]:
    """One plan per method."""
    plans = []
    for card, method in zip(session.cards, session.open_methods().values(), strict=True):
        known = foreseeable_trainings(session, method, studies)
        plans.append(
            MethodPlan(
                card.key,
                card.title,
                session.trainings_of(method),
                len(store.finished_folds([spec.fingerprint for spec in known])),
                mean_seconds(session.problem, card.key, store),
                card.loss is not None,
            )
        )
    return plans


def mean_seconds(problem: Problem, method: str, store: Store) -> float | None:
    """Mean duration of the method's stored trainings under the problem's settings, or None if there are none."""
    settings = (problem.training, problem.images, problem.trunk, problem.embedding_size)
    seconds = [
        wall_time
        for spec, wall_time in store.wall_times(problem.dataset.name, method)
        if (spec.training, spec.images, spec.trunk, spec.embedding_size or problem.embedding_size) == settings
    ]
    return sum(seconds) / len(seconds) if seconds else None


def foreseeable_trainings(session: Session, method: OpenMethod, studies: optuna.storages.BaseStorage) -> list[FoldSpec]:
    """The trainings that are settled so far: those of the trials asked, and the reproductions once the search is over.

    Later trials depend on earlier scores, so nobody can name them yet.
    """
    problem, budget = session.problem, session.budget
    specs: list[FoldSpec] = []
    best: OpenMethod | None = method
    setting = {}
    if method.space:
        search, trials = open_search(problem, method, budget, session.experiment.search.sampler, studies)
        for trial in search.asked()[:trials]:
            specs += problem.fold_specs(method.at(trial.hyperparameters), "search", trial.position)
        best = method if search.trials_told() >= trials else None
        setting = search.best(trials).hyperparameters if best else {}
    if best is not None:
        for run in range(reproductions_of(problem, method, budget)):
            specs += problem.fold_specs(method.at(setting), "reproduction", run)
    return specs


def price(session: Session, device: str) -> Pricing | None:
    """Times a few iterations of the first trained method on the first fold; None if only the untrained trunk is run."""
    method = next((m for m in session.open_methods().values() if m.method.loss is not None), None)
    if method is None:
        return None
    prepare_process(device)
    # The first run also warms up; its second epoch is one iteration and one validation.
    short = _last_interval(session, method, device, epochs=2, iterations=1)
    long = _last_interval(session, method, device, epochs=1, iterations=1 + _CALIBRATION_STEPS)
    per_iteration = max(0.0, long - short) / _CALIBRATION_STEPS
    per_validation = max(0.0, short - per_iteration)
    settings = session.problem.training
    validations = 1 + -(-settings.max_epochs // settings.validate_every)
    longest = settings.max_epochs * settings.iterations_per_epoch * per_iteration + validations * per_validation
    return Pricing(per_iteration, per_validation, longest)


def _last_interval(session: Session, method: OpenMethod, device: str, epochs: int, iterations: int) -> float:
    """Seconds of the last epoch of a short training, its validation included."""
    spec = session.problem.fold_specs(method.method, "calibration", 0)[0]
    update = {"iterations_per_epoch": iterations, "max_epochs": epochs, "validate_every": 1, "patience": epochs}
    spec = spec.model_copy(update={"training": spec.training.model_copy(update=update)})
    moments: list[float] = []
    train_fold(
        spec,
        session.problem.fold_data(0),
        device=device,
        on_validation=lambda _: moments.append(time.perf_counter()),
    )
    return moments[-1] - moments[-2]
