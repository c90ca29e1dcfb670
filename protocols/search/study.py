"""The search of one method's hyperparameters on one problem, as both protocols do it (specification, section 7)."""

from dataclasses import dataclass

import optuna
from pydantic import JsonValue

from protocols.jobs import TrainJob, Work, trainings
from protocols.problem import Problem
from protocols.search.open_method import OpenMethod
from protocols.search.optuna_search import Search, Trial
from protocols.search.space import settled
from results.experiment_spec import SamplerSettings
from results.mlrc_constants import REPRODUCTIONS, TRIALS
from results.training_spec import TRAINING_VERSION, FoldSpec


@dataclass(frozen=True)
class Budget:
    """How much is spent on one method: MLRC's 50 trials and 10 reproductions (7, 8)."""

    trials: int = TRIALS
    reproductions: int = REPRODUCTIONS


@dataclass(frozen=True)
class Study:
    """All trials of one method on one problem. storage: Optuna's, where they are kept."""

    problem: Problem
    method: OpenMethod
    budget: Budget
    sampler: SamplerSettings
    storage: optuna.storages.BaseStorage

    @property
    def n_trials(self) -> int:
        """Trials in all: none for a method without a search space, fewer than the budget for a short exhaustive one."""
        return settled(self.method.space, self.budget.trials)[1] if self.method.space else 0

    @property
    def n_reproductions(self) -> int:
        """Runs to be made: an untrained trunk with downloaded weights is the same in every run, so one is enough."""
        always_the_same = self.method.method.loss is None and self.problem.trunk.weights != "random"
        return min(1, self.budget.reproductions) if always_the_same else self.budget.reproductions

    def open(self) -> Search:
        """The trials, new or continued."""
        space, _ = settled(self.method.space, self.budget.trials)
        identity = {**self.problem.identity(), "method": self.method.method.model_dump(mode="json")}
        if TRAINING_VERSION > 1:
            # Version 1 is not written, so that searches from before keep their names.
            identity["training_version"] = TRAINING_VERSION
        label = f"{self.problem.dataset.name}/{self.method.method.name}"
        return Search(self.storage, label, identity, space, self.sampler, self.problem.seed)

    def best_hyperparameters(self) -> Work[dict[str, JsonValue]]:
        """Bayesian search, one trial after another: what is found on top of what is given.

        A trial is one setting, trained on every fold; its score is the mean over folds of the best validation MAP@R.
        Only training and validation classes are in a FoldSpec.
        """
        if not self.method.space:
            return dict(self.method.given)
        search = self.open()
        while search.trials_told() < self.n_trials:
            trial = search.ask()
            folds = yield from trainings([TrainJob(spec) for spec in self._specs(trial)])
            search.tell(trial, folds)
        return self._with_best(search)

    def asked_specs(self) -> list[tuple[FoldSpec, bool]]:
        """The trainings of the trials asked so far, and whether their trial is over."""
        if not self.method.space:
            return []
        search = self.open()
        told = search.trials_told()
        return [
            (spec, place < told)
            for place, trial in enumerate(search.asked()[: self.n_trials])
            for spec in self._specs(trial)
        ]

    def settled_hyperparameters(self) -> dict[str, JsonValue] | None:
        """What `best_hyperparameters` came to, or None while the search goes on."""
        if not self.method.space:
            return dict(self.method.given)
        search = self.open()
        return None if search.trials_told() < self.n_trials else self._with_best(search)

    def _specs(self, trial: Trial) -> tuple[FoldSpec, ...]:
        """A trial's trainings, one per fold."""
        return self.problem.fold_specs(self.method.at(trial.hyperparameters), "search", trial.position)

    def _with_best(self, search: Search) -> dict[str, JsonValue]:
        return {**self.method.given, **search.best(self.n_trials).hyperparameters}
