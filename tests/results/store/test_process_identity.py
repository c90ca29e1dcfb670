"""Ended processes of this machine are known, and nothing is said about others."""

import os
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from results.store import leases
from results.store.leases import this_process


def test_this_process_runs():
    assert this_process().has_ended() is False


def test_messages_name_the_machine_as_people_know_it():
    assert this_process().host == platform.node()


def test_asking_sends_no_signal(monkeypatch):
    sent = []
    monkeypatch.setattr(leases.os, "kill", lambda pid, signal: sent.append(signal))
    this_process().has_ended()
    assert set(sent) == {0}, "the signal 0 only asks whether the process is there"


def test_an_ended_process_is_known():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert replace(this_process(), pid=child.pid).has_ended()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_process_whose_parent_has_not_noticed_its_end_has_ended():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = replace(this_process(), pid=child.pid, started=leases._start_of(child.pid))
    assert identity.started.isdigit()
    assert not identity.has_ended()
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert identity.has_ended()
    finally:
        child.wait()


def test_a_system_that_tells_no_starts_still_tells_running_processes(monkeypatch):
    def not_there(self, *arguments, **options):
        raise FileNotFoundError(self)

    monkeypatch.setattr(Path, "read_text", not_there)
    identity = this_process()
    assert (identity.machine, identity.started) == (platform.node(), "")
    assert not identity.has_ended()


def test_another_process_with_the_number_of_an_ended_one_is_not_taken_for_it():
    assert replace(this_process(), started="1").has_ended()


def test_nothing_is_known_about_other_machines():
    assert replace(this_process(), machine="elsewhere", started="1").has_ended() is False
