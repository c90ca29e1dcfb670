"""Kernels are pinned before libraries are loaded, in every process of the suite, and records name them."""

import os
import subprocess
import sys

import pytest

from protocols.machine import kernels
from protocols.machine.kernels import kernel_variables, why_native
from protocols.machine.processes import run_in_subprocess
from reproduce.run.ray_cluster import environment_of_workers
from results.records.provenance import NATIVE_KERNELS

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
    assert why_native() == f"REPRODUCE_KERNELS is {NATIVE_KERNELS}"
    monkeypatch.setenv("REPRODUCE_KERNELS", "")
    assert why_native() is None
    monkeypatch.setattr(kernels, "_has_kernels", lambda: False)
    assert "AVX2" in why_native()
    assert kernel_variables() == {}


ROOTS = """
import numpy as np, torch, protocols.machine.torch_state
values = torch.rand(100_000, generator=torch.Generator().manual_seed(0)) * 3
exact = np.sqrt(values.numpy())
wide = torch.cdist(values[:40, None], torch.zeros(3, 1), compute_mode="use_mm_for_euclid_dist")
assert (torch.sqrt(values).numpy() == exact).all()
assert (values.clone().sqrt_().numpy() == exact).all()
assert (torch.sqrt(values, out=torch.empty(0)).numpy() == exact).all()
assert wide.shape == (40, 3) and torch.tensor([-1.0]).sqrt().isnan().all()
assert torch.tensor([4, 9]).sqrt().tolist() == [2.0, 3.0]
assert torch.ones(3, dtype=torch.bfloat16).sqrt().dtype == torch.bfloat16
values.requires_grad_().sqrt().sum().backward()
assert torch.allclose(values.grad, 0.5 / torch.from_numpy(exact))
"""


def test_square_roots_are_exact_in_a_pinned_process():
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "REPRODUCE_KERNELS": ""}
    subprocess.run([sys.executable, "-W", "error", "-c", PIN + ROOTS], env=environment, check=True)
