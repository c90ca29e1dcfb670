"""How much searches vary: the kept numbers are those of the kept records."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from results.statistics.primary_comparison import primary_score
from results.store.experiment_results import MeasuredExperiment
from tests.benchmarks.search_variance import (
    deviation_of,
    kept_variation,
    search_variance_figure,
    search_variance_markdown,
    varied,
)
from tests.support.documentation import ROOT, text_of


def test_the_kept_numbers_are_those_of_the_records() -> None:
    assert search_variance_markdown(json.dumps(kept_variation())) == search_variance_markdown()


def test_bad_searches_are_as_rare_and_large_as_the_page_says() -> None:
    shares = [said["share_of_the_worst"] for said in kept_variation().values()]
    beyond = sum(share["found"] > share["normal_95"] for share in shares)
    page = " ".join(text_of(ROOT / "docs" / "comparisons.md").split())
    assert (beyond, len(shares)) == (4, 6)
    assert "In four of the six records the lowest search" in page


def test_the_interval_of_a_deviation_holds_the_true_one_in_95_percent_of_samples() -> None:
    drawn = np.random.default_rng(0).normal(scale=0.02, size=(2_000, 2, 3))
    found = [deviation_of(methods) for methods in drawn]
    inside = sum(one is not None and one.low < 2.0 < one.high for one in found)
    assert stats.binomtest(inside, len(found), 0.95).pvalue > 0.01


def test_single_searches_say_nothing() -> None:
    assert deviation_of([[0.5], [0.4]]) is None


def test_the_first_trials_of_a_search_are_a_search_and_its_best_score_only_rises() -> None:
    measured = MeasuredExperiment.kept("same_method_frozen_cub200_subset")
    said = varied(measured, primary_score(measured))
    assert all(gain >= 0 for gain in said["gain_of_more_trials"].values())
    scores = [search.scores[:5] for search in measured.searches.values()]
    best = 100 * np.std([max(first) for first in scores], ddof=1)
    assert said["best_validation_score_by_trials"][5].value == pytest.approx(best)


def test_the_figure_centres_the_searches_of_a_method() -> None:
    method = {"title": "A", "means_of_searches": [0.1, 0.3]}
    said = {"methods": {"a": method}, "between_searches": SimpleNamespace(value=1.0), "score": "MAP@R", "trials": 5}
    (axes,) = search_variance_figure({"record": said}).axes
    assert list(axes.lines[0].get_xdata()) == pytest.approx([-10.0, 10.0])
