"""The rates of a machine, measured at tiny sizes: that each has a number, not how large it is."""

import pytest

from reproduce.forecast.measure_machine import BenchSizes, augmentation_rate, disk_rate, measure_machine, retrieval_rate
from reproduce.storage import storage_paths

TINY = BenchSizes(experiments=("quickstart",), seconds=0.0, queries=120, dimensions=8, mebibytes=1)


def number(rate):
    return float(rate.rate.split()[0])


def test_all_parts_of_a_run_are_measured(tmp_path):
    rates = list(measure_machine(storage_paths(str(tmp_path / "store.sqlite"), None, None, None), "cpu", TINY))
    assert [rate.what for rate in rates] == [
        "training, small_conv at 32 pixels",
        "augmentation",
        "retrieval, 120 x 8",
        "disk",
    ]
    assert all(number(rate) > 0 for rate in rates)
    assert rates[0].rate.endswith("steps/s")
    assert not (tmp_path / "store.sqlite").exists()


@pytest.mark.parametrize("measure", [augmentation_rate, retrieval_rate])
def test_a_rate_is_measured_at_least_once(measure):
    assert number(measure(TINY)) > 0


def test_the_file_of_the_disk_rate_is_removed(tmp_path):
    assert number(disk_rate(tmp_path, TINY)) > 0
    assert list(tmp_path.iterdir()) == []
