"""Experiments whose rows have conditions of their own, and files with several panels, from the file to the tables."""

import json

import pytest

from reproduce.config.strict_yaml import read_yaml
from reproduce.storage import open_store, storage_paths
from results.store.experiment_results import MeasuredExperiment
from tests.support.command_line import TINY
from tests.support.panels import PANELS, table_file

ROWS = {
    **read_yaml(TINY),
    "methods": ["contrastive", "cosface"],
    "reproductions": 2,
    "search": {"trials": 0},
    "settings": {"cosface": {"warmup.passes": 1}},
    "with": {"smaller": {"embedding_size": 8, "training.batch_size": 12}},
    "variants": [{"of": "contrastive", "key": "smaller", "title": "Smaller", "set": {}}],
    "sweeps": [{"of": "triplet", "grid": {"loss.margin": [0.1]}, "with": {"images.resize": [40]}}],
}


def test_every_row_is_trained_under_its_own_conditions_marked_and_not_tested(say, tmp_path):
    (tmp_path / "rows.yaml").write_text(json.dumps(ROWS))
    planned = say("plan", "rows.yaml", "--workers", "1", "--rate", "1000")
    assert "16 trainings, 0 in the store" in planned.out, planned.err
    answer = say("run", "rows.yaml", "--workers", "1").done()
    assert "16 trainings made" in answer.out
    assert "0 trainings made" in say("run", "rows.yaml", "--workers", "1").out
    store = open_store(storage_paths("runs/store.sqlite"))
    measured = MeasuredExperiment.from_store(store, store.latest_experiments()["rows"], trainings=True)
    by_row = {
        record.method: measured.trainings[record.fold_fingerprints[0]].spec
        for record in measured.records
        if record.run == 0
    }
    assert {row: spec.conditions.embedding_size for row, spec in by_row.items()} == {
        "contrastive": 16,
        "cosface": 16,
        "smaller": 8,
        "triplet__loss.margin_0.1__images.resize_40": 16,
    }
    assert by_row["smaller"].conditions.training.batch_size == 12
    assert by_row["triplet__loss.margin_0.1__images.resize_40"].conditions.images.resize == 40
    assert by_row["cosface"].method.warmup.passes == 1
    assert len({spec.seed for spec in by_row.values()}) == 1, "runs of all rows stay matched"
    table = say("table", "rows").out
    assert "† Smaller (8-dim): embedding_size 8, training.batch_size 12." in " ".join(table.split())
    differences = say("table", "rows", "--what", "differences", "--format", "csv").out
    assert "smaller" not in differences
    assert "contrastive,cosface" in differences


@pytest.mark.long
def test_all_panels_are_run_and_have_tables(say, tmp_path):
    path = table_file(tmp_path, PANELS, test_curves=True, metrics=["recall@2"])
    answer = say("run", path, "--workers", "1").done()
    assert "2 trainings made" in answer.out
    assert "3 trainings made" in answer.out, "the untrained trunk, one that chooses, one on all classes"
    again = say("run", path, "--workers", "1")
    assert again.out.count("0 trainings made") == 2
    both = say("table", "both", "--format", "csv").out
    one = say("table", "both/wide", "--format", "csv").out
    assert one in both
    assert both.count("Normalized Softmax") == 2 * one.count("Normalized Softmax")
    assert {path.name for path in (tmp_path / "runs" / "tables").iterdir()} >= {"both_small.csv", "both_wide.csv"}


def test_a_panel_without_images_is_left_out_with_a_message(say, tmp_path):
    path = table_file(tmp_path, {"here": {}, "there": {"dataset": {"name": "cub200"}}})
    answer = say("run", path, "--workers", "1").done()
    assert "both/there: not run, since there is no --data cub200=FOLDER" in answer.out
