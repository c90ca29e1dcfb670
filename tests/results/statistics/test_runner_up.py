"""Searches whose two best trials cannot be told apart, also on simulated searches of known truth."""

from dataclasses import replace

import numpy as np
import pytest

from results.records.trials import SearchTrials
from results.statistics.cut_off import RunnerUp, runners_up, validation_scores
from tests.support.measured_experiment import VALUES, specs_of, with_trainings


def test_the_noise_is_that_of_the_reproductions():
    scores = {("contrastive", 0): (0.1, 0.16, 0.155), ("triplet", 0): (0.3, 0.1), ("cosface", 0): (0.2,)}
    searches = {key: SearchTrials(of_search) for key, of_search in scores.items()}
    contrastive, triplet = runners_up(replace(with_trainings(), searches=searches))
    assert (contrastive.best, contrastive.second, contrastive.runs) == (0.16, 0.155, 3)
    assert contrastive.noise == pytest.approx(np.std(VALUES["contrastive"], ddof=1) / 4)
    assert (contrastive.within_noise, triplet.within_noise) == (True, False)
    assert contrastive.chance_of_another_order > 0.3 > 0.05 > triplet.chance_of_another_order


def test_a_single_reproduction_shows_no_noise():
    world = with_trainings()
    one = replace(world, records=world.records[:1], searches={("contrastive", 0): SearchTrials((0.1, 0.16))})
    assert runners_up(one) == []


def test_runs_without_validation_scores_are_left_out():
    world = with_trainings()
    trainings = dict(world.trainings)
    del trainings[specs_of(world, "triplet", 1)[3].fingerprint]
    runs = [run for run in world.records if run.method == "triplet"]
    assert len(validation_scores(world, runs)) == 3
    assert len(validation_scores(replace(world, trainings=trainings), runs)) == 2


@pytest.mark.parametrize("lead", [0.0, 0.5, 1.0, 2.0])
def test_the_chance_of_another_order_is_that_of_repetitions(lead):
    """Two settings with a known true lead, in units of the noise."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(lead, 1, 20_000), rng.normal(0, 1, 20_000)
    pair = RunnerUp("a", 0, best=lead, second=0.0, noise=1.0, runs=1000)
    assert pair.chance_of_another_order == pytest.approx(float(np.mean(second > first)), abs=0.015)


def test_without_noise_only_equal_scores_can_change_places():
    assert RunnerUp("a", 0, 0.5, 0.5, 0.0, 3).chance_of_another_order == 0.5
    assert RunnerUp("a", 0, 0.5, 0.4, 0.0, 3).chance_of_another_order == 0.0
    assert not RunnerUp("a", 0, 0.5, 0.4, 0.0, 3).within_noise
