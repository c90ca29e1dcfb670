"""Values of runs, by what makes them pairs."""

import pytest

from results.statistics.run_values import RunKey, SearchKey, by_search, value_of, values_by_run
from tests.support.sample_records import some_run


def test_values_are_those_of_the_record():
    record = some_run(
        separated=0.4, metrics_separated={"recall@2": 0.6}, metrics_concatenated={"recall@2": 0.7}, iterations=8
    )
    assert value_of(record, "precision_at_1", "separated") == 0.4
    assert value_of(record) == record.concatenated.map_at_r
    assert value_of(record, "recall@2", "separated") == 0.6
    assert value_of(record, "recall@2") == 0.7
    assert value_of(record, "total_training_steps") == 2.0  # of each of the four models


@pytest.mark.parametrize("metric", ["nmi", "total_training_steps"])
def test_a_metric_that_a_run_lacks_is_named(metric):
    with pytest.raises(ValueError, match=f"run 0 of triplet has no separated {metric}"):
        value_of(some_run(), metric, "separated")


def test_runs_are_gathered_by_method():
    records = [some_run("triplet", 1, 0.5), some_run("margin", 0, 0.4), some_run("triplet", 0, 0.3)]
    values = values_by_run(records, "precision_at_1", "separated")
    assert list(values) == ["triplet", "margin"]
    assert values["triplet"] == {RunKey("glyphs", 0, 1): 0.5, RunKey("glyphs", 0, 0): 0.3}


def test_the_same_run_twice_is_an_error():
    with pytest.raises(ValueError, match="triplet has run 1 of seed 0 on glyphs twice"):
        values_by_run([some_run("triplet", 1), some_run("triplet", 1, fingerprint="other")])


def test_runs_of_equal_numbers_in_two_searches_are_two_runs():
    records = [some_run(run=0, search=search, separated=0.4 + search / 2) for search in (0, 1)]
    values = values_by_run(records, "precision_at_1", "separated")["triplet"]
    assert by_search(values) == {SearchKey("glyphs", 0, 0): [0.4], SearchKey("glyphs", 0, 1): [0.9]}
