"""Ended processes of this machine are known, and nothing is said about others."""

import subprocess
import sys
from dataclasses import replace

from results.store.leases import this_process


def test_this_process_runs():
    assert not this_process().has_ended()


def test_an_ended_process_is_known():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert replace(this_process(), pid=child.pid).has_ended()


def test_another_process_with_the_number_of_an_ended_one_is_not_taken_for_it():
    assert replace(this_process(), started="1").has_ended()


def test_nothing_is_known_about_other_machines():
    assert not replace(this_process(), machine="elsewhere", started="1").has_ended()
