"""The hyperparameter search of one method on one problem, for both protocols (specification, section 7)."""

from dataclasses import dataclass, replace

import optuna
from pydantic import JsonValue

from protocols.jobs import TrainJob, Work, trainings
from protocols.problem import Problem
from protocols.search.open_method import OpenMethod
from protocols.search.optuna_search import Search, Trial
from protocols.search.space import settled
from results.records.records import FoldResult
from results.spec.mlrc_constants import REPRODUCTIONS, TRIALS
from results.spec.racing import RACING_VERSION
from results.spec.search_settings import SamplerSettings
from results.spec.seeds import search_seed
from results.spec.training_spec import TRAINING_VERSION, FoldSpec


@dataclass(frozen=True)
class Budget:
    """The budget of one method; MLRC's is 50 trials, 10 reproductions and one search (specification, sections 7 and 8).

    Attributes:
        trials: Number of trials of a search.
        reproductions: Number of reproductions of the setting that a search found.
        searches: How often the search is repeated from other seeds, the first time included.
    """

    trials: int = TRIALS
    reproductions: int = REPRODUCTIONS
    searches: int = 1


@dataclass(frozen=True)
class Study:
    """All trials of one method on one problem.

    Attributes:
        problem: Data, split, network and training settings of the experiment.
        method: The method with its search space.
        budget: Number of trials, reproductions and searches.
        sampler: Settings of Optuna's sampler.
        storage: Optuna's storage, which keeps the trials.
        racing: Whether a trial that is clearly behind gets no more folds (`results.spec.racing`).
    """

    problem: Problem
    method: OpenMethod
    budget: Budget
    sampler: SamplerSettings
    storage: optuna.storages.BaseStorage
    racing: bool = False

    @property
    def n_trials(self) -> int:
        """Number of trials of one search, 0 without a search space, fewer than the budget if all values are tried."""
        return settled(self.method.space, self.budget.trials)[1] if self.method.space else 0

    @property
    def n_reproductions(self) -> int:
        """Reproductions of a search's setting; 1 where nothing is trained and weights are downloaded."""
        runs_are_equal = self.method.method.loss is None and self.problem.trunk.weights != "random"
        return min(1, self.budget.reproductions) if runs_are_equal else self.budget.reproductions

    def open(self, *, create: bool = True) -> Search:
        """Open the study in Optuna's storage.

        Args:
            create: Whether to create a study that is new. If not, the storage is only read, and a new study is empty.
        """
        space, _ = settled(self.method.space, self.budget.trials)
        identity = {**self.problem.identity(), "method": self.method.method.model_dump(mode="json")}
        if TRAINING_VERSION > 1:
            # Version 1 is left out, so that searches from before this key keep their fingerprints.
            identity["training_version"] = TRAINING_VERSION
        if self.racing:
            identity["racing"] = RACING_VERSION
        label = f"{self.problem.dataset.name}/{self.method.method.name}"
        seed = search_seed(self.problem.seed, self.problem.search)
        return Search(self.storage, label, identity, space, self.sampler, seed, create=create)

    def searches(self) -> tuple["Study", ...]:
        """Return a study for each search. A method without a search space has nothing to repeat, so it has one."""
        count = self.budget.searches if self.method.space else 1
        return tuple(replace(self, problem=replace(self.problem, search=number)) for number in range(count))

    def study_names(self) -> tuple[str, ...]:
        """Return the names of the studies of all searches in Optuna's storage; none without a search space."""
        return tuple(study.open().name for study in self.searches()) if self.method.space else ()

    @property
    def n_runs(self) -> int:
        """Number of reproductions of all searches."""
        return self.n_reproductions * len(self.searches())

    def with_runs(self, reproductions: int) -> "Study":
        """Return the study with another number of reproductions."""
        return replace(self, budget=replace(self.budget, reproductions=reproductions))

    def best_hyperparameters(self) -> Work[dict[str, JsonValue]]:
        """Search the hyperparameters, one trial after another.

        A trial trains one setting on every fold. Its score is the mean over folds of the best validation MAP@R. A
        FoldSpec has training and validation classes only, so the search cannot see the test classes.

        Yields:
            The trainings of one trial, one per fold. With racing: the training of the next fold, and those of the
            folds after it for workers that would be idle.

        Returns:
            The given hyperparameters and the best setting of the search, by target.
        """
        if not self.method.space:
            return dict(self.method.given)
        search = self.open()
        while search.trials_told() < self.n_trials:
            trial = search.ask()
            if self.racing:
                yield from self._race(search, trial)
                continue
            folds = yield from trainings([TrainJob(spec) for spec in self._specs(trial)])
            search.tell(trial, folds)
        return self._with_best(search)

    def _race(self, search: Search, trial: Trial) -> Work[None]:
        """Train the folds of a trial one after another until it is clearly behind, and tell its score.

        Idle workers may train later folds ahead. The decision takes the folds in order all the same, so it does not
        depend on the number of workers.
        """
        race, folds = search.race(), list[FoldResult]()
        specs = self._specs(trial)
        for number, spec in enumerate(specs):
            ahead = [TrainJob(later, if_idle=True) for later in specs[number + 1 :]]
            folds += (yield from trainings([TrainJob(spec), *ahead]))[:1]
            scores = [fold.objective for fold in folds]
            if race.is_behind(scores):
                search.tell(trial, folds, race.expected(scores))
                return
        search.tell(trial, folds)

    def asked_specs(self) -> list[tuple[FoldSpec, bool]]:
        """List the trainings of the trials that Optuna has proposed.

        Returns:
            Each training, and whether its trial is finished. Folds that a trial did not get in a race are left out.
        """
        if not self.method.space:
            return []
        search = self.open(create=False)
        n_finished = search.trials_told()
        return [
            (spec, position < n_finished)
            for position, trial in enumerate(search.asked()[: self.n_trials])
            for spec in self._specs(trial)[: trial.folds]
        ]

    def spared(self) -> int:
        """Number of trainings that the trials of all searches did not get so far, because they were clearly behind."""
        return len(self.spared_specs())

    def spared_specs(self) -> list[FoldSpec]:
        """List the trainings that the trials of all searches did not get so far."""
        if not (self.racing and self.method.space):
            return []
        return [
            spec
            for search in self.searches()
            for trial in search.open(create=False).asked()[: self.n_trials]
            if trial.folds is not None
            for spec in search._specs(trial)[trial.folds :]
        ]

    def settled_hyperparameters(self) -> dict[str, JsonValue] | None:
        """The result of `best_hyperparameters`, or None if the search is not finished."""
        if not self.method.space:
            return dict(self.method.given)
        search = self.open(create=False)
        return None if search.trials_told() < self.n_trials else self._with_best(search)

    def _specs(self, trial: Trial) -> tuple[FoldSpec, ...]:
        """A trial's trainings, one per fold."""
        return self.problem.fold_specs(self.method.at(trial.hyperparameters), "search", trial.position)

    def _with_best(self, search: Search) -> dict[str, JsonValue]:
        return {**self.method.given, **search.best(self.n_trials).hyperparameters}
