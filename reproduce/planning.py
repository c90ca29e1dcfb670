"""What an experiment would train, what of it is in the store, and how long the rest takes."""

import time
from dataclasses import dataclass

import optuna

from protocols.hyperparameters import OpenMethod
from protocols.mlrc import open_search, reproductions_of
from protocols.training import train_fold
from reproduce.session import Session
from results.records import FoldSpec
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


@dataclass(frozen=True)
class Pricing:
    """Longest possible training, measured on this machine: seconds per iteration and per validation."""

    per_iteration: float
    per_validation: float
    longest: float


def plan(session: Session, store: Store, studies: optuna.storages.BaseStorage) -> list[MethodPlan]:
    """One plan per method."""
    stored = store.folds()
    plans = []
    for card, method in zip(session.cards, session.open_methods().values(), strict=True):
        known = foreseeable_trainings(session, method, studies)
        own = stored[(stored["dataset"] == session.problem.dataset.name) & (stored["method"] == card.key)]
        plans.append(
            MethodPlan(
                card.key,
                card.title,
                session.trainings_of(method),
                len(store.finished_folds([spec.fingerprint for spec in known])),
                float(own["wall_time"].mean()) if len(own) else None,
            )
        )
    return plans


def foreseeable_trainings(session: Session, method: OpenMethod, studies: optuna.storages.BaseStorage) -> list[FoldSpec]:
    """The trainings that are settled so far: those of the trials asked, and the reproductions once the search is over.

    Later trials depend on earlier scores, so nobody can name them yet.
    """
    problem, budget = session.problem, session.budget
    specs: list[FoldSpec] = []
    best: OpenMethod | None = method
    setting = {}
    if method.space:
        search = open_search(problem, method, session.experiment.search.sampler, studies)
        for trial in search.asked()[: budget.trials]:
            specs += problem.fold_specs(method.at(trial.hyperparameters), "search", trial.number)
        best = method if search.trials_told() >= budget.trials else None
        setting = search.best(budget.trials).hyperparameters if best else {}
    if best is not None:
        for run in range(reproductions_of(problem, method, budget)):
            specs += problem.fold_specs(method.at(setting), "reproduction", run)
    return specs


def price(session: Session, device: str) -> Pricing | None:
    """Times a few iterations of the first trained method on the first fold; None if only the untrained trunk is run."""
    method = next((m for m in session.open_methods().values() if m.method.loss is not None), None)
    if method is None:
        return None
    spec = session.problem.fold_specs(method.method, "calibration", 0)[0]
    short = spec.training.model_copy(update={"iterations_per_epoch": _CALIBRATION_STEPS, "max_epochs": 1})
    spec = spec.model_copy(update={"training": short})
    moments = [time.perf_counter()]
    train_fold(
        spec,
        session.problem.fold_data(0),
        device=device,
        on_validation=lambda _: moments.append(time.perf_counter()),
    )
    per_validation = moments[1] - moments[0]
    per_iteration = max(0.0, moments[2] - moments[1] - per_validation) / _CALIBRATION_STEPS
    settings = session.problem.training
    validations = 1 + settings.max_epochs / settings.validate_every
    longest = settings.max_epochs * settings.iterations_per_epoch * per_iteration + validations * per_validation
    return Pricing(per_iteration, per_validation, longest)
