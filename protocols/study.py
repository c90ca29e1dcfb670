"""The hyperparameter search of one method on one setup, for both protocols (specification, section 7)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pydantic import JsonValue

from protocols.jobs import EvaluateJob, Lab, TrainJob
from protocols.search.proposals import Proposals
from protocols.search.racing import RACING_VERSION, Race
from protocols.search.space import MethodTemplate, SearchParameter, within_budget
from protocols.setup import Setup, search_seed
from protocols.training.build_method import RefusedError
from results.records.records import Event, FoldResult
from results.records.trials import Trial, best_trial, mean_of
from results.spec.hyperparameters import HyperparameterError
from results.spec.mlrc_constants import REPRODUCTIONS, TRIALS
from results.spec.search_settings import SamplerSettings
from results.spec.training_spec import TRAINING_VERSION, FoldSpec
from results.store.searches import Searches
from results.values import fingerprint_of

SEARCH_VERSION = 2
"""The version of the search. Raise it when the sampler or its start changes, so that old studies are not continued."""


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
    """All trials of one method on one setup.

    Attributes:
        setup: Data, split, network and training settings of the experiment.
        method: The method with its search space.
        budget: Number of trials, reproductions and searches.
        sampler: Settings of Optuna's sampler.
        log: Where the trials are kept; None for a study that is only planned.
        racing: Whether a trial that is clearly behind gets no more folds (`protocols.search.racing`).
        enqueue: Settings that a search tries first, if the method has their hyperparameters.
    """

    setup: Setup
    method: MethodTemplate
    budget: Budget
    sampler: SamplerSettings
    log: Searches | None
    racing: bool = False
    enqueue: tuple[dict[str, JsonValue], ...] = ()

    @property
    def n_trials(self) -> int:
        """Number of trials of one search, 0 without a search space, fewer than the budget if all values are tried."""
        return within_budget(self.method.space, self.budget.trials)[1] if self.method.space else 0

    @property
    def n_reproductions(self) -> int:
        """Reproductions of a search's setting; 1 where nothing is trained or searched and weights are downloaded."""
        is_constant = self._runs_are_equal and not self.space
        return min(1, self.budget.reproductions) if is_constant else self.budget.reproductions

    @property
    def _runs_are_equal(self) -> bool:
        return self.method.method.loss is None and self.setup.conditions.trunk.weights != "random"

    @cached_property
    def space(self) -> tuple[SearchParameter, ...]:
        """The hyperparameters that are searched; empty if nothing is."""
        return within_budget(self.method.space, self.budget.trials)[0] if self.method.space else ()

    @property
    def enqueued(self) -> tuple[dict[str, JsonValue], ...]:
        """The enqueued settings that this method has."""
        targets = {parameter.target for parameter in self.space}
        return tuple(setting for setting in self.enqueue if setting.keys() <= targets)

    @cached_property
    def identity(self) -> dict[str, JsonValue]:
        """Everything that decides the trials, except their number."""
        identity: dict[str, JsonValue] = {
            **self.setup.identity(),
            "method": self.method.method.identity(),
            "space": [parameter.identity() for parameter in self.space],
            "sampler": self.sampler.identity(),
            "version": SEARCH_VERSION,
            "training_version": TRAINING_VERSION,
        }
        if self.racing:
            identity["racing"] = RACING_VERSION
        if self.enqueued:
            identity["enqueue"] = list(self.enqueued)
        return identity

    @cached_property
    def name(self) -> str | None:
        """Fingerprint of the search; None if nothing is searched."""
        return fingerprint_of(self.identity) if self.space else None

    def searches(self) -> tuple["Study", ...]:
        """Return a study for each search.

        A method without a search space in an experiment that searches gets as many runs as the others, from the same
        seeds, unless its runs are all equal.
        """
        repeated = self.method.space or (self.budget.trials and not self._runs_are_equal)
        count = self.budget.searches if repeated else 1
        return tuple(replace(self, setup=replace(self.setup, search=number)) for number in range(count))

    @property
    def n_runs(self) -> int:
        """Number of reproductions of all searches."""
        return self.n_reproductions * len(self.searches())

    def trials(self) -> tuple[Trial, ...]:
        """Return the trials that the log has, up to the budget; the last one may be running."""
        return () if self.name is None or self.log is None else self.log.trials(self.name)[: self.n_trials]

    def best_hyperparameters(self, lab: Lab) -> dict[str, JsonValue]:
        """Search the hyperparameters, one trial after another.

        A trial trains one setting on every fold. Its score is the mean over folds of the best validation MAP@R, and 0
        if a fold diverged. A trial whose setting the method refuses has failed. A FoldSpec has training and
        validation classes only, so the search cannot see the test classes. The trainings of finished trials are asked
        for again, which the store answers at once.

        Returns:
            The given hyperparameters and the best setting of the search, by target.

        Raises:
            RefusedError: The method refuses every setting of the search.
        """
        if self.name is None:
            return dict(self.method.given)
        assert self.log is not None
        self.log.put_study(self.name, self.identity)
        seed = search_seed(self.setup.seed, self.setup.search)
        proposals = Proposals(self.space, self.sampler, seed, self.enqueued)
        known, trials = self.trials(), list[Trial]()
        while len(trials) < self.n_trials:
            if len(trials) < len(known):
                trial = known[len(trials)]
            else:
                trial = Trial(number=len(trials), setting=proposals.next(trials))
                self.log.put_trial(self.name, trial)
            if trial.state != "failed":
                before, trial = trial, self._finished(trial, trials, lab)
                if trial is not before:
                    self.log.put_trial(self.name, trial)
            trials.append(trial)
        if (best := best_trial(trials)) is None:
            raise RefusedError(f"all {len(trials)} trials of the search failed; the last: {trials[-1].reason}")
        return {**self.method.given, **best.setting}

    def _finished(self, trial: Trial, before: Sequence[Trial], lab: Lab) -> Trial:
        """Train the folds of a trial, and return it with its score, or with the reason why the method refuses it."""
        race = Race.against(before)
        try:
            folds = self._train(trial, race, lab)
        except (RefusedError, HyperparameterError) as error:
            return Trial(number=trial.number, setting=trial.setting, state="failed", reason=str(error))
        return _scored(trial, folds, race, n_folds=self.setup.folds) if trial.state == "running" else trial

    def _train(self, trial: Trial, race: Race, lab: Lab) -> list[FoldResult]:
        """Train the folds of a trial; in a race one after another until it is clearly behind."""
        jobs = [TrainJob(spec) for spec in self.specs(trial)]
        if not self.racing:
            return lab.train(jobs)
        folds: list[FoldResult] = []
        for job in jobs:
            folds += lab.train([job])
            if race.is_behind([fold.objective for fold in folds]):
                break
        return folds

    def test_job(
        self,
        protocol: str,
        hyperparameters: dict[str, JsonValue],
        run: int,
        trainings: tuple[FoldResult, ...],
        choosers: tuple[FoldResult, ...] = (),
        choice_events: tuple[Event, ...] = (),
    ) -> EvaluateJob:
        """Describe the test of a reproduction; see `EvaluateJob`."""
        setup, found = self.setup, (trainings, protocol, hyperparameters, run)
        return EvaluateJob(*found, setup.seed, setup.search, self.name, setup.metrics, choosers, choice_events)

    def specs(self, trial: Trial) -> tuple[FoldSpec, ...]:
        """Specify a trial's trainings, one per fold."""
        return self.setup.fold_specs(self.method.at(trial.setting), "search", trial.number)

    def known_trainings(self) -> list[str]:
        """List the fingerprints of all trials' trainings so far, without folds that a raced or failed trial lacks."""
        names: list[str] = []
        for trial in self.trials():
            running = trial.state == "running"
            names += [spec.fingerprint for spec in self.specs(trial)] if running else trial.trainings
        return names

    def skipped(self) -> int:
        """Number of trainings that the trials of all searches did not get so far: clearly behind, or failed."""
        trials = [trial for search in self.searches() for trial in search.trials()]
        return sum(self.setup.folds - len(trial.trainings) for trial in trials if trial.state in ("raced", "failed"))

    def found_hyperparameters(self) -> dict[str, JsonValue] | None:
        """The result of `best_hyperparameters`, or None if the search is not finished or all its trials failed."""
        if self.name is None:
            return dict(self.method.given)
        finished = [trial for trial in self.trials() if trial.state != "running"]
        best = best_trial(finished) if len(finished) == self.n_trials else None
        return None if best is None else {**self.method.given, **best.setting}


def _scored(trial: Trial, folds: Sequence[FoldResult], race: Race, *, n_folds: int) -> Trial:
    """A trial with its score.

    The sampler gets the expected score of a trial that got no more folds: a trial that it does not know would be
    proposed again and again.
    """
    scores = tuple(fold.objective for fold in folds)
    raced = len(scores) < n_folds
    reason = "; ".join(dict.fromkeys(fold.reason for fold in folds if fold.reason)) or None
    score = race.expected(scores) if raced else mean_of(scores)
    return Trial(
        number=trial.number,
        setting=trial.setting,
        state="raced" if raced else "complete",
        score=0.0 if reason else score,
        fold_scores=scores,
        trainings=tuple(fold.fingerprint for fold in folds),
        reason=reason,
    )
