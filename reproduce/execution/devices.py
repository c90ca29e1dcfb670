"""Chooses the device, the number of trainings at the same time, and the number of threads per training."""

import ctypes
import os
import platform

import torch

from protocols.images.batch_source import share_gpu
from protocols.processes import GPU_THREADS, threads_per_training
from reproduce.errors import InputError
from results.spec.mlrc_constants import FOLDS

LARGEST_BLOCK = 2**30
"""Largest block in bytes that is kept; larger ones go back to the system at once."""

MOST_KEPT = 2**31 - 1
"""Most bytes of free memory at the end of the heap that are kept."""

_FULL = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""How CUDA and its libraries say that a GPU has no memory left, where torch has no class of its own for it."""

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


def spread(device: str) -> list[str]:
    """Return the devices that local trainings are spread over: all visible GPUs for `cuda`, else the device itself."""
    found = range(torch.cuda.device_count()) if device == "cuda" else ()
    return [f"cuda:{index}" for index in found] or [device]


def default_workers(device: str) -> int:
    """Return how many trainings run at the same time: four, or one per core if there are fewer.

    On GPUs four for each, since a training with small batches does not fill one, if there are `GPU_THREADS` cores for
    each training, and at least one for each GPU.
    """
    cores = os.cpu_count() or 1
    if not device.startswith("cuda"):
        return min(FOLDS, cores)
    gpus = len(spread(device))
    return max(gpus, min(FOLDS * gpus, cores // GPU_THREADS))


def prepare_process(device: str, threads: int | None = None, sharing: int = 1) -> None:
    """Set how a process trains: its GPU, its number of threads, and how it keeps memory.

    Args:
        threads: None takes `threads_per_training` of the device.
        sharing: Number of trainings on the process's GPU at the same time.
    """
    use_gpu(device)
    share_gpu(sharing)
    torch.set_num_threads(threads or threads_per_training(device))
    keep_freed_memory()


def use_gpu(device: str) -> None:
    """Make a GPU the current device of this process, with deterministic kernels; do nothing for a CPU.

    Call it before anything else on the GPU: page-locked memory, streams and libraries take the current device, which is
    the first GPU otherwise.
    """
    if not device.startswith("cuda"):
        return
    # Without this variable cuBLAS may choose kernels whose sums differ from run to run.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cudnn.benchmark = False
    if torch.device(device).index is not None:
        torch.cuda.set_device(device)


def is_full(error: BaseException) -> bool:
    """Tell whether an error says that a GPU has no memory left."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _FULL)
    )


def full_gpu(error: BaseException, device: str, sharing: int) -> InputError:
    """Return the error of a task that found no memory on a GPU that so many trainings share."""
    reason = str(error).splitlines()[0]
    if sharing > 1:
        return InputError(f"{device} has too little memory for {sharing} trainings ({reason}); use fewer --workers")
    return InputError(
        f"alone on {device}, it needs more memory than is free ({reason}); end other programs on this GPU, or set "
        "training.gradient_cache, training.precision: amp or a smaller training.batch_size"
    )
