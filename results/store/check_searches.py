"""What the trials of a search say that its identity, its other trials and its trainings say too."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from results.records.records import RunRecord
from results.records.trials import Trial, best_trial
from results.spec.hyperparameters import HyperparameterError, method_at
from results.spec.racing import RACING_VERSION, Race
from results.spec.seeds import training_seed
from results.spec.training_spec import FoldSpec, ImageSettings, MethodSpec, TrainingSettings
from results.spec.trunk_spec import TrunkSpec
from results.store.check_trainings import SLACK, CheckedTraining

_OF_A_TRAINING: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("dataset", "data_fingerprint", "split"), str),
    "training_version": int,
    "images": ImageSettings.model_validate,
    "trunk": TrunkSpec.model_validate,
    "training": TrainingSettings.model_validate,
}
"""Fields of a study's identity that its trainings have too, and how to read them."""


@dataclass(frozen=True)
class CheckedStudy:
    """A study whose identity has its fingerprint.

    Attributes:
        identity: Everything that decides it.
        shared: The part of it that its trainings have too.
        space: Its searched ranges, by target.
        method: The method with its defaults.
    """

    identity: Mapping[str, Any]
    shared: Mapping[str, Any]
    space: Mapping[str, Mapping[str, Any]]
    method: MethodSpec

    @classmethod
    def of(cls, identity: Mapping[str, Any]) -> "CheckedStudy":
        """Read an identity.

        Raises:
            KeyError, TypeError, ValueError: It is not one of a study.
        """
        shared = {name: read(identity[name]) for name, read in _OF_A_TRAINING.items()}
        for name in ("seed", "folds"):
            int(identity[name])
        space = {parameter["target"]: parameter for parameter in identity["space"]}
        if not space:
            raise ValueError("nothing is searched")
        for range_ in space.values():
            iter(range_["choices"]) if range_["scale"] == "choice" else float(range_["low"]) + float(range_["high"])
        return cls(identity, shared, space, MethodSpec.model_validate(identity["method"]))

    def n_trials(self, budget: int) -> int:
        """Return the number of trials of a finished search; one that tries all values needs one for each."""
        (first, *others) = self.space.values()
        if others or not first.get("exhaustive") or first["scale"] == "choice":
            return budget
        return int(first["high"]) - int(first["low"]) + 1


def trial_faults(
    study: CheckedStudy, trial: Trial, before: Sequence[Trial], trainings: Mapping[str, CheckedTraining]
) -> Iterator[str]:
    """Yield how a trial contradicts its search, the trials before it, or its trainings.

    Args:
        study: The search.
        trial: The trial.
        before: All trials before it, in order.
        trainings: The whole trainings by fingerprint. Nothing is compared with those that are not there.
    """
    if trial.setting.keys() != study.space.keys():
        yield "its setting is not one of its search"
        return
    for target, value in trial.setting.items():
        if not _is_in(study.space[target], value):
            yield f"{target} is {value}, which is not in the searched range"
    yield from _score_faults(study, trial, before)
    try:
        method = method_at(study.method, trial.setting)
    except HyperparameterError as error:
        yield str(error)
        return
    for fold, (name, score) in enumerate(zip(trial.trainings, trial.fold_scores, strict=True)):
        if (training := trainings.get(name)) is None:
            continue
        if score != training.objective:
            yield f"it has the score {score} of training {name}, whose record has another"
        differing = [*_differing(study, training.spec), *([] if method == training.spec.method else ["setting"])]
        if differing:
            yield f"{', '.join(differing)} differ from training {name}"
        # The seed of an identity is that of the search already, so the search counts as the first.
        seed = training_seed(study.identity["seed"], 0, "search", trial.number, fold)
        if (training.spec.fold, training.spec.seed) != (fold, seed):
            yield f"training {name} is not fold {fold} of trial {trial.number}"
    if trial.state in ("complete", "raced") and all(name in trainings for name in trial.trainings):
        failures = [reason for name in trial.trainings if (reason := trainings[name].failed)]
        if trial.reason != ("; ".join(dict.fromkeys(failures)) or None):
            yield "its reason is not that of its trainings"


def _is_in(range_: Mapping[str, Any], value: JsonValue) -> bool:
    if range_["scale"] == "choice":
        return value in range_["choices"]
    slack = SLACK * max(1.0, abs(range_["high"]))
    return isinstance(value, int | float) and range_["low"] - slack <= value <= range_["high"] + slack


def _score_faults(study: CheckedStudy, trial: Trial, before: Sequence[Trial]) -> Iterator[str]:
    scores, folds = trial.fold_scores, study.identity["folds"]
    if any(not -SLACK <= score <= 1 + SLACK for score in scores):
        yield "a score of a fold is no fraction of 1"
    if trial.state in ("running", "failed"):
        if scores:
            yield f"it is {trial.state} and has scores"
        return
    if not scores or (trial.state == "complete") != (len(scores) == folds):
        yield f"it is {trial.state} with {len(scores)} of {folds} folds"
        return
    if "racing" not in study.identity:
        if trial.state == "raced":
            yield "it is raced in a search without racing"
        return
    if study.identity["racing"] != RACING_VERSION:
        return
    race = Race.against(before)
    behind = [race.is_behind(scores[:count]) for count in range(1, len(scores) + 1)]
    if any(behind[:-1]) or behind[-1] != (trial.state == "raced"):
        yield f"it is {trial.state}, which its scores and the trials before it do not give"
    elif trial.state == "raced" and trial.score is not None:
        expected = 0.0 if trial.diverged else race.expected(scores)
        if not math.isclose(trial.score, expected, rel_tol=SLACK, abs_tol=SLACK):
            yield f"its score is {trial.score}, and {expected} by the trials before it"


def _differing(study: CheckedStudy, spec: FoldSpec) -> list[str]:
    """Return the fields of a study's identity that a training has in another way."""
    differing = [name for name, value in study.shared.items() if getattr(spec, name) != value]
    size = study.identity.get("embedding_size") if spec.method.has_embedding_size else None
    return differing if size == spec.embedding_size else [*differing, "embedding_size"]


def found_faults(study: CheckedStudy, trials: Sequence[Trial], run: RunRecord) -> Iterator[str]:
    """Yield how a run does not have the setting that its search found.

    Args:
        study: The search.
        trials: All its trials in the experiment's budget, finished.
        run: The run.
    """
    best = best_trial(trials)
    if best is None:
        return
    try:
        # What is given is in the study's method already.
        is_found = method_at(study.method, run.hyperparameters) == method_at(study.method, best.setting)
    except HyperparameterError:
        is_found = False
    if not is_found:
        yield f"its setting is not that of trial {best.number}, the best of its search"


def readable_study(identity: Any) -> CheckedStudy | None:
    """Read an identity; None if it is not one of a study."""
    try:
        return CheckedStudy.of(identity)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
