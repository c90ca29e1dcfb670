"""Trainings that the largest number of epochs ended."""

from dataclasses import replace

from results.records.records import CurvePoint
from results.statistics.cut_off import CutOff, cut_offs
from results.store.experiment_results import MeasuredExperiment
from tests.support.measured_experiment import measured, specs_of, with_trainings
from tests.support.sample_records import some_result, some_spec


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
    spec = some_spec()
    assert some_result(spec).cut_off
    assert not some_result(spec, best_iteration=0, iterations=0).cut_off, "no step was cut off"
    assert not some_result(spec, best_iteration=100).cut_off
    assert not some_result(spec, stopped_by="patience").cut_off
    assert not some_result(spec, stopped_by="nan").cut_off
    assert not some_result(spec, best_iteration=0, iterations=0, stopped_by="untrained").cut_off


def test_trainings_are_counted_by_method():
    world = with_trainings()
    assert cut_offs(world)[0] == CutOff("contrastive", 12, 12)
    stopped = dict(world.trainings)
    for name, (spec, _) in stopped.items():
        if spec.method.name == "triplet" or spec == specs_of(world, "cosface")[2]:
            stopped[name] = (spec, some_result(spec, best_iteration=100))
    found = cut_offs(replace(world, trainings=stopped))
    assert found == [CutOff("contrastive", 12, 12), CutOff("cosface", 11, 12)]
    assert cut_offs(measured()) == [], "of runs without trainings nothing is known"


def test_a_record_whose_trainings_were_left_out_keeps_their_counts():
    world = with_trainings()
    name, (spec, _) = next(iter(world.trainings.items()))
    stopped = {**world.trainings, name: (spec, some_result(spec, best_iteration=100))}
    world = replace(world, trainings=stopped)
    kept_world = MeasuredExperiment.from_json(world.without_trainings().to_json())
    assert not kept_world.trainings
    assert sum(count.cut_off for count in cut_offs(world)) == len(world.trainings) - 1
    assert cut_offs(kept_world) == cut_offs(world)
    assert kept_world.without_trainings() == kept_world
