"""Further processes start apart from this one: from Ctrl-C, from its modules and from what its code changes."""

import signal
import subprocess
import time

import pytest
import torch

from protocols.processes import EndedProcessError, apart, starting


def test_children_that_start_in_the_block_do_not_see_ctrl_c():
    with starting():
        child = subprocess.Popen(["sleep", "30"])
    try:
        child.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("handled", [True, False])
def test_children_leave_the_signals_of_slurm_to_a_parent_that_handles_them(handled) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR2)}
    heard = []
    try:
        for number in before:
            signal.signal(number, (lambda *received: heard.append(received[0])) if handled else signal.SIG_DFL)
        with starting():
            child = subprocess.Popen(["sleep", "30"])
        for number in before:
            child.send_signal(number)
        if handled:
            for number in before:
                signal.raise_signal(number)
            assert heard == list(before), "here they arrive"
            time.sleep(0.3)
            assert child.poll() is None
        else:
            assert child.wait(20) < 0
        child.kill()
        child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def change_everything() -> bool:
    torch.set_default_dtype(torch.float64)
    torch.nn.functional.normalize = None  # type: ignore[assignment]
    return True


def end(code: int) -> None:
    raise SystemExit(code)


def test_what_code_changes_ends_with_its_process() -> None:
    assert apart(change_everything)
    assert apart(torch.get_default_dtype) == torch.float32
    assert torch.nn.functional.normalize is not None


def test_errors_come_back_and_an_end_is_told() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        apart(int, "x")
    with pytest.raises(EndedProcessError, match=r"exit code 7"):
        apart(end, 7)


def test_a_file_of_the_current_folder_hides_no_module(tmp_path, monkeypatch) -> None:
    """The process that others are forked from looks nowhere before it knows where this one looks."""
    (tmp_path / "losses.py").write_text("raise ImportError('hidden')")
    monkeypatch.chdir(tmp_path)
    assert apart(change_everything)
