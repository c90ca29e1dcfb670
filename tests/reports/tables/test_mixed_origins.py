"""Numbers that stand together but were not made alike: every table and the page say the same about them."""

from dataclasses import replace

import pytest

from reports.page.sections.warnings import warnings_of
from reports.published.join import join
from reports.tables.costs import costs
from reports.tables.differences import differences
from reports.tables.mixed_origins import mixed_origins
from reports.tables.peeking import peeking_table
from reports.tables.result_table import table_of
from reports.tables.uncertainty import uncertainty_table
from results.published.tables import published_table
from tests.support.measured_experiment import measured, with_trainings
from tests.support.page_material import A, B, material, replace_run, said, values
from tests.support.published_world import MLRC, experiment, runs_of
from tests.support.sample_records import some_provenance

OTHERS = {
    "device": ({"device": "NVIDIA H100"}, "different devices (NVIDIA H100 and cpu)"),
    "threads": ({"threads": 16}, "different numbers of threads (1 and 16)"),
    "system": ({"host_system": "Darwin arm64"}, "different systems (Darwin arm64 and Linux x86_64)"),
    "torch": ({"versions": {"torch": "2.12.1"}}, "different versions of torch (2.12.1 and 2.13.0)"),
    "pillow": ({"versions": {"torch": "2.13.0", "pillow": "9"}}, "different versions of pillow (13 and 9)"),
    "code": ({"commit": "1" * 40}, "2 commits of the code (0000000 and 1111111)"),
    "dirty": ({"tree_dirty": True}, "uncommitted changes"),
}
HERE = {"versions": {"torch": "2.13.0", "pillow": "13"}}


def made(**changes):
    return some_provenance().model_copy(update={**HERE, **changes})


def two_machines(changes):
    runs = values(a=A, b=B)
    own = {"a": made(), "b": made(**changes)}
    return material({key: [replace_run(run, provenance=own[key]) for run in each] for key, each in runs.items()})


@pytest.mark.parametrize(("changes", "words"), OTHERS.values(), ids=OTHERS)
def test_page_and_tables_give_the_same_warnings(changes, words):
    page = two_machines(changes)
    notes = mixed_origins(page.measured)
    assert sum(words in note for note in notes) == len(notes) == 1
    shown = [one.sentence for one in warnings_of(page, unfinished=False)]
    for draw in (table_of, differences, costs, uncertainty_table, peeking_table):
        assert set(notes) <= set(draw(page.measured).notes), draw
    assert set(notes) <= set(shown)


def test_runs_that_were_made_alike_get_no_warning():
    assert mixed_origins(two_machines({}).measured) == []
    assert mixed_origins(two_machines({"finished_at": "2030-01-01T00:00:00+00:00", "cpu_count": 64}).measured) == []


def test_threads_and_processors_of_a_gpu_run_do_not_count():
    page = two_machines({"device": "cuda", "threads": 8, "processor": "other", "host_system": "other"})
    (note,) = mixed_origins(page.measured)
    assert "devices" in note


def test_trainings_are_compared_among_themselves():
    world = with_trainings()
    assert mixed_origins(world) == []
    on_gpu = made(device="cuda", versions={})

    def trained_on_gpu(fingerprints):
        moved = {
            key: (spec, result.model_copy(update={"provenance": on_gpu}) if key in fingerprints else result)
            for key, (spec, result) in world.trainings.items()
        }
        return replace(world, trainings=moved)

    assert mixed_origins(trained_on_gpu(set(world.trainings))) == [], "all trained on one device, all tested on another"
    (note,) = mixed_origins(trained_on_gpu({next(iter(world.trainings))}))
    assert "different devices (cpu and cuda)" in note


def test_a_published_table_warns_of_experiments_that_differ():
    settings = {**MLRC, "training": {**MLRC.get("training", {}), "precision": "amp"}}
    filled = [
        experiment("mlrc_cub200", MLRC, runs_of("contrastive", [0.59, 0.6])),
        experiment("faster", settings, runs_of("triplet", [0.56, 0.57])),
    ]
    notes = join(published_table("mlrc_cub200"), filled).notes
    assert any("different precision (mixed precision and float32)" in note for note in notes)
    assert not any("precision" in note for note in join(published_table("mlrc_cub200"), filled[:1]).notes)


def in_precisions(*precisions, on):
    """An experiment for each precision; runs on a GPU have its settings of rounding."""
    kinds = {"float32": "ieee", "tf32": "tf32", "amp": "tf32"}
    return [
        experiment(
            precision,
            {**MLRC, "training": {**MLRC.get("training", {}), "precision": precision}},
            [
                replace_run(run, provenance=made(device=on, math={} if on == "cpu" else {"products": kinds[precision]}))
                for run in runs_of("triplet", [0.56, 0.57])
            ],
        ).measured
        for precision in precisions
    ]


def test_precision_is_told_once_and_other_settings_of_rounding_where_it_is_equal():
    gpu = "NVIDIA H100"
    (note,) = mixed_origins(*in_precisions("float32", "tf32", on=gpu))
    assert "different precision (float32 and TF32)" in note
    alike = in_precisions("float32", "float32", on=gpu)
    assert mixed_origins(*alike) == []
    forced = [replace_run(run, provenance=made(device=gpu, math={"products": "tf32"})) for run in alike[1].records]
    (note,) = mixed_origins(alike[0], replace(alike[1], records=tuple(forced)))
    assert "different settings of products (ieee and tf32)" in note


def test_on_a_cpu_tf32_does_not_round_differently():
    assert mixed_origins(*in_precisions("float32", "tf32", on="cpu")) == []
    assert mixed_origins(*in_precisions("float32", "amp", on="cpu")) != []


def test_a_warning_is_said_once_on_the_page():
    found = said(warnings_of(two_machines({"device": "cuda"}), unfinished=False))
    assert sum("different devices" in sentence for sentence in found) == 1
    assert mixed_origins(measured()) == []
