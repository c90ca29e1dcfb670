"""The deviation of measured runs, and which setting is nearest."""

import numpy as np
import pytest

from results.records.records import Scores
from results.statistics.measured_noise import kept_measurements, nearest_noise
from results.store.experiment_results import MeasuredExperiment
from tests.support.published_world import MLRC, changed
from tests.support.sample_records import some_run, some_summary


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
            "separated": one_score(folds.mean()),
            "concatenated": one_score(0.7 + rng.normal(0, deviation)),
        }
        records.append(some_run("contrastive", run, 0.5, dataset="cub200").model_copy(update=scores))
    summary = some_summary(settings=changed(MLRC, **changes))
    return name, MeasuredExperiment(summary, tuple(records))


@pytest.mark.parametrize(
    ("kind", "expected", "degrees"), [("single", 0.01, 156), ("separated", 0.005, 156), ("concatenated", 0.01, 39)]
)
def test_the_true_deviation_is_found(kind, expected, degrees):
    noise = nearest_noise([simulated("one", 0.01)], "cub200", "map_at_r", kind)
    assert noise.degrees == degrees
    assert noise.deviation == pytest.approx(expected, rel=0.3 if kind == "concatenated" else 0.15)


def test_the_nearest_setting_is_taken():
    whole = simulated("whole", 0.01, runs=3)
    part = simulated("part", 0.02, runs=5, dataset={"subset": True})
    photographs = simulated("photographs", 0.03, dataset={"name": "cars196"})
    frozen = simulated("frozen", 0.001, trunk={"name": "efficientnet_lite0", "frozen": True})
    random = simulated("random", 0.04, runs=60, dataset={"name": "glyphs"}, trunk={"weights": "random"})
    for candidates, expected in (
        ([random, photographs, part, whole], "whole"),
        ([random, photographs, part], "part"),
        ([random, photographs], "photographs"),
        ([random], "random"),
        ([frozen, random], "random"),
        ([frozen], "frozen"),
        ([simulated("fewer", 0.01, runs=3), simulated("more", 0.01, runs=4)], "more"),
    ):
        noise = nearest_noise(candidates, "cub200", "map_at_r", "single")
        assert noise.name == expected
        assert (" frozen efficientnet_lite0 from ImageNet weights" in noise.setting) == (expected == "frozen")


def test_nothing_is_said_without_repeated_runs_or_for_another_metric():
    assert nearest_noise([], "cub200", "map_at_r", "single") is None
    assert nearest_noise([simulated("one", 0.01, runs=1)], "cub200", "map_at_r", "single") is None
    assert nearest_noise([simulated("one", 0.01)], "cub200", "nmi", "single") is None
    assert nearest_noise([simulated("one", 0.01)], "cub200", "nmi", "separated") is None


def test_untrained_networks_are_left_out():
    _, one = simulated("one", 0.01)
    records = tuple(record.model_copy(update={"method": "untrained"}) for record in one.records)
    untrained = ("untrained", MeasuredExperiment(one.summary, records))
    assert nearest_noise([untrained], "cub200", "map_at_r", "single") is None


def test_the_kept_records_have_a_deviation_for_photographs_and_for_glyphs():
    cub = nearest_noise(kept_measurements(), "cub200", "precision_at_1", "single")
    assert cub.name == "results/measured/cub200_small_subset.json"
    assert cub.setting.startswith("a part of cub200, efficientnet_lite0 from ImageNet weights")
    assert nearest_noise(kept_measurements(), "sop", "precision_at_1", "single") == cub
    assert nearest_noise(kept_measurements(), "glyphs", "map_at_r", "separated").dataset == "glyphs"
