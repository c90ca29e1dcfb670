"""Bayesian search for hyperparameters with Optuna's ask-and-tell interface (specification, section 7 and 11.10).

The first trials are seeded Sobol points. The others come from a Gaussian process with (log) expected improvement. A new
sampler is made before every trial; its seed depends on the study's fingerprint and on the number of finished trials. So
an interrupted search continues with exactly the settings of an uninterrupted one.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import optuna
from optuna.trial import FrozenTrial, TrialState
from pydantic import JsonValue

from protocols.search.space import SearchParameter
from results.records.records import FoldResult
from results.spec.racing import Race
from results.spec.search_settings import SamplerSettings
from results.values import derive_seed, fingerprint_of

SEARCH_VERSION = 1
"""The version of the search. Raise it when the sampler or its start changes, so that old studies are not continued."""

IDENTITY = "identity"
"""Name of the attribute of a study that holds everything that decides it."""

FOLD_VALUES = "fold_values"
"""Name of the attribute of a trial that holds the scores of its folds."""

TRAININGS = "fold_fingerprints"
"""Name of the attribute of a trial that holds the fingerprints of its trainings."""

RACED = "raced"
"""Name of the attribute of trials that got no more folds."""


@dataclass(frozen=True)
class Trial:
    """One hyperparameter setting, which is scored on all folds.

    Attributes:
        number: Optuna's number of the trial.
        hyperparameters: The setting, by target.
        position: Number of trials that were finished before this one. Seeds derive from it and not from `number`,
            since an interruption can leave a number without a setting.
        folds: Number of folds of a trial that got no more folds in a race; None for every other trial.
    """

    number: int
    hyperparameters: dict[str, JsonValue]
    position: int
    folds: int | None = None


class Search:
    """The search of one study: proposes settings and records their scores in Optuna's storage.

    It proposes one trial after another, as MLRC does. Parallel trials would change the protocol. So does racing, which
    is an option: the sampler is told the expected score of a trial that got no more folds, and never takes it for best.

    Args:
        storage: Optuna's storage.
        label: First part of the study's name in the storage; the fingerprint is the second part.
        identity: All that decides the study, except space, sampler, seed and number of trials.
        space: The hyperparameters with their ranges.
        sampler: Settings of the sampler.
        seed: The experiment's seed.
        create: Whether to create a study that is not in the storage. If not, the storage is only read, and a study that
            it does not have is empty.
    """

    def __init__(
        self,
        storage: optuna.storages.BaseStorage,
        label: str,
        identity: Mapping[str, JsonValue],
        space: Sequence[SearchParameter],
        sampler: SamplerSettings,
        seed: int,
        *,
        create: bool = True,
    ) -> None:
        self.space, self.sampler, self.seed = space, sampler, seed
        full_identity = {
            **identity,
            "space": [parameter.model_dump(mode="json") for parameter in space],
            "sampler": sampler.model_dump(mode="json"),
            "seed": seed,
            "version": SEARCH_VERSION,
        }
        self.fingerprint = fingerprint_of(full_identity)
        name = f"{label} {self.fingerprint}"
        self.storage = storage if create or _has_study(storage, name) else optuna.storages.InMemoryStorage()
        self.study = _quiet_study(self.storage, name)
        if IDENTITY not in self.study.user_attrs:
            self.study.set_user_attr(IDENTITY, full_identity)

    @property
    def name(self) -> str:
        """Name of the study in Optuna's storage."""
        return self.study.study_name

    def trials_told(self) -> int:
        """Number of finished trials."""
        return len(self._finished())

    def ask(self) -> Trial:
        """Propose the next setting; a setting without a score is proposed again."""
        n_finished = self.trials_told()
        for pending in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if set(pending.params) == {parameter.target for parameter in self.space}:
                return Trial(pending.number, dict(pending.params), n_finished)
            # An interruption before the last parameter was drawn: the setting is incomplete and was never trained.
            self.study.tell(pending.number, state=TrialState.FAIL)
        if n_finished < self.sampler.startup_trials or self.space[0].exhaustive:
            self._enqueue(n_finished)
        self.study.sampler = self._fresh_sampler(n_finished)
        trial = self.study.ask({parameter.target: parameter.distribution() for parameter in self.space})
        return Trial(trial.number, dict(trial.params), n_finished)

    def race(self) -> Race:
        """Return the race that the next trial runs: against all trials so far that were trained on all folds."""
        complete = [trial for trial in self._finished() if RACED not in trial.user_attrs]
        return Race(tuple(tuple(trial.user_attrs[FOLD_VALUES]) for trial in complete))

    def tell(self, trial: Trial, folds: Sequence[FoldResult], expected: float | None = None) -> None:
        """Record a trial's score: the mean over folds of the best validation MAP@R; a diverged fold counts 0.

        Args:
            trial: The setting, from `ask`.
            folds: The results of its trainings, one per fold.
            expected: Expected score over all folds of a trial that got no more folds (`results.spec.racing`). The
                sampler is told this value; a trial that is not told at all would be proposed again and again. Such a
                trial is never the best. None for a trial with all folds.
        """
        values = [fold.objective for fold in folds]
        self._annotate(trial, FOLD_VALUES, list(values))
        self._annotate(trial, TRAININGS, [fold.fingerprint for fold in folds])
        reasons: list[JsonValue] = [fold.reason for fold in folds if fold.reason]
        if reasons:
            self._annotate(trial, "reasons", reasons)
        if expected is not None:
            self._annotate(trial, RACED, True)
        self.study.tell(trial.number, sum(values) / len(values) if expected is None else expected)

    def best(self, n_trials: int) -> Trial:
        """Find the trial with the highest score on all folds among the first `n_trials`.

        Of equal scores the earlier trial wins (specification, 11.11).
        """
        finished = self._finished()[:n_trials]
        complete = [position for position, trial in enumerate(finished) if RACED not in trial.user_attrs]
        position = max(complete, key=lambda position: (finished[position].value, -position))
        winner = finished[position]
        return Trial(winner.number, dict(winner.params), position)

    def asked(self) -> list[Trial]:
        """List the trials that have a complete setting, finished or not, in order."""
        names = {parameter.target for parameter in self.space}
        trials = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.RUNNING))
        complete = [trial for trial in trials if set(trial.params) == names]
        return [
            Trial(trial.number, dict(trial.params), position, _folds_of_raced(trial))
            for position, trial in enumerate(complete)
        ]

    def _finished(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))

    def _enqueue(self, n_finished: int) -> None:
        """Queue value or Sobol point number `n_finished`, unless an interrupted run has left one in the queue."""
        if self.study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
            return
        first = self.space[0]
        if first.exhaustive:
            assert first.low is not None
            self.study.enqueue_trial({first.target: int(first.low) + n_finished})
            return
        from scipy.stats import qmc  # It takes long to import, and only a search needs it.

        points = qmc.Sobol(len(self.space), scramble=True, rng=derive_seed("sobol", self.seed)).random_base2(
            max(1, math.ceil(math.log2(self.sampler.startup_trials)))
        )
        self.study.enqueue_trial(
            {p.target: p.at(float(x)) for p, x in zip(self.space, points[n_finished], strict=True)}
        )

    def _fresh_sampler(self, n_finished: int) -> optuna.samplers.BaseSampler:
        seed = derive_seed("sampler", self.fingerprint, n_finished) % 2**32
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
        # There is no optuna.Trial for a trial that an interrupted run began, so this writes to the storage directly.
        study_id = self.storage.get_study_id_from_name(self.study.study_name)
        trial_id = self.storage.get_trial_id_from_study_id_trial_number(study_id, trial.number)
        self.storage.set_trial_user_attr(trial_id, key, value)


def _folds_of_raced(trial: FrozenTrial) -> int | None:
    """Number of folds of a trial that got no more folds; None for other trials."""
    return len(trial.user_attrs[FOLD_VALUES]) if RACED in trial.user_attrs else None


def _has_study(storage: optuna.storages.BaseStorage, name: str) -> bool:
    try:
        storage.get_study_id_from_name(name)
    except KeyError:
        return False
    return True


def _quiet_study(storage: optuna.storages.BaseStorage, name: str) -> optuna.Study:
    """Open or create the study, without Optuna's log line per call."""
    # A sampler that is never used: `ask` sets a fresh one for every trial.
    sampler = optuna.samplers.RandomSampler(seed=0)
    if _has_study(storage, name):
        # `create_study` would try to write first, which a database that can only be read refuses.
        return optuna.load_study(study_name=name, storage=storage, sampler=sampler)
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(
            storage=storage,
            study_name=name,
            direction="maximize",
            load_if_exists=True,
            sampler=sampler,
        )
    finally:
        optuna.logging.set_verbosity(verbosity)
