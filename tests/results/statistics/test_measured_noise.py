"""The deviation of measured runs, and which runs fit a printed number."""

import numpy as np
import pytest

from results.records.records import Scores
from results.statistics.measured_noise import measured_noise
from results.store.experiment_results import MeasuredExperiment
from tests.support.published_world import MLRC, changed
from tests.support.sample_records import changed_run, some_run, some_summary


def one_score(value):
    return Scores(precision_at_1=value, r_precision=value, map_at_r=value)


def simulated(name, deviation, seed=0, runs=40, **changes):
    """Runs of four folds whose models vary independently."""
    rng = np.random.default_rng(seed)
    records = []
    for run in range(runs):
        folds = np.array([0.5, 0.52, 0.55, 0.6]) + rng.normal(0, deviation, 4)
        scores = {
            "fold_scores": tuple(map(one_score, folds)),
            "concatenated": one_score(0.7 + rng.normal(0, deviation)),
        }
        records.append(changed_run(some_run("contrastive", run, 0.5, dataset="cub200"), **scores))
    summary = some_summary(settings=changed(MLRC, **changes))
    return name, MeasuredExperiment(summary, tuple(records))


@pytest.mark.parametrize(
    ("kind", "expected", "degrees"), [("single", 0.01, 156), ("separated", 0.005, 156), ("concatenated", 0.01, 39)]
)
def test_the_true_deviation_is_found(kind, expected, degrees):
    noise = measured_noise([simulated("one", 0.01)], "cub200", "map_at_r", kind)
    assert noise.degrees == degrees
    assert noise.deviation == pytest.approx(expected, rel=0.3 if kind == "concatenated" else 0.15)


def test_runs_that_train_a_network_on_the_same_whole_dataset_fit():
    fewer, more = simulated("fewer", 0.01, runs=3), simulated("more", 0.01, runs=4)
    noise = measured_noise([fewer, more, fewer], "cub200", "map_at_r", "single")
    assert (noise.name, noise.degrees) == ("more", 12)
    assert noise.setting.startswith("cub200, bn_inception from ImageNet weights")


@pytest.mark.parametrize(
    "changes",
    [
        {"dataset": {"subset": True}},
        {"dataset": {"name": "cars196"}},
        {"trunk": {"name": "efficientnet_lite0", "frozen": True}},
    ],
)
def test_parts_other_datasets_and_features_do_not_fit(changes):
    assert measured_noise([simulated("other", 0.01, **changes)], "cub200", "map_at_r", "single") is None


def test_nothing_is_said_without_repeated_runs_or_for_another_metric():
    assert measured_noise([], "cub200", "map_at_r", "single") is None
    assert measured_noise([simulated("one", 0.01, runs=1)], "cub200", "map_at_r", "single") is None
    assert measured_noise([simulated("one", 0.01)], "cub200", "nmi", "single") is None
    assert measured_noise([simulated("one", 0.01)], "cub200", "nmi", "separated") is None


def test_untrained_networks_are_left_out():
    _, one = simulated("one", 0.01)
    records = tuple(changed_run(record, **{"method": "untrained"}) for record in one.records)
    untrained = ("untrained", MeasuredExperiment(one.summary, records))
    assert measured_noise([untrained], "cub200", "map_at_r", "single") is None
