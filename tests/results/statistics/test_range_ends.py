"""Settings at an end of the range that was searched."""

import math

import pytest

from results.spec.search_settings import SearchedRange
from results.statistics.cut_off import RangeEnd, range_ends
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import some_run, some_summary


@pytest.mark.parametrize(
    ("scale", "low", "high", "value", "end"),
    [
        ("linear", 0.0, 1.0, 0.0, "lowest"),
        ("linear", 0.0, 1.0, 0.009, "lowest"),
        ("linear", 0.0, 1.0, 0.011, None),
        ("linear", -0.2, 0.3, 0.2999, "highest"),
        # Samplers round: the first value is what one proposed at the end of the range.
        ("log", 1e-6, 1e-3, 1.0000000000000004e-06, "lowest"),
        ("log", 1e-6, 1e-3, 1e-6 * 10**0.029, "lowest"),
        ("log", 1e-6, 1e-3, 1e-6 * 10**0.031, None),
        ("log", 1e-6, 1e-3, 9.9e-4, "highest"),
        ("log", 1e-4, 1.0, math.nextafter(1.0, 2.0), "highest"),
        ("int", 1, 200, 2, None),
        ("int", 1, 200, 1, "lowest"),
        ("int_log", 1, 200, 200, "highest"),
    ],
)
def test_the_last_hundredth_of_a_range_is_its_end(scale, low, high, value, end):
    assert SearchedRange(scale=scale, low=low, high=high).end_at(value) == end


RANGES = {
    "loss.margin": SearchedRange(scale="linear", low=0.0, high=1.0),
    "optimizer.lr": SearchedRange(scale="log", low=1e-6, high=1e-3),
}


def experiment(*settings):
    """A method searched as often as there are settings, with two runs of each, and one that is not searched."""
    runs = [
        some_run("triplet", run, search=search, hyperparameters=setting, fingerprint=f"{search}-{run}")
        for search, setting in enumerate(settings)
        for run in range(2)
    ]
    summary = some_summary(methods={"untrained": "U", "triplet": "T"}, ranges={"triplet": RANGES})
    return MeasuredExperiment(summary, (*runs, some_run("untrained", hyperparameters={})))


def test_ends_are_found_once_for_all_runs_of_a_setting():
    assert range_ends(experiment({"loss.margin": 0.5, "optimizer.lr": 1e-3})) == [
        RangeEnd("triplet", "optimizer.lr", "highest", 1e-3, 1, 1)
    ]
    assert range_ends(experiment({"loss.margin": 0.5, "optimizer.lr": 1e-4})) == []


def test_searches_that_find_an_end_are_counted():
    settings = [{"loss.margin": margin, "optimizer.lr": 1e-4} for margin in (0.0, 1.0, 0.3, 0.0)]
    assert range_ends(experiment(*settings)) == [
        RangeEnd("triplet", "loss.margin", "lowest", 0.0, 2, 4),
        RangeEnd("triplet", "loss.margin", "highest", 1.0, 1, 4),
    ]


def test_values_that_were_set_and_old_summaries_have_no_ends():
    assert range_ends(experiment({"loss.alpha": 32})) == []
    known = experiment({"loss.margin": 0.0})
    old = known.summary.model_copy(update={"ranges": {}})
    assert range_ends(MeasuredExperiment(old, known.records)) == []
