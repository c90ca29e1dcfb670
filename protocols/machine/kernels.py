"""Which kernels the libraries compute with on a CPU: the same on every processor, so that they round alike.

torch, oneDNN, MKL, OpenBLAS and numpy choose the fastest kernels that a processor has. Each kind of kernels adds in
another order, and a training turns the last digit of a sum into the first of a score. Held at the kernels of x86-64-v3
(AVX2 and FMA, in every processor of Intel and AMD since about 2015), they give equal digits on all of them.

This module imports no library, since they read their variables when they are loaded.
"""

import os
import platform
import sys
from functools import cache
from pathlib import Path

KERNELS_VARIABLE = "REPRODUCE_KERNELS"
"""Variable that leaves the choice to the libraries where it is `native`."""

PINNED, NATIVE = "x86-64-v3", "native"
"""How records name the kernels that are the same everywhere, and those that libraries choose."""

# MKL's own choice of AVX2 differs between Intel and others; COMPATIBLE is the same everywhere.
_PINS = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4",
}
_LIBRARIES = ("torch", "numpy")


def pin_kernels() -> None:
    """Hold the libraries of this process at the pinned kernels; call it before they are loaded.

    Nothing changes where they are loaded already, where `REPRODUCE_KERNELS` is `native`, and on processors without
    these kernels. Then `kernels` says `native`.
    """
    if not any(library in sys.modules for library in _LIBRARIES):
        os.environ.update(kernel_variables())


def kernel_variables() -> dict[str, str]:
    """Return the environment variables that pin the kernels of a process that is started with them; none if native."""
    return {} if why_native() else dict(_PINS)


def kernels() -> str:
    """Return the kernels of this process: `x86-64-v3` or `native`."""
    pinned = all(os.environ.get(name) == value for name, value in _PINS.items())
    return PINNED if pinned and _has_kernels() else NATIVE


def why_native() -> str | None:
    """Say why processes that start now are not pinned; None if they are."""
    if os.environ.get(KERNELS_VARIABLE) == NATIVE:
        return f"{KERNELS_VARIABLE} is {NATIVE}"
    return None if _has_kernels() else "this processor has no AVX2 and FMA"


@cache
def _has_kernels() -> bool:
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\nflags")[2].partition("\n")[0].split()
    except OSError:
        return False
    return {"avx2", "fma"} <= set(flags)
