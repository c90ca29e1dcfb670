"""The table of the sources of uncertainty."""

from dataclasses import replace

import pytest
from scipy import stats

from reports.tables.uncertainty import uncertainty_table
from results.spec.experiment_spec import PrimaryScore
from results.statistics.primary_comparison import primary_comparison
from results.store.experiment_results import MeasuredExperiment
from tests.support.measured_experiment import measured, read
from tests.support.page_material import values, with_classes
from tests.support.sample_page import measured as kept
from tests.support.sample_records import some_summary

THREE, FROZEN = "all_methods_glyphs_three_searches", "mlrc_frozen_cub200_subset"
WIDTHS = ["runs_half_width", "search_half_width", "classes_half_width"]


def as_compared(name, compare):
    """A kept record whose file asks for these comparisons."""
    world = kept(name)
    experiment = world.summary.experiment.model_copy(update={"primary": PrimaryScore(compare=compare)})
    return replace(world, summary=world.summary.model_copy(update={"experiment": experiment}))


def two_methods(trials):
    runs = values(a=[0.5, 0.6], b=[0.4, 0.45])
    records = tuple(run for own in runs.values() for run in with_classes(own, (0.0, 0.01, 0.03, 0.0)))
    return MeasuredExperiment(some_summary(methods={"a": "A", "b": "B"}, trials=trials, reproductions=2), records)


@pytest.mark.parametrize("name", [THREE, FROZEN, "mlrc_frozen_cub200_random_start_subset"])
def test_nothing_is_wider_than_all_together_or_narrower_than_the_table_of_differences(name):
    frame, comparison = read(uncertainty_table(kept(name))), primary_comparison(kept(name))
    assert len(frame) == len(comparison.pairs)
    assert (frame["together_half_width"] >= frame[WIDTHS].max(axis=1)).all()
    for row in frame.itertuples():
        pair = comparison.pair(row.a, row.b)
        # Class scores are kept with six digits.
        assert row.difference == pytest.approx(pair.difference, abs=2e-6)
        assert row.together_half_width >= pair.half_width


def test_the_source_that_was_tested_is_the_comparisons():
    comparison = primary_comparison(kept(THREE))
    for row in read(uncertainty_table(kept(THREE))).itertuples():
        assert row.search_half_width == pytest.approx(comparison.pair(row.a, row.b).half_width)
    assert "Search: other searches with their runs" in uncertainty_table(kept(THREE)).remarks[0]
    world = two_methods(trials=0)
    (pair,) = primary_comparison(world).pairs
    frame = read(uncertainty_table(world))
    assert frame["runs_half_width"][0] == pytest.approx(pair.half_width)
    assert frame["search_half_width"].isna().all()
    assert "Search: nothing was searched." in uncertainty_table(world).remarks[0]


def test_the_search_of_single_searches_is_assumed_or_not_known():
    assumed = primary_comparison(kept(FROZEN)).assumed
    frame = read(uncertainty_table(kept(FROZEN))).set_index(["a", "b"])
    expected = stats.t.ppf(0.975, 40) * 2 * assumed.deviation
    assert frame.loc[("contrastive", "triplet"), "search_half_width"] == pytest.approx(2**0.5 * expected)
    assert frame.loc[("untrained", "triplet"), "search_half_width"] == pytest.approx(expected)
    assert "twice the deviation in results/measured/search_variance_birds" in uncertainty_table(kept(FROZEN)).remarks[0]
    unknown = two_methods(trials=5)
    assert read(uncertainty_table(unknown))["search_half_width"].isna().all()
    assert "Search: not known, since each method was searched once" in uncertainty_table(unknown).remarks[0]


def test_only_complete_methods_and_compared_pairs_have_rows():
    best = read(uncertainty_table(as_compared(THREE, "best")))
    assert len(best) == 4
    assert all("proxy_anchor" in pair for pair in zip(best["a"], best["b"], strict=True))
    half = replace(kept(THREE), records=kept(THREE).records[:-1])
    frame = read(uncertainty_table(half))
    assert len(frame) == 6
    assert half.records[-1].method not in {*frame["a"], *frame["b"]}


def test_methods_without_class_scores_are_named():
    runs = values(a=[0.5, 0.6], b=[0.4, 0.45], c=[0.3, 0.35])
    runs = {**runs, **{key: with_classes(runs[key], (0.0, 0.01, 0.03, 0.0)) for key in ("a", "b")}}
    records = tuple(run for own in runs.values() for run in own)
    summary = some_summary(methods={"a": "A", "b": "B", "c": "C"}, reproductions=2)
    table = uncertainty_table(MeasuredExperiment(summary, records))
    assert [row.head for row in table.rows] == ["A − B"]
    assert table.notes == ("Runs without class scores: C.",)


def test_without_class_scores_there_is_no_pair():
    assert uncertainty_table(measured()).rows == ()
    assert "No two methods that are compared" in uncertainty_table(measured()).caption


def test_rows_under_conditions_of_their_own_are_in_no_pair():
    world = kept()
    settings = {**world.summary.experiment.without_folder(), "with": {"contrastive": {"training.max_epochs": 3}}}
    apart = some_summary(methods=world.summary.methods, settings=settings)
    assert apart.left_out, "the settings are read"
    frame = read(uncertainty_table(MeasuredExperiment(apart, world.records)))
    assert len(frame) == 6
    assert "contrastive" not in {*frame["a"], *frame["b"]}
