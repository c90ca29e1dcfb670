"""The trials of a search, from the trainings in the store, without Optuna.

A trial's trainings are known by their seeds. They differ from the trainings of the reproductions only in seed, fold and
hyperparameters.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from results.records.records import FoldResult, RunRecord
from results.spec.experiment_spec import Experiment
from results.spec.mlrc_constants import FOLDS
from results.spec.racing import raced
from results.spec.seeds import training_seed
from results.spec.training_spec import FoldSpec, MethodSpec

_MAY_DIFFER = {"method", "seed", "fold", "train_classes", "validation_classes", "checkpoint_epoch"}


@dataclass(frozen=True)
class SearchTrials:
    """The trials of a search.

    Attributes:
        scores: Validation scores by trial, fractions of 1; in a race the expected score of a trial that got no more
            folds.
        iterations: Mean number of iterations of the trials' trainings; None in files from before it was recorded.
    """

    scores: tuple[float, ...]
    iterations: float | None = None


def search_trials(
    experiment: Experiment, run: RunRecord, reproduction: FoldSpec, stored: Iterable[tuple[FoldSpec, FoldResult]]
) -> SearchTrials | None:
    """Return the trials of the search that found a run's setting.

    Args:
        experiment: The experiment.
        run: A run of the method.
        reproduction: One of the run's trainings.
        stored: All stored trainings of the method on the dataset.

    Returns:
        The trials; None if the store does not show which trainings belong to the search, for example because it holds
        two searches with equal seeds.
    """
    numbers = [(trial, fold) for trial in range(experiment.search.trials) for fold in range(FOLDS)]
    trials = {training_seed(experiment.seed, run.search, "search", *number): number[0] for number in numbers}
    conditions = _conditions(reproduction)
    settings: dict[int, list[MethodSpec]] = defaultdict(list)
    values: dict[int, dict[int, float]] = defaultdict(dict)
    iterations = []
    for spec, result in stored:
        if spec.seed in trials and spec.checkpoint_epoch is None and _conditions(spec) == conditions:
            trial = trials[spec.seed]
            if spec.fold in values[trial] or any(setting != spec.method for setting in settings[trial]):
                return None
            settings[trial].append(spec.method)
            values[trial][spec.fold] = result.objective
            iterations.append(result.iterations)
    if not values or sorted(values) != list(range(len(values))):
        return None
    scores = _scores([values[trial] for trial in range(len(values))], racing=experiment.search.racing)
    if not scores or settings[scores.index(max(scores))][0] != reproduction.method:
        return None
    return SearchTrials(scores, sum(iterations) / len(iterations))


def _scores(trials: list[dict[int, float]], *, racing: bool) -> tuple[float, ...]:
    """Scores of trials from their values by fold; empty if a trial lacks a fold."""
    folds = max(len(values) for values in trials)
    if racing:
        in_order = [[values[fold] for fold in takewhile(values.__contains__, range(folds))] for values in trials]
        try:
            return tuple(trial.score for trial in raced(in_order, folds))
        except ValueError:
            return ()
    complete = all(len(values) == folds for values in trials)
    return tuple(sum(values.values()) / folds for values in trials) if complete else ()


def _conditions(spec: FoldSpec) -> dict[str, object]:
    return {name: getattr(spec, name) for name in FoldSpec.model_fields if name not in _MAY_DIFFER}
