"""What `bench` prints."""

import io

from rich.console import Console

from reproduce.commands import bench
from reproduce.forecast import measure_machine
from tests.support.command_line import ask


def test_every_rate_has_a_row_with_its_note():
    text = io.StringIO()
    bench.show_rates([measure_machine.MachineRate("disk", "7 MiB/s", "a file")], "cpu", Console(file=text, width=100))
    assert all(part in text.getvalue() for part in ("disk", "7 MiB/s", "a file", "plan NAME --rate"))


def test_the_command_measures_on_the_chosen_device(tmp_path, capsys, monkeypatch):
    asked = []

    def rates(where, device):
        asked.append((where.artifacts.parent, device))
        yield measure_machine.MachineRate("disk", "7 MiB/s", "a file")

    monkeypatch.setattr(measure_machine, "measure_machine", rates)
    store = tmp_path / "store.sqlite"
    answer = ask("bench", "--device", "cpu", "--store", str(store), capsys=capsys, monkeypatch=monkeypatch)
    assert answer.code == 0
    assert asked == [(tmp_path, "cpu")]
    assert "7 MiB/s" in answer.out


def test_a_device_that_is_not_there_is_refused_in_one_line(capsys, monkeypatch):
    answer = ask("bench", "--device", "tpu", capsys=capsys, monkeypatch=monkeypatch)
    assert answer.code == 2
    assert answer.err.startswith("error: device 'tpu'")
