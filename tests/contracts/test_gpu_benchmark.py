"""The parts of `make bench-gpu` work on a CPU with tiny sizes, so that their first use on a GPU can succeed."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.benchmarks import gpu, gpu_parts

CPU = gpu_parts.Setup(torch.device("cpu"), True)


def measured(part: str, folder: Path) -> dict:
    record = gpu.Record(folder / "out.json", smoke=True)
    gpu.measure_pieces(part, CPU, record)
    return json.loads(record.path.read_text())["parts"][part]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_without_cuda_one_line_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert gpu.main(["--out", str(tmp_path / "out.json")]) == 2
    assert capsys.readouterr().out == "bench-gpu: this machine has no CUDA, so nothing was measured\n"
    assert not (tmp_path / "out.json").exists()


def test_a_smoke_test_does_not_replace_the_record(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert gpu.main(["--smoke"]) == 2
    assert "--smoke needs --out" in capsys.readouterr().out
    gpu.Record(tmp_path / "out.json", smoke=False).write()
    assert gpu.main(["--smoke", "--out", str(tmp_path / "out.json")]) == 2
    assert "has numbers of a GPU; name another file" in capsys.readouterr().out


@pytest.mark.usefixtures("same_threads_afterwards")
@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("steps", ["small_conv, batch 8, float32", "small_conv, batch 8, tf32", "small_conv, batch 8, amp"]),
        ("crops", ["host", "device, images kept there", "device, images sent"]),
    ],
)
def test_rates_are_measured(part: str, names: list[str], tmp_path: Path) -> None:
    rates = measured(part, tmp_path)
    assert list(rates) == names
    assert all(0 < rate["lowest"] <= rate["median"] <= rate["highest"] for rate in rates.values())


@pytest.mark.usefixtures("same_threads_afterwards")
def test_retrieval_is_measured(tmp_path: Path) -> None:
    (numbers,) = measured("retrieval", tmp_path).values()
    assert len(numbers["seconds_each"]) == 3


def test_the_outcome_of_each_test_is_noted_and_the_reason_of_a_failure(tmp_path: Path) -> None:
    tests = tmp_path / "test_two.py"
    mark = "import pytest\n@pytest.mark.gpu\n"
    tests.write_text(
        f"{mark}def test_a(): pass\n{mark}def test_b(): assert 1 == 2, 'a reason'\ndef test_not_gpu(): 0 / 0\n"
    )
    numbers: dict = {}
    with pytest.raises(RuntimeError, match=r"pytest ended with 1: 1 failed, 1 passed, 1 deselected"):
        gpu_parts.run_tests(str(tests), numbers.update)
    assert numbers["outcomes"] == {"test_a": "passed", "test_b": "failed"}
    assert len(numbers["failures"]) == 1
    assert "a reason" in numbers["failures"][0]


@pytest.mark.usefixtures("same_threads_afterwards")
def test_a_whole_loop_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pieces = gpu_parts.whole_loop(CPU)
    name = "small_conv, float32, crops faithful"
    monkeypatch.setitem(gpu.PARTS, "loop", lambda setup: {name: pieces[name]})
    numbers = measured("loop", tmp_path)[name]
    assert numbers["epochs"] == 4
    assert numbers["steps_per_second"] > 0
    assert numbers["validated_images"] == 48


def test_the_plan_has_what_was_asked_for() -> None:
    setup = gpu_parts.Setup(torch.device("cuda"), False)
    names = {part: list(pieces(setup)) for part, pieces in gpu.PARTS.items()}
    assert len(names["steps"]) == 2 * 2 * 3
    assert "bn_inception, batch 32, tf32" in names["steps"]
    assert len(names["side_by_side"]) == 2 * 2 * len(names["steps"])
    assert "resnet50, batch 180, amp, 4 processes with MPS" in names["side_by_side"]
    assert names["retrieval"] == ["60,502 x 512"]
    assert "tests/contracts/test_losses.py" in names["tests"]


@pytest.mark.usefixtures("same_threads_afterwards")
def test_a_piece_that_fails_costs_only_itself_and_finished_ones_are_not_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[str] = []

    def failing(note: gpu_parts.Note) -> None:
        calls.append("bad")
        note({"so_far": 1})
        raise ValueError("why\nmore")

    def left_out(note: gpu_parts.Note) -> None:
        raise gpu_parts.LeftOutError("not here")

    def good(note: gpu_parts.Note) -> None:
        calls.append("good")
        note({"value": 2})

    monkeypatch.setitem(gpu.PARTS, "steps", lambda setup: {"bad": failing, "none": left_out, "good": good})
    out = tmp_path / "out.json"

    def in_this_process(command: list[str], path: Path, until: float) -> tuple[int, str]:
        try:
            gpu.measure_pieces("steps", CPU, gpu.Record(path, smoke=True))
        except SystemExit as exit:
            return int(exit.code or 0), ""
        return 0, ""

    monkeypatch.setattr(gpu, "watched", in_this_process)
    said = gpu.run_part("steps", out, smoke=True)
    assert "2 pieces done, 1 failed" in said
    assert "failed: bad: ValueError: why" in said
    content = json.loads(out.read_text())
    found = content["parts"]["steps"]
    assert (found["bad"]["so_far"], found["bad"]["failed"]) == (1, "ValueError: why")
    assert found["none"]["left_out"] == "not here"
    assert found["good"]["value"] == 2
    assert content["origins"][found["good"]["origin"]]["device"] == "cpu"
    assert calls == ["bad", "good"]
    # The next command tries only what failed.
    gpu.run_part("steps", out, smoke=True)
    assert calls == ["bad", "good", "bad"]


def test_a_piece_whose_process_dies_is_named_and_one_that_was_cut_off_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    ends = iter([("first", (-11, "exit status -11")), ("second", (-9, gpu.TOO_LONG))])

    def dies(command: list[str], path: Path, until: float) -> tuple[int, str]:
        name, end = next(ends)
        record = gpu.Record(path, smoke=True)
        record.pieces("steps")[name] = {"begun": True}
        record.write()
        return end

    monkeypatch.setattr(gpu, "watched", dies)
    said = gpu.run_part("steps", out, smoke=True)
    assert "the rest is left for the next command" in said
    assert json.loads(out.read_text())["parts"]["steps"] == {"first": {"failed": "exit status -11"}}
    monkeypatch.setattr(gpu, "watched", lambda *_: (1, "ModuleNotFoundError: No module named 'optuna'"))
    assert gpu.run_part("crops", out, smoke=True).startswith("crops: it could not begin: ModuleNotFoundError")


def test_a_command_that_takes_too_long_or_writes_nothing_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def watched(code: str, seconds: float) -> tuple[int, str]:
        return gpu.watched([sys.executable, "-c", code], tmp_path / "out.json", time.perf_counter() + seconds)

    assert watched("import time; time.sleep(60)", 0.5) == (-signal.SIGKILL, gpu.TOO_LONG)
    assert watched("raise ValueError('why')", 60) == (1, "ValueError: why")
    assert watched("", 60) == (0, "exit status 0")
    assert watched("import os; os.abort()", 60)[1] == "exit status -6"
    monkeypatch.setattr(gpu, "PIECE_SECONDS", 0.5)
    assert watched("import time; time.sleep(60)", 60) == (-signal.SIGKILL, "nothing was written for 0.5 seconds")


def test_the_process_of_a_part_ends_with_the_one_that_started_it() -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.setsid()
        os.dup2(read, 0)
        gpu.end_with_parent()
        time.sleep(60)
        os._exit(1)
    os.close(read)
    os.close(write)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.long
def test_all_parts_run_in_their_processes(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert gpu.main(["--smoke", "--out", str(out)]) == 0
    parts = json.loads(out.read_text())["parts"]
    assert list(parts) == list(gpu.PARTS)
    assert [name for pieces in parts.values() for name, found in pieces.items() if "failed" in found] == []
    together = parts["side_by_side"]["small_conv, batch 8, float32, 2 processes without MPS"]
    assert len(together["each"]) == 2
