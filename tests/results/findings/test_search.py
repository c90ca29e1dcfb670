"""What limited searches and trainings: the largest number of epochs, ends of ranges, trials within the noise."""

from dataclasses import replace
from pathlib import Path

import pytest

from results.answer.compare import gains_over
from results.findings.experiment import answer_of
from results.findings.search import equal_searches
from results.records.records import CurvePoint
from results.spec.range import Range
from results.store.experiment_results import MeasuredExperiment
from tests.support.measured_experiment import measured, specs_of, with_trainings
from tests.support.sample_records import changed_plan, some_plan, some_result, some_run, some_spec
from tests.support.sample_searches import searched


def with_scores(*scores, **changes):
    curve = tuple(
        CurvePoint(iteration=number, map_at_r=score, r_precision=None, precision_at_1=None, loss=None)
        for number, score in enumerate(scores)
    )
    last = len(scores) - 1
    return some_result(some_spec(), **{"curve": curve, "iterations": last, "best_iteration": last, **changes})


def test_a_training_is_cut_off_if_its_last_validation_is_above_the_one_before():
    assert with_scores(0.1, 0.2, 0.3).cut_off
    assert with_scores(0.1, 0.2).cut_off
    assert not with_scores(0.3, 0.2).cut_off, "the only trained epoch is below the untrained network"
    assert not with_scores(0.1, 0.2, 0.2).cut_off
    assert not with_scores(None, None).cut_off, "nothing was validated"
    given = some_spec(checkpoint_epoch=2, validation_classes=())
    assert some_result(given).cut_off, "others chose the last epoch"
    assert not some_result(given, best_iteration=100).cut_off
    spec = some_spec()
    assert some_result(spec).cut_off
    assert not some_result(spec, best_iteration=0, iterations=0).cut_off, "no step was cut off"
    assert not some_result(spec, best_iteration=100).cut_off
    assert not some_result(spec, stopped_by="patience").cut_off
    assert not some_result(spec, stopped_by="nan").cut_off
    assert not some_result(spec, best_iteration=0, iterations=0, stopped_by="untrained").cut_off


def test_trainings_are_counted_by_method():
    world = with_trainings()
    assert world.cut_offs["contrastive"] == (12, 12)
    stopped = dict(world.trainings)
    for name, result in stopped.items():
        spec = result.spec
        if spec.method.name == "triplet" or spec == specs_of(world, "cosface")[2]:
            stopped[name] = some_result(spec, best_iteration=100)
    assert replace(world, trainings=stopped).cut_offs == {
        "contrastive": (12, 12),
        "triplet": (0, 12),
        "cosface": (11, 12),
    }
    assert measured().cut_offs == {}, "of runs without trainings nothing is known"


def test_a_record_whose_trainings_were_left_out_keeps_their_counts():
    world = with_trainings()
    name, result = next(iter(world.trainings.items()))
    stopped = {**world.trainings, name: some_result(result.spec, best_iteration=100)}
    world = replace(world, trainings=stopped)
    kept_world = MeasuredExperiment.from_json(world.without_trainings().to_json())
    assert not kept_world.trainings
    assert sum(cut_off for cut_off, _ in world.cut_offs.values()) == len(world.trainings) - 1
    assert kept_world.cut_offs == world.cut_offs
    assert kept_world.without_trainings() == kept_world


RANGES = {
    "loss.margin": Range(scale="linear", low=0.0, high=1.0),
    "optimizer.lr": Range(scale="log", low=1e-6, high=1e-3),
}


def experiment(*settings):
    """A method searched as often as there are settings, with two runs of each, and one that is not searched."""
    runs = [
        some_run("triplet", run, search=search, hyperparameters=setting, fingerprint=f"{search}-{run}")
        for search, setting in enumerate(settings)
        for run in range(2)
    ]
    plan = some_plan(methods={"untrained": "U", "triplet": "T"}, ranges={"triplet": RANGES})
    return MeasuredExperiment(plan, (*runs, some_run("untrained", hyperparameters={})))


