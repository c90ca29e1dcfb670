"""The rows and the record of the benchmark: what a bar means, and what is kept when one subject is measured again."""

import pytest

from tests.benchmarks.bench_record import BenchRecord, BenchRow, seconds_in_turn, write_page


@pytest.mark.parametrize(
    ("row", "met", "cells"),
    [
        ({"peer": (4.0, 4.0, 4.0), "bar": 2}, True, "2.00 s | 4.00 s | 2 (1.33 to 4) | at least 2, met |"),
        ({"peer": (4.0, 4.0, 4.0), "bar": 2.5}, False, "2 (1.33 to 4) | at least 2.5, missed |"),
        ({"peer": (4.0, 4.0, 4.0)}, None, "2 (1.33 to 4) | - |"),
        ({"bar": 1.5}, False, "2.00 s | - | - | at most 1.5 s, missed |"),
        ({"bar": 2, "unit": "MiB"}, True, "2 MiB | - | - | at most 2 MiB, met |"),
    ],
)
def test_a_bar_limits_the_suite_or_how_many_times_as_fast_it_is(row, met, cells):
    given = BenchRow(name="a / b", ours=(1.0, 2.0, 3.0), **row)
    assert given.met is met
    assert given.as_markdown().endswith(cells)


def test_both_sides_are_called_equally_often_in_turn():
    calls = []
    ours, peer = seconds_in_turn(lambda: calls.append("o"), lambda: calls.append("p"), rounds=2, repeats=3)
    assert (len(ours), len(peer)) == (2, 2)
    assert "".join(calls) in ("pppooooooppppppooo", "oooppppppooooooppp")


def test_a_subject_that_is_measured_again_replaces_only_itself(tmp_path):
    first, again = (BenchRow(name="a", ours=(seconds,)) for seconds in (1.0, 2.0))
    record = BenchRecord().with_rows("x", [first], 1).with_rows("y", [first], 1).with_rows("y", [again], 2)
    assert [record.subjects[name].rows for name in ("x", "y")] == [(first,), (again,)]
    record.save(tmp_path / "record.json")
    assert BenchRecord.load(tmp_path / "record.json") == record


def test_only_the_table_of_the_page_is_renewed(tmp_path):
    page = tmp_path / "speed.md"
    page.write_text("before\n<!-- table: bench -->\nold\n<!-- end of table -->\nafter\n")
    record = BenchRecord().with_rows("x", [BenchRow(name="a", ours=(1.0,), bar=2)], 1)
    write_page(record, page)
    assert page.read_text() == (
        f"before\n<!-- table: bench -->\n\n{record.as_markdown()}\n\n<!-- end of table -->\nafter\n"
    )
