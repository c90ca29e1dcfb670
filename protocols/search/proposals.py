"""The settings that a search tries, proposed by Optuna from the trials before (specification, sections 7 and 11.10).

The first settings are seeded Sobol points. The others come from a sampler of Optuna, OptunaHub or one's own, by default
a Gaussian process with (log) expected improvement. Optuna keeps nothing: before every proposal its study is filled with
the trials of our own log. So an interrupted search goes on with exactly the settings of an uninterrupted one.
"""

import importlib
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any, cast

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic import JsonValue

from protocols.training.build_method import MethodError
from results.records.trials import Trial
from results.spec.range import Range
from results.spec.search_settings import SamplerSettings
from results.values import derive_seed
from results.wording import counted, first_line

_HUB = "optunahub"
"""An optional package that loads samplers of OptunaHub."""

PROPOSED_DIGITS = 8
"""Significant digits of a proposed number. The last digits of what a sampler proposes depend on the processor, and on
packages that are installed beside Optuna; a training is named by its setting, so they must not reach it."""

GRID_POINTS = 5
"""How many values GridSampler tries of a hyperparameter, if its argument `points` does not say."""


def distribution_of(one: Range) -> BaseDistribution:
    """Return a range as a distribution of Optuna."""
    if one.choices:
        return CategoricalDistribution(one.choices)  # type: ignore[arg-type]
    low, high = one.ends
    if one.is_whole_numbers:
        return IntDistribution(int(low), int(high), log=one.scale == "int_log", step=int(one.step or 1))
    return FloatDistribution(low, high, log=one.scale == "log", step=one.step)


class Proposals:
    """Proposes the settings of one study, one after another, as MLRC does.

    Args:
        space: The hyperparameters with their ranges.
        sampler: Settings of the sampler.
        seed: The seed of the search, from which those of the first settings and of the sampler derive.
        enqueued: Settings that are tried first; what one leaves out is proposed.
    """

    def __init__(
        self,
        space: Mapping[str, Range],
        sampler: SamplerSettings,
        seed: int,
        enqueued: Sequence[Mapping[str, JsonValue]] = (),
    ) -> None:
        self.space, self.sampler, self.seed, self.enqueued = space, sampler, seed, enqueued
        # A grid has its own points.
        self._startup = 0 if sampler.name == "GridSampler" else sampler.startup_trials
        self._replayed: optuna.Study | None = None
        self._replayed_trials, self._asked = 0, cast(optuna.Trial | None, None)

    def next(self, trials: Sequence[Trial]) -> dict[str, JsonValue]:
        """Return the next setting, by target.

        Args:
            trials: The finished trials of the study, in order.
        """
        number, (target, first) = len(trials), next(iter(self.space.items()))
        if first.exhaustive:
            return {target: int(first.ends[0]) + number}
        given = self.enqueued[number] if number < len(self.enqueued) else {}
        if number < self._startup:
            return {**rounded(self._sobol_point(number), self.space), **given}
        study = self._gaussian_process(trials) if self.sampler.name == "GPSampler" else self._replay(trials)
        self._asked = study.ask(self._distributions)
        return {**rounded(self._asked.params, self.space), **given}

    def _sobol_point(self, number: int) -> dict[str, JsonValue]:
        from scipy.stats import qmc  # It takes long to import, and only a search needs it.

        points = qmc.Sobol(len(self.space), scramble=True, rng=derive_seed("sobol", self.seed)).random_base2(
            max(1, math.ceil(math.log2(self.sampler.startup_trials)))
        )
        return {target: self.space[target].at(float(x)) for target, x in zip(self.space, points[number], strict=True)}

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
            if trial.number < self._startup:
                study.enqueue_trial(trial.setting)
            asked = self._asked or study.ask(self._distributions)
            # Trials of older stores are not rounded.
            if trial.setting in (asked.params, rounded(asked.params, self.space)):
                failed = optuna.trial.TrialState.FAIL if trial.state == "failed" else None
                with suppress(RuntimeError):  # GridSampler stops a study at its last point; this one does not run.
                    study.tell(asked, trial.score, state=failed)
            else:  # Another release of Optuna proposed it.
                study.tell(asked, state=optuna.trial.TrialState.FAIL)
                study.add_trial(self._as_optunas(trial, trial.score))
            self._asked = None
        self._replayed_trials = len(trials)
        return study

    @property
    def _distributions(self) -> dict[str, BaseDistribution]:
        return {target: distribution_of(one) for target, one in self.space.items()}

    def _as_optunas(self, trial: Trial, score: float | None) -> optuna.trial.FrozenTrial:
        state = optuna.trial.TrialState.FAIL if score is None else optuna.trial.TrialState.COMPLETE
        return optuna.trial.create_trial(
            state=state, params=trial.setting, distributions=self._distributions, value=score
        )

    def _sampler(self, number: int) -> optuna.samplers.BaseSampler:
        return build_sampler(self.sampler, derive_seed("sampler", self.seed, number) % 2**32, self.space)


def rounded(setting: Mapping[str, JsonValue], space: Mapping[str, Range]) -> dict[str, JsonValue]:
    """Round the proposed numbers of a setting to `PROPOSED_DIGITS`, those within a range to numbers within it.

    Whole numbers, choices and steps of a range are what they are.
    """

    def short(target: str, value: JsonValue) -> JsonValue:
        one = space.get(target)
        if not isinstance(value, float) or (one and one.listed is not None):
            return value
        number = float(f"{value:.{PROPOSED_DIGITS}g}")
        if one is None or not one.holds(value):
            return number
        return min(max(number, one.ends[0]), one.ends[1])

    return {target: short(target, value) for target, value in setting.items()}


