"""MPS is started with folders of its own and ended, on a machine that has only a program of the service's name."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce.run import devices as mps
from reproduce.run.devices import multi_process_service
from tests.support.processes import wait_until

VARIABLES = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY")

# Notes how it is called. It runs, as far as it can be asked, if its folder of pipes has the file `runs`.
SERVICE = """#!/bin/sh
pipes=${CUDA_MPS_PIPE_DIRECTORY:-HERE/default}
if [ "$1" = -d ]; then
    echo "start $pipes $CUDA_MPS_LOG_DIRECTORY visible=$CUDA_VISIBLE_DEVICES" >> HERE/calls
    if [ -e HERE/forbidden ]; then echo 'not allowed here' >&2; exit 1; fi
    touch "$pipes/runs"; exit 0
fi
read line
echo "$line" >> HERE/calls
if [ ! -e "$pipes/runs" ]; then echo 'Cannot find MPS control daemon process' >&2; exit 1; fi
case $line in quit*) rm "$pipes/runs";; esac
"""


@pytest.fixture
def service(tmp_path, monkeypatch):
    """The folder of the pretended service."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "nvidia-cuda-mps-control"
    program.write_text(SERVICE.replace("HERE", str(tmp_path)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def works():
    return None if Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"], "runs").exists() else "no service"


def calls(folder):
    return (folder / "calls").read_text().splitlines()


def test_it_is_started_for_the_block_and_ended_with_it(service, caplog):
    with multi_process_service(works) as started:
        assert started
        folder = os.environ[VARIABLES[0]]
        assert os.environ[VARIABLES[1]] == folder
        # The service sees all GPUs; its clients choose.
        assert calls(service) == ["get_server_list", f"start {folder} {folder} visible="]
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert calls(service)[2:] == ["quit -t 20"]
    assert not Path(folder).exists()
    assert not set(VARIABLES) & set(os.environ)
    assert caplog.text == ""


def test_a_service_that_runs_already_is_used_and_left_alone(service):
    (service / "default").mkdir()
    (service / "default" / "runs").touch()
    with multi_process_service(works) as started:
        assert started
        assert not set(VARIABLES) & set(os.environ)
    assert calls(service) == ["get_server_list"]


@pytest.mark.parametrize("why", ["not installed", "not allowed here", "no client"])
def test_without_it_one_line_says_why_and_what_to_do(service, monkeypatch, caplog, why):
    if why == "not installed":
        monkeypatch.setenv("PATH", str(service))
    elif why == "not allowed here":
        (service / "forbidden").touch()
    with multi_process_service(lambda: why) as started:
        assert not started
        assert not set(VARIABLES) & set(os.environ)
    (record,) = caplog.records
    assert why in record.message
    assert "take turns" in record.message
    assert "`nvidia-cuda-mps-control -d`" in record.message
    assert "\n" not in record.message
    if why == "no client":
        assert calls(service)[-1] == "quit -t 20", "a service that is of no use is ended"


def test_it_ends_with_a_process_that_is_killed(service):
    code = (
        "import time; from reproduce.run import devices as mps\n"
        "with mps.multi_process_service(lambda: None) as started:\n    print(started, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(mps.__file__).parents[2]) as process:
        assert process.stdout.readline() == b"True\n"
        folder = Path(calls(service)[-1].split()[1])
        assert folder.exists()
        process.send_signal(signal.SIGKILL)
        wait_until(lambda: not folder.exists(), 60)
    assert calls(service)[-1] == "quit -t 20"
