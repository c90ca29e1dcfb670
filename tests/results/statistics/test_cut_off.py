"""Trainings that the largest number of epochs ended."""

from dataclasses import replace

from results.statistics.cut_off import CutOff, cut_offs, is_cut_off
from tests.support.measured_experiment import measured, with_trainings
from tests.support.sample_page import measured as kept
from tests.support.sample_records import some_result, some_spec


def test_a_training_is_cut_off_if_its_last_checkpoint_is_the_best():
    spec = some_spec()
    assert is_cut_off(some_result(spec))
    assert not is_cut_off(some_result(spec, best_iteration=100))
    assert not is_cut_off(some_result(spec, stopped_by="patience"))
    assert not is_cut_off(some_result(spec, stopped_by="nan"))
    assert not is_cut_off(some_result(spec, best_iteration=0, iterations=0, stopped_by="untrained"))


def test_trainings_are_counted_by_method():
    world = with_trainings()
    assert cut_offs(world)[0] == CutOff("contrastive", 12, 12)
    stopped = dict(world.trainings)
    for name, (spec, result) in stopped.items():
        if name.startswith("triplet") or name == "cosface-0-2":
            stopped[name] = (spec, result.model_copy(update={"best_iteration": 100}))
    found = cut_offs(replace(world, trainings=stopped))
    assert found == [CutOff("contrastive", 12, 12), CutOff("cosface", 11, 12)]
    assert [count.all for count in found] == [True, False]


def test_records_alone_show_runs_whose_trainings_were_all_cut_off():
    assert cut_offs(measured()) == []
    assert len(cut_offs(measured(steps=800, iterations=800))) == 3
    assert cut_offs(measured(steps=700, iterations=800)) == []
    assert cut_offs(measured(steps=0, iterations=0)) == []


def test_records_without_iterations_take_the_longest_training_from_the_settings():
    """The longest training of the quickstart has 12 epochs of 40 iterations, on 4 folds."""
    quickstart = kept()
    records = tuple(
        record.model_copy(update={"steps": 4 * 12 * 40, "iterations": None}) for record in quickstart.records
    )
    counts = cut_offs(replace(quickstart, records=records))
    trained = ["contrastive", "multi_similarity", "normalized_softmax", "proxy_anchor"]
    assert [count.method for count in counts if count.all and count.method != "untrained"] == trained
    assert sum(count.cut_off for count in counts if count.method != "untrained") == 48
