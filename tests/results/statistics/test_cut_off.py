"""Trainings that the largest number of epochs ended."""

from dataclasses import replace

from reports.tables.result_notes import cut_off_notes
from results.statistics.cut_off import CutOff, cut_offs
from results.store.experiment_results import MeasuredExperiment
from tests.support.measured_experiment import measured, with_trainings
from tests.support.sample_page import measured as kept
from tests.support.sample_records import some_result, some_spec


def test_a_training_is_cut_off_if_its_last_checkpoint_is_the_best():
    spec = some_spec()
    assert some_result(spec).cut_off
    assert some_result(spec, best_iteration=1, iterations=1).cut_off
    assert not some_result(spec, best_iteration=0, iterations=0).cut_off, "no step was cut off"
    assert not some_result(spec, best_iteration=100).cut_off
    assert not some_result(spec, stopped_by="patience").cut_off
    assert not some_result(spec, stopped_by="nan").cut_off
    assert not some_result(spec, best_iteration=0, iterations=0, stopped_by="untrained").cut_off


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


def test_a_record_whose_trainings_were_left_out_keeps_their_counts():
    world = with_trainings()
    name, (spec, result) = next(iter(world.trainings.items()))
    stopped = {**world.trainings, name: (spec, result.model_copy(update={"best_iteration": 100}))}
    world = replace(world, trainings=stopped)
    kept_world = MeasuredExperiment.from_json(world.without_trainings().to_json())
    assert not kept_world.trainings
    assert sum(count.cut_off for count in cut_offs(world)) == len(world.trainings) - 1
    assert cut_offs(kept_world) == cut_offs(world)
    assert kept_world.without_trainings() == kept_world


def test_old_records_count_at_least_the_runs_that_show_it():
    """Two of four runs end at their best, and nothing is known of the trainings of the others."""
    world = measured(steps=800, iterations=800)
    first, second, *rest = (record for record in world.records if record.method == "contrastive")
    ended = [record.model_copy(update={"steps": 700}) for record in rest]
    (seen,) = cut_offs(replace(world, records=(first, second, *ended)))
    assert (seen.counted, seen.all, seen.cut_off) == (False, False, 2 * len(first.fold_fingerprints))
    (note,) = cut_off_notes(replace(world, records=(first, second, *ended)))
    assert f"at least {seen.cut_off} of {seen.trainings} trainings of Contrastive" in note
    (of_all,) = cut_offs(replace(world, records=(first, second)))
    assert (of_all.counted, of_all.all) == (True, True)


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
    counts = cut_offs(replace(quickstart, records=records, cut_off={}))
    trained = ["contrastive", "multi_similarity", "normalized_softmax", "proxy_anchor"]
    assert [count.method for count in counts if count.all and count.method != "untrained"] == trained
    assert sum(count.cut_off for count in counts if count.method != "untrained") == 48