def test_searches_that_repeat_one_another_are_named():
    measured = replace(experiment({}), repeated={"triplet": (13, 24)})
    (finding,) = equal_searches(measured)
    assert finding.text == "Searches that repeat the settings of an earlier one, in trials: T 13 of 24."
    assert list(equal_searches(replace(measured, repeated={"triplet": (12, 24)}))) == []
    assert MeasuredExperiment.from_json(measured.to_json()) == measured


@pytest.mark.parametrize(("good", "outcome"), [(0.2, "Decided"), (0.11, "Not decided")])
def test_planned_looks_say_what_the_answer_cost_and_what_a_fixed_plan_would_cost(good, outcome):
    values = {"a": [[good], [good + 0.004], [good - 0.004]], "b": [[0.1], [0.104], [0.096]]}
    search = {"trials": 17, "searches": 3, "until_decided": True}
    world = searched(values, runs=1, search=search)
    (found,) = (one for one in answer_of(world).findings if "looks" in one.text)
    assert found.text == f"{outcome} after 3 searches of each method; looks were planned after 3, 4, 5, 6 and 8."
    assert found.detail.startswith("A verdict of this look has a level of 0.6 %. Over all looks the level is 5 %")
    fixed = "smallest of these differences, 10.0 points, with a probability of 80 % takes 2 searches of each."
    assert (fixed in found.detail) == (outcome == "Decided")


def test_tuning_is_compared_with_the_defaults_of_each_method():
    values = {
        "a": [[0.20, 0.20], [0.21, 0.21], [0.19, 0.19]],
        "b": [[0.15, 0.15], [0.16, 0.16], [0.11, 0.11]],
        "a_default": [[0.101, 0.099]],
        "b_default": [[0.141, 0.139]],
    }
    world = searched(values)
    runs = {"a": 6, "b": 6, "a_default": 2, "b_default": 2}
    defaults = {"a_default": "a", "b_default": "b"}
    world = replace(world, plan=changed_plan(world.plan, runs=runs, defaults=defaults))
    answer = answer_of(world)
    first, second = answer.gains
    assert (first.difference, second.difference) == pytest.approx((0.1, 0))
    assert (first.better, second.better) == ("a", None)
    assert 0 < first.smallest < 0.1
    assert "Searches whose setting is below the card's own: B 1 of 3." in [one.text for one in answer.findings]
    assert [(pair.a, pair.b) for pair in answer.pairs] == [("a", "b")]
    few = searched({**values, "a_default": [[0.1]], "b_default": [[0.1]]})
    few = replace(few, plan=changed_plan(world.plan, runs={**runs, "a_default": 1, "b_default": 1}))
    assert "What tuning gained is not known." in [one.text for one in answer_of(few).findings]


@pytest.mark.parametrize("data", ["glyphs", "handwriting"])
def test_what_tuning_bought_on_the_kept_records_is_what_the_docs_say(data):
    tuned, default = (MeasuredExperiment.kept(f"{name}_{data}") for name in ("search_variance", "defaults"))
    assert tuned.plan.experiment.conditions == default.plan.experiment.conditions
    page = (Path(__file__).parents[3] / "docs" / "findings.md").read_text(encoding="utf-8")
    rows = {key: key for key in default.plan.titles}
    found = gains_over(answer_of(tuned).values, answer_of(default).values, rows)
    assert len(found) == 8
    for gain in found:
        star, units = "*" if gain.better else "", gain.of_a.units
        below = f"{sum(one < gain.of_b.mean for one in units)} of {len(units)}"
        assert f"| {100 * gain.difference:+.1f} ± {100 * gain.half_width:.1f}{star} | {below} |" in page


def test_settings_of_shorter_trainings_than_the_tested_ones_are_named():
    """The quickstart's trials end at 200 steps, and its tested runs go on."""

    def named(record):
        findings = answer_of(MeasuredExperiment.kept(record)).findings
        return [(one.level, one.text) for one in findings if "were found in" in one.text]

    text = "The settings were found in trainings of at most 200 steps; the tested runs go on."
    assert named("quickstart") == [("limit", text)]
    assert named("reality_check_glyphs") == []
