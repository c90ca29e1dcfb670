"""The typical length of a training: from the store first, then from measured experiments, then assumed."""

import json
import math
from dataclasses import replace

import pytest

from reproduce.forecast import typical_lengths
from reproduce.forecast.typical_lengths import MeasuredLength, typical_length
from results.records.frames import Timing
from results.spec.trunk_spec import TrunkSpec
from results.store.experiment_results import MeasuredExperiment
from tests.support.experiment_files import load_experiment
from tests.support.small_problem import TRIPLET, small_problem


@pytest.fixture
def problem(tmp_path):
    return small_problem(tmp_path)


def timing(problem, iterations, **changes):
    return Timing(problem.fold_specs(TRIPLET, "search", 0)[0].model_copy(update=changes), iterations, 1.0)


def test_the_stores_trainings_count_first(problem):
    length = typical_length(problem, 10, 100, [timing(problem, 20), timing(problem, 60)])
    assert length.share == pytest.approx(0.4)
    assert length.source == "the mean of 2 trainings in the store"


def test_other_settings_and_final_trainings_do_not_count(problem):
    other = problem.training.model_copy(update={"patience": 77})
    timings = [timing(problem, 20, training=other), timing(problem, 20, dataset="birds"), timing(problem, 0)]
    timings.append(timing(problem, 20, checkpoint_epoch=3))
    assert "in the store" not in typical_length(problem, 10, 100, timings).source


def mean_length(name):
    """Mean iterations of a kept record's trainings, those of the searches included."""
    kept = MeasuredExperiment.kept(name)
    of_runs = [run.iterations / 4 for run in kept.records if run.iterations]
    of_trials = [search.iterations for search in kept.searches.values() for _ in search.scores]
    assert len(of_trials) == kept.summary.trials * len(kept.searches)
    return sum(of_runs + of_trials) / len(of_runs + of_trials)


def test_measured_experiments_with_the_same_settings_come_next(problem):
    kept = MeasuredExperiment.kept("quickstart")
    assert {run.iterations / 4 for run in kept.records if run.iterations} == {480}, "some of the trials stopped early"
    assert sum(len(search.scores) for search in kept.searches.values()) == 4 * 6
    quickstart = load_experiment("quickstart", {}).training
    length = typical_length(replace(problem, training=quickstart), 160, 480, [])
    assert length.source == "the mean of the trainings in results/measured/quickstart.json"
    assert length.share == pytest.approx(mean_length("quickstart") / 480)


def test_other_settings_of_a_measured_trunk_give_the_place_between_shortest_and_longest(problem):
    length = typical_length(problem, 10, 1000, [])
    assert (
        length.source
        == "as far from the shortest to the longest as in results/measured/all_methods_glyphs.json, with this trunk"
    )
    place = math.log(mean_length("all_methods_glyphs") / 200) / math.log(400 / 200)
    assert length.share == pytest.approx(10 * (1000 / 10) ** place / 1000)
    half = MeasuredLength("half", load_experiment("quickstart", {}), math.sqrt(160 * 480))
    assert half.place == pytest.approx(0.5)


def test_a_frozen_trunk_has_other_lengths_than_one_that_trains(problem):
    quickstart = load_experiment("quickstart", {}).training
    frozen = replace(problem, trunk=TrunkSpec(name="small_conv", weights="mine", frozen=True), training=quickstart)
    fine_tuned = timing(frozen, 20, trunk=TrunkSpec(name="small_conv", weights="mine"))
    assert "assumed" in typical_length(frozen, 160, 480, [fine_tuned]).source


def test_else_the_middle_is_assumed_and_said_so(problem):
    unknown = replace(problem, trunk=TrunkSpec(name="bn_inception", weights="random"))
    length = typical_length(unknown, 10, 1000, [])
    assert length.share == pytest.approx(math.sqrt(10 * 1000) / 1000)
    assert length.source.startswith("assumed")


def test_without_early_stopping_there_is_nothing_to_assume(problem):
    assert typical_length(problem, 100, 100, []).share == 1.0
    assert typical_length(problem, 0, 0, []).share == 1.0


def test_the_searches_of_a_measured_experiment_count_too(tmp_path, monkeypatch):
    record = json.loads((typical_lengths.FOLDER / "quickstart.json").read_text(encoding="utf-8"))
    folds = len(record["records"][0]["fold_fingerprints"])
    record["records"] = [{**record["records"][0], "iterations": 200 * folds}] * 3
    record["searches"] = [
        {"method": "contrastive", "search": 0, "trial_scores": [0.1, 0.2], "iterations": 400.0},
        {"method": "triplet", "search": 0, "trial_scores": [0.1, 0.2]},
    ]
    (tmp_path / "two.json").write_text(json.dumps(record), encoding="utf-8")
    monkeypatch.setattr(typical_lengths, "FOLDER", tmp_path)
    (length,) = typical_lengths._measured_lengths.__wrapped__()
    # Three runs of 200 iterations and two trials of 400; the other search does not say how long its trainings are.
    assert length.iterations == pytest.approx((3 * 200 + 2 * 400) / 5)
