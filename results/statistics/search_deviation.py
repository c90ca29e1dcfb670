"""How far two searches of one method differ, from kept records whose searches were repeated.

Where each method was searched once, nothing in the experiment shows by how much another search would have changed its
score. The trials of the one search do not show it either: a sampler's trials depend on each other, and drawing from
them again gives a fourth of the true deviation. So the deviation is assumed from the nearest record, and doubled: in
simulations no more than 5 % of the claims are wrong as long as the true deviation is at most twice the record's.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from results.spec.experiment_spec import Experiment, PrimaryScore
from results.statistics.measured_noise import kept_measurements, pooled_variance, setting_phrase
from results.statistics.run_values import by_search, values_by_run
from results.store.experiment_results import MeasuredExperiment

WIDENING = 2.0
"""Factor of an assumed deviation in tests."""

FEWEST_DEGREES, FEWEST_TRIALS = 10, 10
"""A record with fewer degrees of freedom or trials says too little, and no record speaks for a search of fewer trials:
short searches vary more than their first trials of a longer one do."""


@dataclass(frozen=True)
class SearchDeviation:
    """The standard deviation between the means of searches.

    Attributes:
        deviation: In the unit of the values. The part of the runs stays in it.
        degrees: Its degrees of freedom.
        largest: Largest difference between two searches of one method in the record.
        record: Name of the record.
        trials: Trials of each search in the record.
        setting: The record's setting as a phrase.
    """

    deviation: float
    degrees: int
    largest: float = 0.0
    record: str = ""
    trials: int = 0
    setting: str = ""


def search_deviation(
    measured: MeasuredExperiment, score: PrimaryScore, trials: int | None = None, name: str = ""
) -> SearchDeviation | None:
    """Compute the deviation between the searches of a record, pooled over its methods; None if none was repeated.

    The first trials of a longer search are a search too. Its deviation is that of the record, times the ratio of the
    deviations of the best validation scores, and not below that of the record.

    Args:
        measured: The record, with the scores of its trials.
        score: The score of the means.
        trials: Trials of the searches in question; None takes those of the record.
        name: Name of the record.
    """
    values = values_by_run(measured.records, score.metric, score.embeddings)
    means = {method: [float(np.mean(runs)) for runs in by_search(own).values()] for method, own in values.items()}
    repeated = {method: own for method, own in means.items() if len(own) > 1 and method in measured.searched_methods}
    if not repeated:
        return None
    variance, degrees = pooled_variance(repeated.values())
    deviation = float(np.sqrt(variance))
    if trials is not None and trials < measured.summary.trials:
        best = {
            count: [
                [max(search.scores[:count]) for (key, _), search in measured.searches.items() if key == method]
                for method in repeated
            ]
            for count in (trials, measured.summary.trials)
        }
        of_few, of_all = (pooled_variance(scores)[0] for scores in best.values())
        deviation *= max(1.0, float(np.sqrt(of_few / of_all)))
    largest = max(float(np.ptp(own)) for own in repeated.values())
    return SearchDeviation(deviation, degrees, largest, name, measured.summary.trials, setting_phrase(measured))


@cache
def kept_search_deviations(score: PrimaryScore, trials: int) -> tuple[tuple[MeasuredExperiment, SearchDeviation], ...]:
    """Return the deviations of all records in `results/measured` that say enough, for searches of so many trials."""
    found = []
    for name, kept in kept_measurements():
        if kept.repeats_searches and kept.searches and min(trials, kept.summary.trials) >= FEWEST_TRIALS:
            deviation = search_deviation(kept, score, trials, name)
            if deviation is not None and deviation.degrees >= FEWEST_DEGREES and deviation.deviation > 0:
                found.append((kept, deviation))
    return tuple(found)


def nearest_search_deviation(experiment: Experiment, score: PrimaryScore) -> SearchDeviation | None:
    """Return the deviation of the kept record that is nearest to an experiment; None if none is near.

    A record is near if it trains a network as the experiment does, or works on features as it does. Of these, the one
    on the same data and trunk comes first, then the one with the nearest number of trials, then that of most searches.
    """
    trials, trunk = experiment.search.trials, experiment.trunk
    near = [
        (kept, deviation)
        for kept, deviation in kept_search_deviations(
            PrimaryScore(metric=score.metric, embeddings=score.embeddings), trials
        )
        if kept.summary.experiment.trunk.is_input_features == trunk.is_input_features
    ]

    def distance(candidate: tuple[MeasuredExperiment, SearchDeviation]) -> tuple[bool, bool, int, int]:
        other = candidate[0].summary
        return (
            other.dataset != experiment.dataset.name,
            other.experiment.trunk.name != trunk.name,
            abs(other.trials - trials),
            -candidate[1].degrees,
        )

    return min(near, key=distance)[1] if near else None
