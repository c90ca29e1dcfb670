"""An objective for a study of Optuna of your own: its trials train the folds through the suite's store."""

import logging
import math
import multiprocessing
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import BaseTrial
from pydantic import JsonValue

from protocols.jobs import Lab, TrainJob
from protocols.search.proposals import distribution_of, rounded
from protocols.study import RunningSearch
from protocols.training.build_method import MethodError, RefusedError
from protocols.training.check_method import check_method
from protocols.trunks.trunk_entry import RANDOM
from reproduce.config.experiment_file import check_own_name, load_experiments
from reproduce.errors import InputError
from reproduce.run.devices import check_device, default_workers
from reproduce.run.lab import MethodSearch, SharedLab
from reproduce.run.local import LocalProcesses
from reproduce.run.session import Session, open_session
from reproduce.storage import storage_paths
from results.records.records import FoldResult, RunRecord
from results.records.trials import Trial, mean_of
from results.spec.method import HyperparameterError
from results.spec.range import Range
from results.wording import counted

_LOG = logging.getLogger(__name__)

Suggest = Callable[[BaseTrial], dict[str, JsonValue]]


class Objective:
    """Trains one setting of a method on every fold, and returns the mean of the best validation MAP@R.

    The folds' scores are reported as intermediate values, in the order of the folds, so that the study's pruner can end
    a trial before its last fold. The fingerprints of the trainings are the attribute `trainings` of the trial. A
    training that the store has is not repeated. A fold that diverges counts 0. The search cannot see the test classes.

    A suggested setting that the method refuses fails the trial, and the reason is logged.

    The worker processes live as long as the objective. Trials may run in threads of Optuna's (`n_jobs`); their
    trainings share the workers, one trial after another.

    Args:
        experiment: Name of an experiment that comes with the suite, or path of a file; `/panel` selects a panel.
        method: Name of a row of the file, of a method, or path of a card.
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
        overrides = {**({"dataset.root": str(data)} if data else {}), **(settings or {})}
        loaded = load_experiments(experiment, overrides)
        if len(loaded) > 1:
            raise InputError(f"{experiment}: has several panels; use one of {', '.join(loaded)}")
        ((name, opened),) = loaded.items()
        opened = opened.only(method)
        if suggest is None and opened.search.trials == 0:  # The file takes published values; a study searches.
            opened = opened.with_search(trials=1)
        self.device = check_device(device)
        self.workers = workers or default_workers(self.device)
        self.session: Session = open_session(name, opened, storage_paths(store).absolute(), device=self.device)
        self.key, self.study = [*self.session.studies().items()][-1]  # A variant comes behind its method.
        if suggest is None and not self.study.row.ranges:
            raise InputError(f"{method}: has no search space; give suggest=, a function that suggests a setting")
        self.suggest = suggest or (
            lambda trial: {target: suggested(trial, target, one) for target, one in self.study.row.ranges.items()}
        )
        self._known: set[str] = set(self.study.row.ranges)
        self._executor, self._lock = LocalProcesses(self.device, self.workers), threading.Lock()
        weakref.finalize(self, self._executor.close)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: it holds a store and processes."""
        raise InputError("an Objective cannot be pickled; make one in each process, from the same arguments")

    def __call__(self, trial: BaseTrial) -> float:
        """Train the folds of a trial's setting. NaN, which fails the trial, if the method refuses the setting.

        Args:
            trial: One of a study's. A finished one, such as `study.best_trial`, or a `FixedTrial` with its parameters
                and its number, gives its value again, from the trainings in the store.

        Raises:
            InputError: The study minimises or has several objectives, `suggest` returns no dict, a value of a fixed,
                finished or enqueued trial is outside its range, or the method has no such hyperparameter.
            optuna.TrialPruned: The study's pruner ends the trial.
            WorkFailedError: A training failed too often for another reason.
        """
        study = getattr(trial, "study", None)  # Finished and fixed trials have none.
        directions = [direction.name.lower() for direction in study.directions] if study else ["maximize"]
        if directions != ["maximize"]:
            raise InputError(
                f"the study's directions are {', '.join(directions)}; MAP@R is one value to maximise: "
                'optuna.create_study(direction="maximize")'
            )
        suggestion: object = self.suggest(trial)
        if not isinstance(suggestion, dict):
            raise InputError(
                f"suggest= returned {suggestion!r}; it returns a dict of hyperparameters by target, such as "
                '{"loss.margin": 0.1}'
            )
        _check_ranges(trial)
        setting = rounded(suggestion, self.study.row.ranges)
        self._check_names(setting)
        trial.set_user_attr("setting", setting)
        asked = Trial(number=trial.number, setting={**self.study.row.given, **setting})
        jobs = [TrainJob(spec) for spec in self.study.specs(asked)]
        folds: list[FoldResult] = []
        # As many folds at a time as there are workers. The pruner sees them in order, whatever their number.
        for start in range(0, len(jobs), self.workers):
            try:
                made = self._train(jobs[start : start + self.workers])
            except RefusedError as error:
                trial.set_user_attr("reason", str(error))
                _LOG.warning("trial %d fails: %s", trial.number, error)
                return math.nan
            for fold in made:
                folds.append(fold)
                trial.set_user_attr("trainings", [fold.fingerprint for fold in folds])
                trial.report(fold.objective, len(folds) - 1)
                if len(folds) < len(jobs) and trial.should_prune():
                    raise optuna.TrialPruned(f"pruned after {len(folds)} of {counted(len(jobs), 'fold')}")
        return mean_of([fold.objective for fold in folds])

    def test(self, setting: Mapping[str, JsonValue], name: str) -> list[RunRecord]:
        """Train a setting from fresh seeds, test these runs, and keep them in the store as an experiment of one row.

        `table`, `report`, `export model` and `fit` take the experiment by its name. Test a setting that validation
        scores have chosen; a choice among tested ones would be a choice by luck.

        Args:
            setting: Hyperparameters by target, such as `study.best_params`, or with a `suggest` of your own the
                attribute `setting` of the best trial.
            name: Name of the experiment in the store.

        Returns:
            The tested runs, as many as the experiment's file has reproductions.

        Raises:
            InputError: The method has no such hyperparameter, or the name has more than letters, digits and `_`.
            RefusedError: The method refuses the setting.
            WorkFailedError: A training failed too often for another reason.
        """
        check_own_name(name, f"name {name!r}")
        self._check_names(setting)
        row, method = self.study.row, self.study.method
        own = {target: value for target, value in method.values_of(row.ranges).items() if value is not None}
        given = {**own, **row.given, **setting}
        experiment = self.session.experiment.with_search(trials=0, searches=1)
        experiment = experiment.model_copy(update={"settings": {self.key: given}})
        fixed = row.model_copy(update={"method": method.at(given), "ranges": {}, "given": given})
        planned = fixed.with_budget(
            experiment.search,
            experiment.reproductions,
            untrained_weights=experiment.conditions.trunk.weights == RANDOM,
        )
        plan = self.session.plan.model_copy(update={"experiment": experiment, "rows": {self.key: planned}})
        session = replace(self.session, name=name, plan=plan)
        session.store.put_experiment(session.fingerprint, name, session.plan)
        self._run(partial(session.protocol.run, RunningSearch(session.studies()[self.key])), session.fingerprint)
        return session.store.experiment_runs(session.fingerprint)

    def _check_names(self, setting: Mapping[str, JsonValue]) -> None:
        """Build the method once with hyperparameters that are not among those of the card's search."""
        if setting.keys() <= self._known:
            return
        try:
            check_method(self.study.method.at(setting))
        except RefusedError:  # A value that the method does not take fails its trial.
            return
        except (MethodError, HyperparameterError) as error:
            known = ", ".join(self.study.row.ranges)
            raise InputError(f"{error}; the card searches {known}, and optimizer.lr is the network's rate") from None
        self._known |= setting.keys()

    def _train(self, jobs: list[TrainJob]) -> list[FoldResult]:
        made: list[FoldResult] = []
        self._run(lambda lab: made.extend(lab.train(jobs)))
        return made

    def _run(self, follow: Callable[[Lab], object], experiment: str | None = None) -> None:
        lab = SharedLab(self.session.store, self._executor, experiment=experiment)  # Optuna shows the progress.
        with self._lock:
            failed = lab.run([MethodSearch(self.key, self.study.setup, follow)])
        if failed:
            raise failed[self.key]


def _check_ranges(trial: BaseTrial) -> None:
    """Refuse a value outside the range that was suggested, such as one that was enqueued: Optuna only warns."""
    for name, range_ in trial.distributions.items():
        value = trial.params[name]
        if isinstance(range_, FloatDistribution | IntDistribution) and not range_.low <= value <= range_.high:
            raise InputError(f"{name} is {value:g}, outside its range from {range_.low:g} to {range_.high:g}")


def suggested(trial: BaseTrial, target: str, one: Range) -> JsonValue:
    """Let a trial of Optuna choose a value from the range of a hyperparameter."""
    range_ = distribution_of(one)
    if isinstance(range_, CategoricalDistribution):
        return trial.suggest_categorical(target, range_.choices)
    if isinstance(range_, IntDistribution):
        return trial.suggest_int(target, range_.low, range_.high, log=range_.log, step=range_.step)
    assert isinstance(range_, FloatDistribution)
    return trial.suggest_float(target, range_.low, range_.high, log=range_.log, step=range_.step)
