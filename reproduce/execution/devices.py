"""Chooses the device, the number of trainings at the same time, and the number of threads per training."""

import ctypes
import os
import platform

import torch

from protocols.processes import threads_per_training
from reproduce.errors import InputError
from results.spec.mlrc_constants import FOLDS

LARGEST_BLOCK = 2**30
"""Largest block in bytes that is kept; larger ones go back to the system at once."""

MOST_KEPT = 2**31 - 1
"""Most bytes of free memory at the end of the heap that are kept."""

# Parameters of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Let this process keep freed memory, up to `MOST_KEPT` and what lies between blocks in use.

    Only glibc can be told so; the result says whether it was.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    set_option = ctypes.CDLL(None).mallopt
    return bool(set_option(_MMAP_THRESHOLD, LARGEST_BLOCK) and set_option(_TRIM_THRESHOLD, MOST_KEPT))


def check_device(device: str) -> str:
    """Return a device that can be used; `auto` is cuda if there is a GPU and cpu otherwise.

    Raises:
        InputError: The name is wrong, or this machine has no such device.
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch_device = torch.device(device)
    except RuntimeError as error:
        raise InputError(f"device {device!r}: not a device name; use cpu, cuda or cuda:0") from error
    counts = {"cpu": 1, "cuda": torch.cuda.device_count()}
    kind = torch_device.type
    if kind not in counts:
        raise InputError(f"device {device!r}: this suite trains only on cpu and cuda")
    if (torch_device.index or 0) >= counts[kind]:
        raise InputError(f"there is no device {device!r}: {counts[kind]} {kind} device(s) found; use --device cpu")
    return device


def default_workers() -> int:
    """Return how many trainings run at the same time: four, or one per core if there are fewer.

    The same on a GPU: a training with small batches does not fill it, and four share it.
    """
    return min(FOLDS, os.cpu_count() or 1)


def prepare_process(device: str, threads: int | None = None) -> None:
    """Set the number of threads in a process that trains, how it keeps memory, and a GPU's deterministic kernels.

    Without a number of threads it is `threads_per_training()`.
    """
    torch.set_num_threads(threads or threads_per_training())
    keep_freed_memory()
    if device.startswith("cuda"):
        # Without this variable cuBLAS may choose kernels whose sums differ from run to run.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.benchmark = False
