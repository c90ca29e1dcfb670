"""The table of the sources of doubt."""

import pytest

from reports.tables.uncertainty import uncertainty_table
from results.statistics.primary_comparison import primary_comparison
from results.store.experiment_results import MeasuredExperiment
from tests.support.measured_experiment import measured, read
from tests.support.page_material import values, with_classes
from tests.support.sample_page import measured as kept
from tests.support.sample_records import some_summary


def test_every_pair_has_a_row_and_nothing_is_wider_than_all_together():
    frame = read(uncertainty_table(kept()))
    assert len(frame) == 10
    assert (frame["together_half_width"] >= frame[["runs_half_width", "classes_half_width"]].max(axis=1)).all()
    assert frame["search_half_width"].isna().all()
    assert "No search was repeated" in uncertainty_table(kept()).caption
    assert "on the same classes, as in the table of differences. " in uncertainty_table(kept()).caption
    searched = uncertainty_table(kept("all_methods_glyphs_three_searches")).caption
    assert "on the same classes. " in searched
    assert "All together contains it." in searched


def test_difference_and_doubt_of_runs_are_those_of_the_comparison():
    comparison = primary_comparison(kept())
    frame = read(uncertainty_table(kept())).set_index(["a", "b"])
    for (a, b), row in frame.iterrows():
        pair = comparison.pair(a, b)
        # Class scores are kept with six digits.
        assert (row["difference"], row["runs_half_width"]) == (
            pytest.approx(pair.difference, abs=2e-6),
            pytest.approx(pair.half_width, abs=2e-5),
        )


def test_methods_without_class_scores_are_named():
    runs = values(a=[0.5, 0.6], b=[0.4, 0.45], c=[0.3, 0.35])
    runs = {**runs, **{key: with_classes(runs[key], (0.0, 0.01, 0.03, 0.0)) for key in ("a", "b")}}
    records = tuple(run for own in runs.values() for run in own)
    table = uncertainty_table(MeasuredExperiment(some_summary(methods={"a": "A", "b": "B", "c": "C"}), records))
    assert [row.head for row in table.rows] == ["A − B"]
    assert table.notes == ("Runs without class scores: C.",)
    assert uncertainty_table(measured()).rows == ()
    assert "Fewer than two methods" in uncertainty_table(measured()).caption


def test_rows_under_conditions_of_their_own_are_in_no_pair():
    world = kept()
    settings = {**world.summary.experiment.without_folder(), "with": {"contrastive": {"training.max_epochs": 3}}}
    apart = some_summary(methods=world.summary.methods, settings=settings)
    assert apart.left_out, "the settings are read"
    frame = read(uncertainty_table(MeasuredExperiment(apart, world.records)))
    assert len(frame) == 6
    assert "contrastive" not in {*frame["a"], *frame["b"]}
