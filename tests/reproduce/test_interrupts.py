"""Ctrl-C and SIGTERM: one line and no traceback at any time; the second ends at once; what is ignored stays ignored."""

import os
import signal
import subprocess
import sys
import time

import pytest

from reproduce import interrupts
from tests.support.command_line import ROOT, environment, interruptible

SCRIPT = """
import sys, time
from reproduce import interrupts
interrupts.install()
if sys.argv[1] != "importing":
    interrupts.imports_done()
def wait():
    print("ready", flush=True)
    for _ in range(100):
        time.sleep(0.05)
        if interrupts.requested() and sys.argv[1] == "deferred":
            print("noted")
            sys.exit(interrupts.exit_code())
if sys.argv[1] in ("deferred", "deaf"):
    with interrupts.deferred():
        wait()
else:
    wait()
"""


def started(mode: str, *, ignoring: bool = False) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, mode]
    process = subprocess.Popen(
        ["nohup", *command] if ignoring else interruptible(command),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignoring else None,
    )
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_imports_ends_in_one_line(number):
    process = started("importing")
    process.send_signal(number)
    assert process.communicate(timeout=60) == ("", f"{interrupts.STOPPED}\n")
    assert process.returncode == 128 + number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_deferred_signal_is_noted(number):
    process = started("deferred")
    process.send_signal(number)
    assert process.communicate(timeout=60) == ("noted\n", "")
    assert process.returncode == 128 + number


def test_the_second_signal_ends_a_process_that_does_not_ask():
    process = started("deaf")
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("", f"{interrupts.STOPPED}\n")
    assert process.returncode == 130


def test_a_signal_that_the_parent_ignores_stays_ignored():
    process = started("deferred", ignoring=True)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == "noted\n"


def test_an_interrupt_whose_exception_was_lost_does_not_end_with_success(monkeypatch, capsys):
    from reproduce.commands import cli

    monkeypatch.setattr(cli, "app", lambda arguments, standalone_mode: 0)
    monkeypatch.setattr(interrupts._State, "received", signal.SIGINT)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == f"{interrupts.STOPPED}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_code_from_a_string_ends_with_the_exit_code(tmp_path, number):
    """Python ends `python -m` with the signal if KeyboardInterrupt itself has left such code, caught or not."""
    (tmp_path / "stopped.py").write_text(
        "import os, sys\n"
        "from reproduce import interrupts\n"
        "from reproduce.commands import cli\n"
        "interrupts.install()\n"
        "interrupts.imports_done()\n"
        f"cli.app = lambda arguments, standalone_mode: exec('os.kill(os.getpid(), {int(number)})')\n"
        "cli.main()\n"
    )
    variables = environment()
    variables["PYTHONPATH"] = os.pathsep.join([str(tmp_path), variables["PYTHONPATH"]])
    done = subprocess.run(
        interruptible([sys.executable, "-m", "stopped"]), env=variables, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (128 + number, f"{interrupts.STOPPED}\n")
