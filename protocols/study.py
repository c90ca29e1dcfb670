"""The hyperparameter search of one method on one setup, for both protocols (specification, section 7)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pydantic import JsonValue

from protocols.jobs import EvaluateJob, Lab, TrainJob
from protocols.search.proposals import Proposals
from protocols.search.racing import RACING_VERSION, Race
from protocols.setup import Purpose, Setup, search_seed
from protocols.training.build_method import RefusedError
from results.records.records import Event, FoldResult
from results.records.trials import Trial, best_trial, mean_of
from results.spec.method import HyperparameterError, Method
from results.spec.plan import PlannedRow
from results.spec.range import identity_of_space
from results.spec.search_settings import SearchSettings
from results.spec.training_spec import TRAINING_VERSION, FoldSpec
from results.store.searches import Searches
from results.values import fingerprint_of
from results.wording import every

SEARCH_VERSION = 2
"""The version of the search. Raise it when the sampler or its start changes, so that old studies are not continued."""


@dataclass(frozen=True)
class Study:
    """All trials of one row of an experiment.

    Attributes:
        row: The method with what is searched, what is given, and the numbers of its trials, searches and reproductions.
        setup: Data, split, network and training settings of the experiment.
        search: Settings of the experiment's search: its sampler, and whether trials are raced.
        log: Where the trials are kept; None for a study that is only planned.
    """

    row: PlannedRow
    setup: Setup
    search: SearchSettings
    log: Searches | None = None

    @cached_property
    def method(self) -> Method:
        """The method with the experiment's values of its hyperparameters."""
        assert self.row.method is not None
        return self.row.method

    @cached_property
    def identity(self) -> dict[str, JsonValue]:
        """Everything that decides the trials, except their number."""
        identity: dict[str, JsonValue] = {
            **self.setup.identity(),
            "method": self.method.identity(),
            "space": [*identity_of_space(self.row.ranges)],
            "sampler": self.search.sampler.identity(),
            "version": SEARCH_VERSION,
            "training_version": TRAINING_VERSION,
        }
        if self.search.racing:
            identity["racing"] = RACING_VERSION
        if self.row.enqueue:
            identity["enqueue"] = list(self.row.enqueue)
        if self.before is not None:
            identity["continues"] = [self.before.name, self.before.row.trials]
        return identity

    @cached_property
    def before(self) -> "Study | None":
        """The study of the narrower ranges, whose trials this one begins with; None if nothing was widened."""
        return None if self.row.before is None else replace(self, row=self.row.before)

    @cached_property
    def name(self) -> str | None:
        """Fingerprint of the search; None if nothing is searched."""
        return fingerprint_of(self.identity) if self.row.ranges else None

    @cached_property
    def searches(self) -> tuple["Study", ...]:
        """A study for each search, with seeds of its own."""
        return tuple(replace(self, setup=replace(self.setup, search=number)) for number in range(self.row.searches))

    def trainings(
        self, hyperparameters: Mapping[str, JsonValue], purpose: Purpose, number: int
    ) -> tuple[FoldSpec, ...]:
        """Specify the trainings of a setting, one per fold; see `Setup.fold_specs`."""
        return self.setup.fold_specs(self._at(hyperparameters), purpose, number)

    def final_training(self, hyperparameters: Mapping[str, JsonValue], number: int, epoch: int) -> FoldSpec:
        """Specify the training of a setting on all training classes; see `Setup.final_spec`."""
        return self.setup.final_spec(self._at(hyperparameters), number, epoch)

    def _at(self, hyperparameters: Mapping[str, JsonValue]) -> Method:
        """The method of a setting. What the experiment gives is in the study's method already."""
        return self.method if hyperparameters == self.row.given else self.method.at(hyperparameters)

    def trials(self) -> tuple[Trial, ...]:
        """Return the trials that the log has, up to the budget; the last one may be running."""
        if self.name is None or self.log is None:
            return ()
        own = self.log.trials(self.name)
        if self.before is not None:
            own += self.before.trials()[len(own) :]
        return own[: self.row.trials]

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
        return self.trainings(trial.setting, "search", trial.number)

    def known_trainings(self) -> list[str]:
        """List the fingerprints of all trials' trainings so far, without folds that a raced or failed trial lacks."""
        names: list[str] = []
        for trial in self.trials():
            running = trial.state == "running"
            names += [spec.fingerprint for spec in self.specs(trial)] if running else trial.trainings
        return names

    def skipped(self) -> int:
        """Number of trainings that the trials of all searches did not get so far: clearly behind, or failed."""
        trials = [trial for search in self.searches for trial in search.trials()]
        return sum(self.setup.folds - len(trial.trainings) for trial in trials if trial.state in ("raced", "failed"))

    def found_hyperparameters(self) -> dict[str, JsonValue] | None:
        """The result of `RunningSearch.best_hyperparameters`; None if it is not finished or all its trials failed."""
        if self.name is None:
            return dict(self.row.given)
        finished = [trial for trial in self.trials() if trial.state != "running"]
        best = best_trial(finished) if len(finished) == self.row.trials else None
        return None if best is None else {**self.row.given, **best.setting}


