"""How far runs and searches differ: simulated deviations, the numbers of the design, and which record fits."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.search_variance import DEVIATIONS, kept_deviations
from results.answer.deviations import FEWEST_TRIALS, SearchDeviation, nearest_search_deviation, search_deviation
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.answers import asked

BIRDS, GLYPHS = (
    MeasuredExperiment.kept(name) for name in ("same_method_frozen_cub200_subset", "all_methods_glyphs_three_searches")
)

SCORE = ("map_at_r", "concatenated")

LINES = [
    line
    for line in pd.read_csv(DEVIATIONS).dropna(subset="dataset").fillna("").to_dict("records")
    if line["metric"] == "map_at_r"
]


def between_searches(record):
    return search_deviation(answer_of(record).searches)


def test_the_deviations_of_the_kept_records_are_those_of_the_design():
    found = [between_searches(record) for record in (BIRDS, GLYPHS)]
    assert [100 * one.deviation for one in found] == pytest.approx([0.27033, 1.58908], abs=1e-5)
    assert [one.degrees for one in found] == [11, 10]


def test_the_first_trials_of_a_longer_search_vary_at_least_as_much():
    assert all(len(line["shorter"].split()) == line["trials"] - FEWEST_TRIALS for line in LINES)
    assert all(float(factor) >= 1 for line in LINES for factor in line["shorter"].split())
    (birds,) = (line for line in LINES if "same_method" in line["record"] and line["embeddings"] == "concatenated")
    factors = [float(factor) for factor in birds["shorter"].split()]
    deviations = [100 * birds["deviation"] * factors[trials - FEWEST_TRIALS] for trials in (10, 12, 16)]
    assert deviations == pytest.approx([1.479, 0.356, 0.295], abs=1e-3)


def test_a_record_has_the_trials_that_its_searches_got_where_ends_were_probed():
    (probed,) = (line for line in LINES if "ends_probed" in line["record"] and line["embeddings"] == "concatenated")
    kept = MeasuredExperiment.kept("reality_check_glyphs_ends_probed")
    assert {len(scores) for scores in kept.searches.values()} == {probed["trials"]}


def experiment(of=GLYPHS, **search):
    given = of.plan.experiment
    return given.model_copy(update={"search": given.search.model_copy(update={"searches": 1, **search})})


def nearest(of, trunk=None, dataset=None, **search):
    given = experiment(of, **search)
    conditions = given.conditions.model_copy(update={"trunk": given.conditions.trunk.model_copy(update=trunk or {})})
    data = given.dataset.model_copy(update=dataset or {})
    changed = given.model_copy(update={"conditions": conditions, "dataset": data})
    return nearest_search_deviation(changed, *SCORE)


def test_the_nearest_record_has_the_same_data_and_most_searches():
    assert nearest(GLYPHS).record.endswith("three_searches.json.xz")
    assert "search_variance_birds" in nearest(BIRDS).record, "most searches"


def test_a_record_is_near_on_the_same_dataset_or_with_the_same_trunk_and_training():
    assert "glyphs" in nearest(GLYPHS, trunk={"name": "other"}).record, "the same dataset"
    assert "birds" in nearest(BIRDS, dataset={"name": "sop"}).record, "the same trunk, frozen"
    assert nearest(BIRDS, trunk={"name": "other"}, dataset={"name": "sop"}) is None
    # MLRC's own experiments train a network that no record has; glyphs' small one says nothing about it.
    for name in ("bn_inception", "small_conv"):
        assert nearest(GLYPHS, trunk={"name": name, "weights": "imagenet"}, dataset={"name": "cub200"}) is None


def test_folders_of_users_are_different_datasets_and_the_larger_deviation_counts():
    own = {"name": "folder"}
    assert "glyphs" in nearest(GLYPHS, dataset=own, trials=12).record
    assert nearest(GLYPHS, dataset=own, trunk={"name": "other"}) is None


def test_a_record_of_short_searches_is_not_near() -> None:
    assert "reality_check_birds" in nearest_search_deviation(experiment(BIRDS, trials=10), *SCORE).record


@pytest.mark.parametrize("trials", [1, 9])
def test_no_record_is_near_a_search_of_few_trials(trials):
    assert nearest_search_deviation(experiment(trials=trials), *SCORE) is None


def test_a_record_without_repeated_searches_says_nothing():
    assert search_deviation([[0.1], [0.2]]) is None


def test_the_five_losses_on_glyphs_are_not_told_apart_by_three_searches():
    result = answer_of(GLYPHS)
    assert not any(pair.better for pair in result.pairs)
    pair = result.pair("proxy_anchor", "soft_triple")
    assert (100 * pair.difference, pair.p, pair.degrees) == pytest.approx((2.1384, 0.171217, 10), abs=1e-4)


def test_two_searches_of_the_design_are_not_told_apart():
    (values,) = answer_of(BIRDS).runs.values()
    runs = [tuple(search) for search in values.values()]
    means = np.array([np.mean(search) for number, search in enumerate(runs) if number not in (8, 10)])
    assert 100 * means.std(ddof=1) == pytest.approx(0.179452, abs=1e-5)
    assumed = SearchDeviation(float(means.std(ddof=1)), 9)
    pair = asked({"a": runs[8], "b": runs[10]}, unit="single search", assumed=assumed).pairs[0]
    assert (100 * abs(pair.difference), pair.degrees) == pytest.approx((0.887936, 12.4757), abs=1e-4)
    assert pair.p_better == pytest.approx(0.273910, abs=1e-5)
    assert pair.direction == "cannot tell"


def test_the_shipped_deviations_are_those_of_the_kept_records():
    shipped, kept = pd.read_csv(DEVIATIONS), kept_deviations()
    longer = [[float(share) for share in str(text).split()] for text in shipped.pop("shorter").fillna("")]
    assert longer == [pytest.approx([float(share) for share in text.split()]) for text in kept.pop("shorter")]
    pd.testing.assert_frame_equal(shipped, kept, rtol=1e-9, check_dtype=False)
