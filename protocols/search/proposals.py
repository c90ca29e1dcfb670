"""The settings that a search tries, proposed by Optuna from the trials before (specification, sections 7 and 11.10).

The first settings are seeded Sobol points. The others come from one of Optuna's samplers, by default a Gaussian process
with (log) expected improvement. Optuna keeps nothing: before every proposal its study is filled with the trials of our
own log. So an interrupted search goes on with exactly the settings of an uninterrupted one.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any, cast

import optuna
from optuna.distributions import BaseDistribution
from pydantic import JsonValue

from protocols.processes import computing
from protocols.search.space import SearchParameter
from results.records.trials import Trial
from results.spec.search_settings import SamplerSettings
from results.values import derive_seed


class SamplerError(ValueError):
    """Optuna has no such sampler, or the sampler does not take the arguments."""


class Proposals:
    """Proposes the settings of one study, one after another, as MLRC does.

    Args:
        space: The hyperparameters with their ranges.
        sampler: Settings of the sampler.
        seed: The seed of the search, from which those of the first settings and of the sampler derive.
    """

    def __init__(self, space: Sequence[SearchParameter], sampler: SamplerSettings, seed: int) -> None:
        self.space, self.sampler, self.seed = space, sampler, seed
        self._replayed: optuna.Study | None = None
        self._replayed_trials, self._asked = 0, cast(optuna.Trial | None, None)

    def next(self, trials: Sequence[Trial]) -> dict[str, JsonValue]:
        """Return the next setting, by target.

        Args:
            trials: The finished trials of the study, in order.
        """
        number, first = len(trials), self.space[0]
        if first.exhaustive:
            assert first.low is not None
            return {first.target: int(first.low) + number}
        if number < self.sampler.startup_trials:
            return self._sobol_point(number)
        with computing:
            study = self._gaussian_process(trials) if self.sampler.name == "GPSampler" else self._replay(trials)
            self._asked = study.ask(self._distributions)
            return dict(self._asked.params)

    def _sobol_point(self, number: int) -> dict[str, JsonValue]:
        from scipy.stats import qmc  # It takes long to import, and only a search needs it.

        points = qmc.Sobol(len(self.space), scramble=True, rng=derive_seed("sobol", self.seed)).random_base2(
            max(1, math.ceil(math.log2(self.sampler.startup_trials)))
        )
        return {p.target: p.at(float(x)) for p, x in zip(self.space, points[number], strict=True)}

    def _gaussian_process(self, trials: Sequence[Trial]) -> optuna.Study:
        """A study with a fresh sampler for each proposal, since this one keeps no state besides the trials."""
        study = _study(self._sampler(len(trials)))
        # A process that knows nothing of a failed trial proposes its setting again and again.
        lowest = min((trial.score for trial in trials if trial.score is not None), default=0.0)
        study.add_trials([self._as_optunas(trial, lowest if trial.score is None else trial.score) for trial in trials])
        return study

    def _replay(self, trials: Sequence[Trial]) -> optuna.Study:
        """A study whose sampler was asked for every trial so far: other samplers can keep a state of their own."""
        if self._replayed is None:
            self._replayed = _study(self._sampler(0))
        study = self._replayed
        for trial in trials[self._replayed_trials :]:
            if trial.number < self.sampler.startup_trials:
                study.enqueue_trial(trial.setting)
            asked = self._asked or study.ask(self._distributions)
            if asked.params == trial.setting:
                failed = optuna.trial.TrialState.FAIL if trial.state == "failed" else None
                study.tell(asked, trial.score, state=failed)
            else:  # Another release of Optuna proposed it.
                study.tell(asked, state=optuna.trial.TrialState.FAIL)
                study.add_trial(self._as_optunas(trial, trial.score))
            self._asked = None
        self._replayed_trials = len(trials)
        return study

    @property
    def _distributions(self) -> dict[str, BaseDistribution]:
        return {parameter.target: parameter.distribution() for parameter in self.space}

    def _as_optunas(self, trial: Trial, score: float | None) -> optuna.trial.FrozenTrial:
        state = optuna.trial.TrialState.FAIL if score is None else optuna.trial.TrialState.COMPLETE
        return optuna.trial.create_trial(
            state=state, params=trial.setting, distributions=self._distributions, value=score
        )

    def _sampler(self, number: int) -> optuna.samplers.BaseSampler:
        return build_sampler(self.sampler, derive_seed("sampler", self.seed, number) % 2**32)


def build_sampler(settings: SamplerSettings, seed: int = 0) -> optuna.samplers.BaseSampler:
    """Build the sampler that the settings name.

    Args:
        settings: Name of a class of `optuna.samplers`, and its arguments.
        seed: Seed of the sampler, if it takes one.

    Raises:
        SamplerError: There is no such sampler, or it does not take the arguments.
    """
    kind: Any = getattr(optuna.samplers, settings.name, None)
    if kind is None or not settings.name.endswith("Sampler") or kind is optuna.samplers.BaseSampler:
        known = [name for name in optuna.samplers.__all__ if name.endswith("Sampler") and name != "BaseSampler"]
        raise SamplerError(f"search.sampler: Optuna has no sampler {settings.name!r}; it has {', '.join(known)}")
    arguments: dict[str, Any] = dict(settings.arguments)
    if settings.name == "GPSampler":
        arguments = {
            "independent_sampler": optuna.samplers.RandomSampler(seed=seed),
            "n_startup_trials": settings.startup_trials,
            "deterministic_objective": settings.deterministic_objective,
            "warn_independent_sampling": True,
            **arguments,
        }
    with computing, warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        try:
            try:
                sampler: optuna.samplers.BaseSampler = kind(seed=seed, **arguments)
            except TypeError:
                sampler = kind(**arguments)  # Some, such as PartialFixedSampler, take no seed.
            return sampler
        except (TypeError, ValueError, ImportError) as error:
            raise SamplerError(f"search.sampler: {settings.name}: {str(error).splitlines()[0]}") from None


def _study(sampler: optuna.samplers.BaseSampler) -> optuna.Study:
    """A study in memory, without Optuna's log line for each call."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(direction="maximize", sampler=sampler)
    finally:
        optuna.logging.set_verbosity(verbosity)
