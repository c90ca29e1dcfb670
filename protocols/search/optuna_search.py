"""Bayesian search over a method's hyperparameters with Optuna, ask and tell (specification, section 7 and 11.10).

The first trials are seeded Sobol points, the rest come from a Gaussian process with (log) expected improvement. A
search that was interrupted asks for exactly the settings that an uninterrupted one would have asked for: before every
trial the sampler is made anew, seeded by the study's identity and the number of trials told so far.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import optuna
from optuna.trial import FrozenTrial, TrialState
from pydantic import JsonValue
from scipy.stats import qmc

from protocols.search.space import SearchParameter
from results.experiment_spec import SamplerSettings
from results.records import FoldResult
from results.values import derive_seed, fingerprint_of

SEARCH_VERSION = 1
"""The meaning of a search: raise it with every change of sampler or start-up, so that old studies are not continued."""


@dataclass(frozen=True)
class Trial:
    """One hyperparameter setting, to be scored on all folds.

    number: what the storage calls it. position: how many trials were finished before it; an interruption at a bad
    moment leaves a number without a setting, so it is the position that seeds are made of.
    """

    number: int
    hyperparameters: dict[str, JsonValue]
    position: int


class Search:
    """The study of one method on one dataset.

    identity: all that decides the study besides the number of trials; its hash names the study in the storage.
    Trials are asked one after another, as MLRC does; pruning and parallel trials would change the protocol.
    """

    def __init__(
        self,
        storage: optuna.storages.BaseStorage,
        label: str,
        identity: Mapping[str, JsonValue],
        space: Sequence[SearchParameter],
        sampler: SamplerSettings,
        seed: int,
    ) -> None:
        self.storage, self.space, self.sampler, self.seed = storage, space, sampler, seed
        whole = {
            **identity,
            "space": [parameter.model_dump(mode="json") for parameter in space],
            "sampler": sampler.model_dump(mode="json"),
            "seed": seed,
            "version": SEARCH_VERSION,
        }
        self.fingerprint = fingerprint_of(whole)
        self.study = _quiet_study(storage, f"{label} {self.fingerprint}")
        if "identity" not in self.study.user_attrs:
            self.study.set_user_attr("identity", whole)

    def trials_told(self) -> int:
        """Finished trials."""
        return len(self._finished())

    def ask(self) -> Trial:
        """The next setting; one that was asked for but not told comes again."""
        told = self.trials_told()
        for pending in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if set(pending.params) == {parameter.target for parameter in self.space}:
                return Trial(pending.number, dict(pending.params), told)
            # Interrupted between the start of the trial and its last parameter: nobody can have trained it.
            self.study.tell(pending.number, state=TrialState.FAIL)
        if told < self.sampler.startup_trials or self.space[0].exhaustive:
            self._enqueue(told)
        self.study.sampler = self._fresh_sampler(told)
        trial = self.study.ask({parameter.target: parameter.distribution() for parameter in self.space})
        return Trial(trial.number, dict(trial.params), told)

    def tell(self, trial: Trial, folds: Sequence[FoldResult]) -> None:
        """Scores a trial by the mean over folds of the best validation MAP@R; a fold that went NaN counts 0."""
        values = [fold.objective for fold in folds]
        self._annotate(trial, "fold_values", list(values))
        self._annotate(trial, "fold_fingerprints", [fold.fingerprint for fold in folds])
        reasons: list[JsonValue] = [fold.reason for fold in folds if fold.reason]
        if reasons:
            self._annotate(trial, "reasons", reasons)
        self.study.tell(trial.number, sum(values) / len(values))

    def best(self, n_trials: int) -> Trial:
        """The setting with the highest observed mean among the first `n_trials`; ties go to the earlier one (11.11)."""
        finished = self._finished()[:n_trials]
        position = max(range(len(finished)), key=lambda place: (finished[place].value, -place))
        winner = finished[position]
        return Trial(winner.number, dict(winner.params), position)

    def asked(self) -> list[Trial]:
        """Trials with all their hyperparameters settled, finished or not, in order."""
        names = {parameter.target for parameter in self.space}
        trials = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.RUNNING))
        settled = [trial for trial in trials if set(trial.params) == names]
        return [Trial(trial.number, dict(trial.params), place) for place, trial in enumerate(settled)]

    def _finished(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))

    def _enqueue(self, told: int) -> None:
        """Queues value or Sobol point number `told`, unless an interrupted run left one queued."""
        if self.study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
            return
        first = self.space[0]
        if first.exhaustive:
            assert first.low is not None
            self.study.enqueue_trial({first.target: int(first.low) + told})
            return
        points = qmc.Sobol(len(self.space), scramble=True, rng=derive_seed("sobol", self.seed)).random_base2(
            max(1, math.ceil(math.log2(self.sampler.startup_trials)))
        )
        self.study.enqueue_trial({p.target: p.at(float(x)) for p, x in zip(self.space, points[told], strict=True)})

    def _fresh_sampler(self, told: int) -> optuna.samplers.BaseSampler:
        seed = derive_seed("sampler", self.fingerprint, told) % 2**32
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return optuna.samplers.GPSampler(
                seed=seed,
                independent_sampler=optuna.samplers.RandomSampler(seed=seed),
                n_startup_trials=self.sampler.startup_trials,
                deterministic_objective=self.sampler.deterministic_objective,
                warn_independent_sampling=True,
            )

    def _annotate(self, trial: Trial, key: str, value: JsonValue) -> None:
        # A trial taken up again after an interruption is no optuna.Trial, so the storage is addressed itself.
        study_id = self.storage.get_study_id_from_name(self.study.study_name)
        trial_id = self.storage.get_trial_id_from_study_id_trial_number(study_id, trial.number)
        self.storage.set_trial_user_attr(trial_id, key, value)


def _quiet_study(storage: optuna.storages.BaseStorage, name: str) -> optuna.Study:
    """The study of that name, made if need be, without Optuna's line per call."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(
            storage=storage,
            study_name=name,
            direction="maximize",
            load_if_exists=True,
            sampler=optuna.samplers.RandomSampler(seed=0),
        )
    finally:
        optuna.logging.set_verbosity(verbosity)
