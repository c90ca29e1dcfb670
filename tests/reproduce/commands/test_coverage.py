"""`reproduce coverage` on the command line."""

import json

import pytest

from tests.support.command_line import ask


@pytest.fixture
def say(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: ask("coverage", *arguments, capsys=capsys, monkeypatch=monkeypatch)


def test_counts_of_all_tables_end_with_their_sum(say):
    answer = say("--json")
    rows = json.loads(answer.out)
    counts = say().out
    assert "mlrc_cars196" in counts
    total = next(line for line in counts.splitlines() if line.startswith("│ all"))
    numbers = [int(cell) for cell in total.split("│")[2:-1]]
    assert sum(numbers) == len(rows)
    assert numbers[0] == sum(row["status"] == "runnable" for row in rows)


def test_the_counts_are_followed_by_the_reason_for_every_row_that_is_not_runnable(say):
    answer = say("--json")
    reasons = {row["detail"] for row in json.loads(answer.out) if row["status"] == "not runnable"}
    below = say().out.partition("Not runnable:")[2]
    assert reasons
    assert all(reason in below for reason in reasons)


def test_one_table_shows_our_readings(say):
    text = " ".join(say("mlrc_cub200").out.replace("│", " ").split())
    assert "our reading: the leading principal components of the test images" in text


def test_one_table_names_files_and_sources(say):
    text = say("proxy_isa_table1").out
    assert "proxy_isa_table1/cub200" in text
    assert "Qian et al., ICCV 2019" in text


def test_an_unknown_table_is_one_line(say):
    answer = say("table9")
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert "no published table 'table9'; there are mlrc_cub200" in answer.err
