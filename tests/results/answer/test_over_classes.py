"""Intervals over the test classes, against scipy's bootstrap, simulated classes, and the scores of kept runs."""

import numpy as np
import pytest
from scipy import stats

from results.answer.over_classes import class_half_widths
from results.findings.experiment import answer_of
from results.records.records import ClassScores
from results.store.experiment_results import MeasuredExperiment

QUERIES = np.array([4, 8, 15, 16, 23, 42, 0, 30, 11, 7])


def mean_over_queries(queries, scores):
    return (queries * scores).sum(-1) / queries.sum(-1)


def test_the_deviation_is_that_of_scipys_bootstrap_of_the_classes_that_have_queries():
    scores = np.random.default_rng(3).random((len(QUERIES), 3))
    asked = QUERIES > 0
    widths = class_half_widths(QUERIES, scores)
    for column, width in enumerate(widths):
        sample = QUERIES[asked], scores[asked, column]
        drawn = stats.bootstrap(
            sample,
            mean_over_queries,
            paired=True,
            n_resamples=20_000,
            method="percentile",
            rng=np.random.default_rng(1),
        )
        assert width == pytest.approx(stats.t.ppf(0.975, 8) * (9 / 8) ** 0.5 * drawn.standard_error, rel=0.05)
    (difference,) = class_half_widths(QUERIES, scores, [(0, 2)])
    assert difference == pytest.approx(class_half_widths(QUERIES, scores[:, :1] - scores[:, 2:])[0], rel=1e-9)


def test_one_class_shows_nothing():
    assert class_half_widths([5, 0], [[0.1], [0.9]]).tolist() == [np.inf]


@pytest.mark.parametrize("classes", [8, 50])
def test_it_covers_the_score_of_all_classes(classes):
    drawn = np.random.default_rng(classes)
    scores, queries = drawn.normal(0.5, 0.1, (classes, 1000)), np.full(classes, 20)
    covered = abs(scores.mean(0) - 0.5) <= class_half_widths(queries, scores)
    assert covered.mean() == pytest.approx(0.95, abs=3 * (0.95 * 0.05 / 1000) ** 0.5)


def test_pairs_of_a_record_have_the_intervals_of_their_class_scores_without_failed_searches():
    kept = MeasuredExperiment.kept("search_variance_birds_subset")
    found = answer_of(kept)
    (failing,) = found.failed
    pair = next(one for one in found.pairs if failing in (one.a, one.b)).turned()
    lowest = min(np.mean(values) for values in found.runs[failing].values())
    means = {}
    for key in (pair.a, pair.b):
        runs = [run for run in kept.records if run.method == key]
        if key == failing:
            runs = [run for run in runs if np.mean(found.runs[key][run.search]) != lowest]
            assert len(runs) < len([run for run in kept.records if run.method == key])
        queries = np.array(runs[0].class_scores.queries)
        means[key] = np.mean([[one.map_at_r for one in run.class_scores.concatenated] for run in runs], axis=0)
        assert mean_over_queries(queries, means[key]) == pytest.approx(found.values[key].mean, abs=2e-6)
    both = np.column_stack([means[pair.a], means[pair.b]])
    assert pair.over_classes == pytest.approx(class_half_widths(queries, both, [(0, 1)])[0], rel=1e-9)


def with_classes(run):
    """Class scores of which a is better on half of the classes, and b on the others."""
    shift = 0.2 if run.method == "a" else -0.2
    scores = [changed_score(run.concatenated, run.concatenated.map_at_r + shift * (-1) ** one) for one in range(8)]
    both = {"separated": tuple(scores), "concatenated": tuple(scores)}
    return run.model_copy(update={"class_scores": ClassScores(queries=(5,) * 8, **both)})


def changed_score(scores, value):
    return scores.model_copy(update={"map_at_r": value})
