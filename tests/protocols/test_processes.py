"""Further processes do not see Ctrl-C, and what their code changes ends with them."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from protocols.machine.processes import (
    EndedProcessError,
    WorkerProcess,
    run_in_subprocess,
    starting,
    threads_per_training,
)
from tests.support.command_line import environment
from tests.support.processes import wait_until


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


@pytest.mark.parametrize(("native", "threads"), [("native", (1, 2)), ("", (1, 1))])
def test_threads_follow_the_granted_cores_under_native_kernels_alone(monkeypatch, native, threads):
    monkeypatch.setenv("REPRODUCE_KERNELS", native)
    monkeypatch.setattr("protocols.machine.kernels._has_kernels", lambda: True)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    for cores, expected in zip((2, 8), threads, strict=True):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process, cores=cores: set(range(cores)))
        assert threads_per_training() == expected


def change_everything():
    torch.set_default_dtype(torch.float64)
    torch.nn.functional.normalize = None
    return True


def end(code):
    raise SystemExit(code)


def test_what_code_changes_ends_with_its_process():
    assert run_in_subprocess(change_everything)
    assert run_in_subprocess(torch.get_default_dtype) == torch.float32
    assert torch.nn.functional.normalize is not None


def test_sockets_have_room_where_the_name_of_the_temporary_folder_is_long(tmp_path):
    folder = tmp_path / ("t" * 90)
    folder.mkdir()
    code = (
        "import os, tempfile; from protocols.machine.processes import run_in_subprocess as run; "
        "print(run(os.getenv, 'TMPDIR'), tempfile.gettempdir())"
    )
    variables = {**environment(), "TMPDIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True)
    assert done.stdout == f"{folder} {folder}\n", done.stderr


def imported_by_a_training():
    before = set(sys.modules)
    torch.use_deterministic_algorithms(True)
    return sorted(set(sys.modules) - before)


def test_libraries_are_imported_before_a_process_is_forked():
    assert run_in_subprocess(imported_by_a_training) == []


def leaves_a_thread():
    threading.Thread(target=time.sleep, args=(600,)).start()
    time.sleep(0.3)
    return 1


def test_a_thread_of_the_code_ends_with_its_process_and_a_long_wait_is_named(monkeypatch, caplog):
    monkeypatch.setattr("protocols.machine.processes._SLOW_SECONDS", 0)
    started = time.monotonic()
    assert run_in_subprocess(leaves_a_thread) == 1
    assert time.monotonic() - started < 300
    assert "still waiting for the import or the first step of code of yours" in caplog.text


def test_errors_come_back_and_an_end_is_told():
    with pytest.raises(ValueError, match="invalid literal"):
        run_in_subprocess(int, "x")
    with pytest.raises(EndedProcessError, match=r"exit code 7"):
        run_in_subprocess(end, 7)
    with pytest.raises(RuntimeError, match=r"^PickyError: one and two$"):
        run_in_subprocess(picky)
    with pytest.raises(Exception, match="lambda"):
        run_in_subprocess(unsendable)


class PickyError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def picky():
    raise PickyError("one", "two")


def unsendable():
    return lambda: 0


def test_a_worker_serves_several_calls():
    worker = WorkerProcess()
    try:
        assert worker.call(os.getpid) == worker.call(os.getpid) != os.getpid()
        with pytest.raises(ValueError, match="invalid literal"):
            worker.call(int, "x")
        worker.kill()
        with pytest.raises(EndedProcessError, match="SIGKILL"):
            worker.call(os.getpid)
        assert not worker.is_alive()
    finally:
        worker.end()


def test_a_worker_ends_with_its_parent():
    code = (
        "import os, time\nfrom protocols.machine.processes import WorkerProcess\n"
        "print(WorkerProcess().call(os.getpid), flush=True)\ntime.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        worker = int(parent.stdout.readline())
        parent.kill()
    wait_until(lambda: not Path(f"/proc/{worker}").exists(), 30)
