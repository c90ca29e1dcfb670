"""An objective for a study of Optuna of your own: its trials train the folds through the suite's store."""

import math
import multiprocessing
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic import JsonValue

from protocols.jobs import Lab, TrainJob
from protocols.search.space import SearchParameter
from protocols.training.build_method import RefusedError
from reproduce.config.experiment_file import load_experiments
from reproduce.errors import InputError
from reproduce.run.devices import check_device, default_workers
from reproduce.run.lab import MethodSearch, SharedLab
from reproduce.run.local import LocalProcesses
from reproduce.run.session import Session, open_session
from reproduce.storage import storage_paths
from results.records.records import FoldResult
from results.records.trials import Trial, mean_of

Suggest = Callable[[optuna.Trial], dict[str, JsonValue]]


class Objective:
    """Trains one setting of a method on every fold, and returns the mean of the best validation MAP@R.

    The folds' scores are reported as intermediate values, in the order of the folds, so that the study's pruner can end
    a trial before its last fold. The fingerprints of the trainings are the attribute `trainings` of the trial. A
    training that the store has is not repeated. A fold that diverges counts 0. The search cannot see the test classes.

    The worker processes live as long as the objective. Trials may run in threads of Optuna's (`n_jobs`); their
    trainings share the workers, one trial after another.

    Args:
        experiment: Name of an experiment that comes with the suite, or path of a file; `/panel` selects a panel.
        method: Name of a method, or path of a card.
        settings: Settings that replace those of the file, by dotted key, such as `training.max_epochs`.
        data: Folder of the dataset's images, if it needs one.
        suggest: Function that suggests the setting, by target such as `loss.margin`; by default the ranges of the card
            and the experiment are searched.
        store: File of the store.
        device: auto, cpu, cuda or cuda:N.
        workers: How many folds are trained at the same time; None takes what fits the machine.

    Attributes:
        study: The method with its setup and its search space.

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
        if multiprocessing.current_process().daemon:
            raise InputError("a daemonic process may start no processes for trainings; start yours with daemon=False")
        overrides = {"methods": [method], **({"dataset.root": str(data)} if data else {}), **(settings or {})}
        loaded = load_experiments(experiment, overrides)
        if len(loaded) > 1:
            raise InputError(f"{experiment}: has several panels; use one of {', '.join(loaded)}")
        ((name, opened),) = loaded.items()
        self.device = check_device(device)
        self.workers = workers or default_workers(self.device)
        self.session: Session = open_session(name, opened, storage_paths(store).absolute(), device=self.device)
        ((self.key, self.study),) = self.session.studies().items()
        if suggest is None and not self.study.space:
            raise InputError(f"{method}: has no search space; give suggest=, a function that suggests a setting")
        self.suggest = suggest or (lambda trial: {p.target: suggested(trial, p) for p in self.study.space})
        self._executor, self._lock = LocalProcesses(self.device, self.workers), threading.Lock()
        weakref.finalize(self, self._executor.close)

    def __call__(self, trial: optuna.Trial) -> float:
        """Train the folds of a trial's setting. NaN, which fails the trial, if the method refuses the setting.

        Raises:
            optuna.TrialPruned: The study's pruner ends the trial.
            WorkFailedError: A training failed too often for another reason.
        """
        setting = self.suggest(trial)
        asked = Trial(number=trial.number, setting={**self.study.method.given, **setting})
        jobs = [TrainJob(spec) for spec in self.study.specs(asked)]
        folds: list[FoldResult] = []
        # As many folds at a time as there are workers. The pruner sees them in order, whatever their number.
        for start in range(0, len(jobs), self.workers):
            try:
                made = self._train(jobs[start : start + self.workers])
            except RefusedError as error:
                trial.set_user_attr("reason", str(error))
                return math.nan
            for fold in made:
                folds.append(fold)
                trial.set_user_attr("trainings", [fold.fingerprint for fold in folds])
                trial.report(fold.objective, len(folds) - 1)
                if len(folds) < len(jobs) and trial.should_prune():
                    raise optuna.TrialPruned(f"pruned after {len(folds)} of {len(jobs)} folds")
        return mean_of([fold.objective for fold in folds])

    def _train(self, jobs: list[TrainJob]) -> list[FoldResult]:
        made: list[FoldResult] = []

        def train(lab: Lab) -> None:
            made.extend(lab.train(jobs))

        lab = SharedLab(self.session.store, self._executor)  # Optuna shows the progress.
        with self._lock:
            failed = lab.run([MethodSearch(self.key, self.study.setup, train)])
        if failed:
            raise failed[self.key]
        return made


def suggested(trial: optuna.Trial, parameter: SearchParameter) -> JsonValue:
    """Let a trial of Optuna choose a value from the range of a hyperparameter."""
    target, range_ = parameter.target, parameter.distribution()
    if isinstance(range_, CategoricalDistribution):
        return trial.suggest_categorical(target, range_.choices)
    if isinstance(range_, IntDistribution):
        return trial.suggest_int(target, range_.low, range_.high, log=range_.log)
    assert isinstance(range_, FloatDistribution)
    return trial.suggest_float(target, range_.low, range_.high, log=range_.log)
