"""Files with several panels on the command line, and plans without images."""

import pytest

from tests.support.command_line import ask
from tests.support.panels import PANELS, table_file


@pytest.fixture
def say(capsys, monkeypatch, tmp_path, same_threads_afterwards):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: ask(*arguments, capsys=capsys, monkeypatch=monkeypatch)


@pytest.mark.long
def test_all_panels_are_run_and_have_tables(say, tmp_path):
    path = table_file(tmp_path, PANELS, test_curves=True, metrics=["recall@2"])
    answer = say("run", path, "--workers", "1")
    assert answer.code == 0, answer.err
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
    answer = say("run", path, "--workers", "1")
    assert answer.code == 0, answer.err
    assert "both/there: not run, since there is no --data cub200=FOLDER" in answer.out
