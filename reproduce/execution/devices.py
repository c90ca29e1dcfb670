"""What trains: a CPU or a GPU, and how many trainings side by side."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from reproduce.errors import InputError
from results.mlrc_constants import FOLDS


def check_device(device: str) -> str:
    """The device's name if it is there; raises InputError."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise InputError(f"device {device!r}: not a device name; use cpu, cuda or cuda:0") from error
    there = {"cpu": 1, "cuda": torch.cuda.device_count()}
    if chosen.type not in there:
        raise InputError(f"device {device!r}: this suite trains on cpu and cuda")
    if (chosen.index or 0) >= there[chosen.type]:
        raise InputError(
            f"device {device!r} is not there: {there[chosen.type]} {chosen.type} device(s) found; use --device cpu"
        )
    return device


def default_workers(device: str) -> int:
    """Trainings side by side: the four folds of a trial, if there are cores for them; one on a GPU."""
    return 1 if device.startswith("cuda") else min(FOLDS, os.cpu_count() or 1)


THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def threads_per_training() -> int:
    """Threads of one training on this machine: a function of its cores alone, so that the number of workers does not
    change the order in which floats are added, and with it the result.
    """
    return max(1, (os.cpu_count() or 1) // FOLDS)


def prepare_process(device: str, threads: int | None = None) -> None:
    """Settings of a process that trains: threads, by default this machine's, and deterministic kernels on a GPU."""
    torch.set_num_threads(threads or threads_per_training())
    if device.startswith("cuda"):
        # Without it cuBLAS may choose kernels whose sums differ from run to run.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.benchmark = False


@contextmanager
def threads_in_environment() -> Iterator[None]:
    """Libraries of a starting process read their thread count from the environment."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads_per_training())))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
