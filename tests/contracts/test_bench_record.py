"""The rows and the record of the benchmark: what a bar means, and what is kept when one subject is measured again."""

import sys

import pytest

from tests.benchmarks.__main__ import parsed
from tests.benchmarks.bench_record import BenchRecord, as_markdown, cells, measured_subject, write_page
from tests.benchmarks.bench_rows import BenchRow, seconds_in_turn


def row(bar, ours=(1.0, 2.0, 3.0), peer=(4.0, 4.0, 4.0), **more):
    return BenchRow("a / b", list(ours), list(peer), bar, "equal sums", **more)


@pytest.mark.parametrize(
    ("bar", "kind", "limit", "met"),
    [
        ("at most 0.4", "ours / peer", 0.4, False),
        ("at most 0.5 of the other", "ours / peer", 0.5, True),
        ("at least 2x", "peer / ours", 2.0, True),
        ("at least 2.5x PML", "peer / ours", 2.5, False),
        ("at most 1.5 s", "ours", 1.5, False),
        ("at most 2 s", "ours", 2.0, True),
        ("at most 1,000", "ours / peer", 1000.0, True),
    ],
)
def test_a_bar_says_what_it_limits(bar, kind, limit, met):
    given = row(bar)
    assert (given.kind, given.limit, given.met) == (kind, limit, met)


def test_ratios_are_taken_within_rounds():
    assert row("at most 1").ratios == [0.25, 0.5, 0.75]
    assert row("at least 1").ratios == [4.0, 2.0, 4 / 3]


def test_both_sides_are_called_equally_often_in_turn():
    calls = []
    ours, peer = seconds_in_turn(lambda: calls.append("o"), lambda: calls.append("p"), rounds=2, repeats=3)
    assert (len(ours), len(peer)) == (2, 2)
    assert "".join(calls) in ("pppooooooppppppooo", "oooppppppooooooppp")


def test_a_subject_that_is_measured_again_replaces_only_itself(tmp_path):
    first, second = (measured_subject(name, 2.0, [row("at most 1")], threads=1) for name in ("x", "y"))
    record = BenchRecord().with_subject(second, ["x", "y"]).with_subject(first, ["x", "y"])
    again = measured_subject("y", 5.0, [row("at least 1")], threads=1)
    record = record.with_subject(again, ["x", "y"])
    assert record.subjects == (first, again)
    assert (record.took("x"), record.took("y"), record.took("z")) == (2.0, 5.0, None)
    record.save(tmp_path / "record.json")
    assert BenchRecord.load(tmp_path / "record.json") == record


def test_only_the_tables_of_the_page_are_renewed(tmp_path):
    page = tmp_path / "speed.md"
    page.write_text("before\n<!-- table: bench -->\nold\n<!-- end of table -->\nafter\n")
    record = BenchRecord().with_subject(measured_subject("x", 2.0, [row("at most 2 s")], threads=1), ["x"])
    write_page(record, page)
    text = page.read_text()
    assert text.startswith("before\n<!-- table: bench -->\n\n### X\n")
    assert text.endswith("\n<!-- end of table -->\nafter\n")
    assert as_markdown(record) in text
    assert "| a / b | 2.00 s | 4.00 s | ours / peer: 0.50 (0.25 to 0.75) | at most 2 s | yes |" in text
    assert "3 rounds on " in text


@pytest.mark.parametrize(
    ("lengths", "words"), [((1,), "1 round"), ((5, 5), "5 rounds"), ((5, 2, 20, 0), "2 to 20 rounds")]
)
def test_the_rounds_are_those_of_the_rows(lengths, words):
    rows = [row("at most 2", [1.0] * length, [1.0] * length) for length in lengths]
    assert measured_subject("x", 2.0, rows, threads=1).rounds == words


def test_rows_without_a_peer_and_without_a_measurement_have_cells():
    alone = BenchRow.of("peak memory", [900.0], [float("nan")], "at most 2048 MiB", "no peer", "MiB")
    assert cells(alone)[1:] == ("900 MiB", "-", "-", "at most 2048 MiB", "yes")
    assert cells(row("at least 2", (), ()))[1:] == ("-", "-", "-", "at least 2 (peer / ours)", "not measured")


@pytest.mark.parametrize("option", ["--page", "--images"])
def test_what_cannot_be_found_is_said_before_the_first_measurement(option, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", option, str(tmp_path / "missing")])
    with pytest.raises(SystemExit):
        parsed()
    assert f"{option}: there is no" in capsys.readouterr().err
