"""A process that keeps freed memory gets it again without the system's help."""

import platform
import subprocess
import sys

import pytest

from reproduce.run.devices import keep_freed_memory
from tests.support.command_line import ROOT, environment

# A page that the system hands out counts as a minor fault.
FAULTS = """
import resource, sys
import numpy as np
from reproduce.run.devices import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
np.ones(2**23)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    np.ones(2**23)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep memory")
def test_freed_memory_is_used_again():
    faults = {}
    for mode in ("usual", "keep"):
        command = [sys.executable, "-c", FAULTS, mode]
        printed = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
        faults[mode] = int(printed.stdout)
    assert faults["keep"] < 100 < faults["usual"]


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr("reproduce.run.devices.platform.libc_ver", lambda: ("", ""))
    assert not keep_freed_memory()