class RunningSearch:
    """A search as it goes on. A lab asks its protocol again and again, and each time it goes on from the last trial.

    Args:
        study: The study of one search, whose log keeps the trials.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self._finished: list[Trial] = []

    def best_hyperparameters(self, lab: Lab) -> dict[str, JsonValue]:
        """Search the hyperparameters, one trial after another.

        A trial trains one setting on every fold. Its score is the mean over folds of the best validation MAP@R, and 0
        if a fold diverged. A trial whose setting the method refuses has failed. A FoldSpec has training and
        validation classes only, so the search cannot see the test classes. The trainings of trials that an earlier
        run finished are asked for again, which the store answers at once; those of this run are not.

        Returns:
            The given hyperparameters and the best setting of the search, by target.

        Raises:
            RefusedError: The method refuses every setting of the search.
        """
        study = self.study
        if study.name is None:
            return dict(study.row.given)
        assert study.log is not None
        begun, finished = self._begun, self._finished
        while len(finished) < study.row.trials:
            if len(finished) == len(begun):
                begun.append(Trial(number=len(begun), setting=self._proposals.next(finished)))
                study.log.put_trial(study.name, begun[-1])
            trial = begun[len(finished)]
            if trial.state != "failed":
                before, trial = trial, self._with_score(trial, finished, lab)
                if trial is not before:
                    study.log.put_trial(study.name, trial)
            finished.append(trial)
        if (best := best_trial(finished)) is None:
            raise RefusedError(f"{every(len(finished), 'trial')} of the search failed; the last: {finished[-1].reason}")
        return {**study.row.given, **best.setting}

    @cached_property
    def _begun(self) -> list[Trial]:
        """The trials that the log has when the search begins, and those that are begun since."""
        name, log = self.study.name, self.study.log
        assert name is not None
        assert log is not None
        log.put_study(name, self.study.identity)
        begun, kept = list(self.study.trials()), len(log.trials(name))
        for trial in begun[kept:]:  # Those of the narrower ranges.
            log.put_trial(name, trial)
        return begun

    @cached_property
    def _proposals(self) -> Proposals:
        row, settings, setup = self.study.row, self.study.search, self.study.setup
        return Proposals(row.ranges, settings.sampler, search_seed(setup.seed, setup.search), row.enqueue)

    def _with_score(self, trial: Trial, before: Sequence[Trial], lab: Lab) -> Trial:
        """Train the folds of a trial, and return it with its score, or with the reason why the method refuses it."""
        race = Race.against(before)
        try:
            folds = self._train(trial, race, lab)
        except (RefusedError, HyperparameterError) as error:
            return Trial(number=trial.number, setting=trial.setting, state="failed", reason=str(error))
        return _scored(trial, folds, race, n_folds=self.study.setup.folds) if trial.state == "running" else trial

    def _train(self, trial: Trial, race: Race, lab: Lab) -> list[FoldResult]:
        """Train the folds of a trial; in a race one after another until it is clearly behind."""
        jobs = [TrainJob(spec) for spec in self.study.specs(trial)]
        if not self.study.search.racing:
            return lab.train(jobs)
        folds: list[FoldResult] = []
        for job in jobs:
            folds += lab.train([job])
            if race.is_behind([fold.objective for fold in folds]):
                break
        return folds


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
