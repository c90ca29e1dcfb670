"""An objective for a study of Optuna of your own: its trials train the folds through the suite's store."""

import math
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic import JsonValue

from protocols.jobs import Job, Outcome, TrainJob, Work, trainings
from protocols.search.space import SearchParameter
from protocols.search.study import Study
from reproduce.config.experiment_file import load_experiments
from reproduce.errors import InputError
from reproduce.execution.devices import check_device, default_workers
from reproduce.execution.local import open_executor
from reproduce.execution.scheduler import Scheduler
from reproduce.execution.session import Session, open_session
from reproduce.monitoring.observer import Tick
from reproduce.storage import open_store, storage_paths
from results.records.records import FoldResult, RunRecord
from results.records.trials import Trial, mean_of

Suggest = Callable[[optuna.Trial], dict[str, JsonValue]]


class Objective:
    """Trains one setting of a method on every fold, and returns the mean of the best validation MAP@R.

    The folds' scores are reported as intermediate values, and the fingerprints of the trainings are the attribute
    `trainings` of the trial. A training that the store has is not repeated. A fold that diverges counts 0. The search
    cannot see the test classes.

    Args:
        experiment: Name of an experiment that comes with the suite, or path of a file; `/panel` selects a panel.
        method: Name of a method, or path of a card.
        settings: Settings that replace those of the file, by dotted key, such as `training.max_epochs`.
        data: Folder of the dataset's images, if it needs one.
        suggest: Function that suggests the setting, by target such as `loss.margin`; by default the ranges of the card
            and the experiment are searched.
        store: The store: a file or a SQLAlchemy URL.
        device: auto, cpu, cuda or cuda:N.
        workers: How many folds are trained at the same time; None takes what fits the machine.

    Attributes:
        study: The method with its problem and its search space.

    Raises:
        InputError: Something is missing or wrong; the message is one line with the remedy.
    """

    def __init__(
        self,
        experiment: str,
        method: str,
        settings: dict[str, Any] | None = None,
        *,
        data: str | Path | None = None,
        suggest: Suggest | None = None,
        store: str = "runs/store.sqlite",
        device: str = "auto",
        workers: int | None = None,
    ) -> None:
        overrides = {"methods": [method], **({"dataset.root": str(data)} if data else {}), **(settings or {})}
        loaded = load_experiments(experiment, overrides)
        if len(loaded) > 1:
            raise InputError(f"{experiment}: has several panels; use one of {', '.join(loaded)}")
        ((name, opened),) = loaded.items()
        self.device = check_device(device)
        self.workers = workers or default_workers(self.device)
        self.session: Session = open_session(
            name, opened, storage_paths(store, None, None, None), None, device=self.device
        )
        ((self.key, self.study),) = self.session.studies().items()
        if suggest is None and not self.study.space:
            raise InputError(f"{method}: has no search space; give suggest=, a function that suggests a setting")
        self.suggest = suggest or (lambda trial: {p.target: suggested(trial, p) for p in self.study.space})

    def __call__(self, trial: optuna.Trial) -> float:
        """Train the folds of a trial's setting. NaN, which fails the trial, if the method refuses the setting."""
        setting = self.suggest(trial)
        asked = Trial(number=trial.number, setting={**self.study.method.given, **setting})
        folds: list[FoldResult] = []
        with closing(open_executor(self.device, self.workers)) as executor:
            scheduler = Scheduler(self.study.problem, open_store(self.session.paths), executor, _Silent())
            scheduler.run({self.key: _train(self.study, asked, folds)})
        if reason := scheduler.refused.get(self.key):
            trial.set_user_attr("reason", reason)
            return math.nan
        for number, fold in enumerate(folds):
            trial.report(fold.objective, number)
        trial.set_user_attr("trainings", [fold.fingerprint for fold in folds])
        return mean_of([fold.objective for fold in folds])


def suggested(trial: optuna.Trial, parameter: SearchParameter) -> JsonValue:
    """Let a trial of Optuna choose a value from the range of a hyperparameter."""
    target, range_ = parameter.target, parameter.distribution()
    if isinstance(range_, CategoricalDistribution):
        return trial.suggest_categorical(target, range_.choices)
    if isinstance(range_, IntDistribution):
        return trial.suggest_int(target, range_.low, range_.high, log=range_.log)
    assert isinstance(range_, FloatDistribution)
    return trial.suggest_float(target, range_.low, range_.high, log=range_.log)


def _train(study: Study, trial: Trial, folds: list[FoldResult]) -> Work[list[RunRecord]]:
    folds += yield from trainings([TrainJob(spec) for spec in study.specs(trial)])
    return []


class _Silent:
    """Optuna shows the progress."""

    def job_done(self, method: str, job: Job, outcome: Outcome, *, from_store: bool) -> None: ...

    def spared(self, method: str, fingerprints: list[str]) -> None: ...

    def ticks(self, ticks: list[Tick]) -> None: ...
