"""Kernels are pinned before libraries are loaded, in every process of the suite, and records name them."""

import os
import subprocess
import sys

import pytest

from protocols.machine import kernels
from protocols.machine.kernels import kernel_variables, why_native
from protocols.machine.processes import run_in_subprocess
from reproduce.run.ray_cluster import environment_of_workers

pytestmark = pytest.mark.skipif(not kernels._has_kernels(), reason="this processor has no AVX2 and FMA")

OTHERS = {"OPENBLAS_CORETYPE": "Nehalem", "ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "AVX512"}
LOOK = (
    "import torch, numpy, os; from protocols.machine.kernels import kernels; "
    "print(kernels(), torch.backends.cpu.get_cpu_capability(), os.environ['OPENBLAS_CORETYPE'])"
)
PIN = "from protocols.machine.kernels import pin_kernels; pin_kernels(); "


def look(before, **variables):
    environment = {**os.environ, **OTHERS, "PYTHONPATH": os.getcwd(), **variables}
    command = [sys.executable, "-c", before + LOOK]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


def test_a_process_is_pinned_whatever_the_environment_says():
    assert look(PIN, REPRODUCE_KERNELS="") == ["x86-64-v3", "AVX2", "Haswell"]


@pytest.mark.parametrize(("before", "asked"), [(PIN, "native"), ("import torch; " + PIN, "")])
def test_a_process_that_asks_or_has_loaded_torch_keeps_its_own_kernels(before, asked):
    assert look(before, REPRODUCE_KERNELS=asked) == ["native", "DEFAULT", "Nehalem"]


def test_workers_are_pinned_whatever_this_process_runs_under(monkeypatch):
    monkeypatch.setenv("REPRODUCE_KERNELS", "")
    for name, value in OTHERS.items():
        monkeypatch.setenv(name, value)
    assert kernels.kernels() == "native"
    assert run_in_subprocess(kernels.kernels) == "x86-64-v3"
    assert kernel_variables().items() <= environment_of_workers(1).items()


def test_why_kernels_are_native_is_said(monkeypatch):
    monkeypatch.setenv("REPRODUCE_KERNELS", "native")
    assert why_native() == "REPRODUCE_KERNELS is native"
    monkeypatch.setenv("REPRODUCE_KERNELS", "")
    assert why_native() is None
    monkeypatch.setattr(kernels, "_has_kernels", lambda: False)
    assert "AVX2" in why_native()
    assert kernel_variables() == {}
