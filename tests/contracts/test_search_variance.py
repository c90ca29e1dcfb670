"""How much searches vary: the kept numbers are those of the kept records."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from results.statistics.primary_comparison import primary_score
from results.store.experiment_results import MeasuredExperiment
from tests.benchmarks.search_variance import (
    DEVIATIONS,
    deviation_of,
    deviations_text,
    kept_variation,
    search_variance_figure,
    search_variance_markdown,
    share_of_the_worst,
    varied,
)
from tests.support.documentation import ROOT, text_of

PAGE = " ".join(text_of(ROOT / "docs" / "comparisons.md").split())


def test_the_kept_numbers_are_those_of_the_records() -> None:
    assert search_variance_markdown(json.dumps(kept_variation())) == search_variance_markdown()


def test_bad_searches_are_as_rare_and_large_as_the_page_says() -> None:
    found = kept_variation()
    longer = found.pop("search_variance_birds_subset")["share_of_the_worst"]
    assert (round(longer["found"], 2), round(longer["p_if_normal"], 3)) == (0.54, 0.002)
    assert "the lowest has 54 % of the squares, and normal searches in 2 of 1,000 cases as much" in PAGE
    glyphs = found.pop("search_variance_glyphs")["share_of_the_worst"]
    assert glyphs["found"] == pytest.approx(glyphs["normal"], abs=0.01)
    assert "The lowest of six searches has the share of normal ones." in PAGE
    measured = found.pop("search_variance_handwriting")
    worst, second, *_ = sorted(measured["methods"]["contrastive"]["means_of_searches"])
    assert f"One search of Contrastive ends {100 * (second - worst):.0f} points below the next of its loss." in PAGE
    best = [f"{deviation.value:.1f}" for deviation in measured["best_validation_score_by_trials"].values()]
    assert f"those on handwriting from {best[0]} to {best[-1]}." in PAGE
    handwriting = measured["share_of_the_worst"]
    assert round(handwriting["found"], 2) == 0.57
    assert handwriting["p_if_normal"] < 0.001
    assert "The lowest has 57 % of the squares, and normal searches in less than one of 1,000 cases as much." in PAGE
    of_three = [said["share_of_the_worst"]["p_if_normal"] for name, said in found.items() if "same_method" not in name]
    assert (sum(p < 0.05 for p in of_three), len(of_three)) == (1, 5)
    assert "as large a share in less than 5 % of cases in one of five records" in PAGE


def test_unequal_deviations_of_losses_are_no_bad_searches() -> None:
    generator = np.random.default_rng(0)
    scales = np.array([[1.0], [1.0], [1.0], [10.0]])
    found = [share_of_the_worst(scales * generator.normal(size=(4, 6)), draws=400)["p_if_normal"] for _ in range(200)]
    assert stats.binomtest(sum(p <= 0.05 for p in found), len(found), 0.05).pvalue > 0.01
    one_fails = np.vstack([generator.normal(size=(3, 6)), [0.0, 0.1, -0.1, 0.2, -0.2, -9.0]])
    assert share_of_the_worst(one_fails)["found"] > share_of_the_worst(one_fails)["normal"]


def test_another_processor_gives_other_searches() -> None:
    board, longer = (
        {key: search.scores[:12] for key, search in MeasuredExperiment.kept(name).searches.items()}
        for name in ("reality_check_birds_subset", "search_variance_birds_subset")
    )
    both = board.keys() & longer.keys()
    assert (sum(board[key] == longer[key] for key in both), len(both)) == (14, 24)
    assert "14 of 24 have the same scores in all 12 trials" in PAGE


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


def test_the_deviations_that_the_product_reads_are_those_of_the_kept_records():
    assert DEVIATIONS.read_text(encoding="utf-8") == deviations_text()