def try_sampler(space: Mapping[str, Range], settings: SamplerSettings, budget: int) -> None:
    """Let a sampler propose settings of a space; raise MethodError if it, or a package that it needs, cannot."""
    if settings.name == "GridSampler":
        points = math.prod(len(each.grid(_points(settings))) for each in space.values())
        if "search_space" not in settings.arguments and points < budget:
            raise MethodError(
                f"search.sampler: the grid has {points} points, fewer than the {counted(budget, 'trial')}; give fewer "
                "trials, or more `points` in search.sampler.arguments"
            )
    endless = [key for key, each in space.items() if each.scale in ("linear", "log") and each.step is None]
    if settings.name == "BruteForceSampler" and endless:
        raise MethodError(f"search.sampler: BruteForceSampler: search.ranges must give {', '.join(endless)} a step")
    proposals, trials = Proposals(space, settings, 0), list[Trial]()
    for number in range(settings.startup_trials + 2):
        with _named_errors(settings.name):
            setting = proposals.next(trials)
        score = 0.5 + 0.01 * number
        trials.append(
            Trial(number=number, setting=setting, state="complete", score=score, fold_scores=(score,), trainings=("",))
        )


def build_sampler(
    settings: SamplerSettings, seed: int = 0, space: Mapping[str, Range] = MappingProxyType({})
) -> optuna.samplers.BaseSampler:
    """Build the sampler that the settings name.

    Args:
        settings: Name of its class, and its arguments; one that is a mapping with a `name` is a sampler too.
        seed: Seed of the sampler, if it takes one. A `seed` among the arguments is mixed with this one, so that no two
            searches propose the same.
        space: The hyperparameters, for a grid.

    Raises:
        MethodError: There is no such sampler, or it does not take the arguments.
    """
    with warnings.catch_warnings(), _named_errors(settings.name):
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return _built(settings, seed, space)


def _built(settings: SamplerSettings, seed: int, space: Mapping[str, Range]) -> optuna.samplers.BaseSampler:
    kind, arguments = _sampler_class(settings.name), dict[str, Any](settings.arguments)
    for key, value in settings.arguments.items():
        if isinstance(value, dict) and "name" in value:
            arguments[key] = _built(SamplerSettings.model_validate(value), seed, space)
    if settings.name == "GPSampler":
        arguments = {
            "independent_sampler": optuna.samplers.RandomSampler(seed=seed),
            "n_startup_trials": settings.startup_trials,
            "deterministic_objective": settings.deterministic_objective,
            "warn_independent_sampling": True,
            **arguments,
        }
    elif settings.name == "GridSampler":
        arguments.pop("points", None)
        points = _points(settings)
        arguments = {"search_space": {target: each.grid(points) for target, each in space.items()}, **arguments}
    elif issubclass(kind, optuna.samplers.QMCSampler):
        arguments = {
            "scramble": True,
            **arguments,
        }  # Without it the points have no seed: all searches propose the same.
    if (given := arguments.get("seed")) is not None:
        if not isinstance(given, int):
            raise MethodError(f"search.sampler: {settings.name}: seed must be a whole number, found {given!r}")
        seed = derive_seed("sampler", given, seed) % 2**32
    try:
        sampler: optuna.samplers.BaseSampler = kind(**{**arguments, "seed": seed})
    except TypeError:
        sampler = kind(**arguments)  # Some, such as PartialFixedSampler, take no seed.
    return sampler


def _points(settings: SamplerSettings) -> int:
    points = settings.arguments.get("points", GRID_POINTS)
    if not isinstance(points, int) or points < 1:
        raise MethodError(f"search.sampler: GridSampler: points must be a whole number from 1 on, found {points!r}")
    return points


def _sampler_class(name: str) -> Any:
    """Return a class of Optuna, `module:Class`, or a package of OptunaHub's registry, such as `samplers/hebo:Class`."""
    module, colon, cls = name.rpartition(":")
    if colon:
        is_of_hub = "/" in module
        found = importlib.import_module(_HUB).load_module(module) if is_of_hub else importlib.import_module(module)
        kind = getattr(found, cls, None)
    else:
        kind = getattr(optuna.samplers, name, None)
    is_sampler = isinstance(kind, type) and issubclass(kind, optuna.samplers.BaseSampler)
    if is_sampler and kind is not optuna.samplers.BaseSampler:
        return kind
    known = [each for each in optuna.samplers.__all__ if each.endswith("Sampler") and not each.startswith("Base")]
    raise MethodError(
        f"search.sampler: there is no sampler {name!r}; use one of Optuna's ({', '.join(known)}), `module:Class`, or "
        "`samplers/PACKAGE:Class` of OptunaHub"
    )


@contextmanager
def _named_errors(name: str) -> Iterator[None]:
    """Turn whatever a sampler, its package or GitHub says into one line with the sampler's name."""
    try:
        yield
    except MethodError:
        raise
    except ImportError as error:
        raise MethodError(f"search.sampler: {name} needs the package {error.name}: pip install {error.name}") from None
    except Exception as error:
        raise MethodError(f"search.sampler: {name}: {first_line(error)}") from None


def _study(sampler: optuna.samplers.BaseSampler) -> optuna.Study:
    """A study in memory, without Optuna's log line for each call."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(direction="maximize", sampler=sampler)
    finally:
        optuna.logging.set_verbosity(verbosity)
