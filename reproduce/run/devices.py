"""Devices: which one, how many trainings at the same time, their threads, and the sharing of a GPU.

Processes that share a GPU take turns: while kernels of one run, those of the others wait. With NVIDIA's Multi-Process
Service (MPS) they run at the same time.
"""

import ctypes
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from protocols.images.samples import share_gpu
from protocols.machine.processes import GPU_THREADS, set_variables, socket_folder, threads_per_training
from reproduce.errors import InputError
from results.records.provenance import granted_cores
from results.spec.mlrc_constants import FOLDS
from results.wording import counted, first_line

LARGEST_BLOCK = 2**30
"""Largest block in bytes that is kept; larger ones go back to the system at once."""

MOST_KEPT = 2**31 - 1
"""Most bytes of free memory at the end of the heap that are kept."""

_FULL = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""How CUDA and its libraries say that a GPU has no memory left, where torch has no class of its own for it."""

# Parameters of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

_LOG = logging.getLogger(__name__)
_CONTROL = "nvidia-cuda-mps-control"
_ANSWER_SECONDS = 120

# Its input ends when the block ends, or this process, in whatever way.
_END_WITH_INPUT = f'cat > /dev/null; echo quit -t 20 | {_CONTROL}; rm -rf -- "$1"'


def keep_freed_memory() -> bool:
    """Let this process keep freed memory, up to `MOST_KEPT` and what lies between blocks in use.

    Only glibc has this; the result says whether it was set.
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
        found = counted(counts[kind], f"{kind} device")
        raise InputError(f"there is no device {device!r}: {found} found; use --device cpu")
    return device


def spread(device: str) -> list[str]:
    """Return the devices that local trainings are spread over: all visible GPUs for `cuda`, else the device itself."""
    found = range(torch.cuda.device_count()) if device == "cuda" else ()
    return [f"cuda:{index}" for index in found] or [device]


def default_workers(device: str) -> int:
    """Return how many trainings run at the same time: as many as the cores have room for.

    On GPUs four for each, since a training with small batches does not fill one, if there are `GPU_THREADS` cores for
    each training, and at least one for each GPU.
    """
    cores = granted_cores()
    if not device.startswith("cuda"):
        return max(1, cores // threads_per_training())
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
    reason = first_line(error)
    if sharing > 1:
        return InputError(
            f"{device} has too little memory for {counted(sharing, 'training')} ({reason}); use fewer --workers"
        )
    return InputError(
        f"alone on {device}, it needs more memory than is free ({reason}); end other programs on this GPU, or set "
        "training.gradient_cache, training.precision: amp or a smaller training.batch_size"
    )


@contextmanager
def multi_process_service(try_out: Callable[[], str | None]) -> Iterator[bool]:
    """Let processes that are started within the block share GPUs through MPS, if it can be started here.

    A service that runs already is used and left as it is. One that is started here has its own folder for pipes and
    logs, and ends with the block, or with this process if that is killed. If there is none, one line says why and what
    to do.

    Args:
        try_out: Starts a process that uses a GPU, and returns why it cannot. The service also starts where GPUs cannot
            be used through it.

    Yields:
        Whether processes that are started now use MPS.
    """
    if shutil.which(_CONTROL) is not None and _failure((_CONTROL,), os.environ, "get_server_list") is None:
        yield True
        return
    folder = tempfile.mkdtemp(prefix="mps-", dir=socket_folder())
    variables = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    # A service that is limited to some GPUs counts them anew. Its clients choose from all.
    everything = {**os.environ, **variables}
    everything.pop("CUDA_VISIBLE_DEVICES", None)
    before = {name: os.environ.get(name) for name in variables}
    reason = _failure((_CONTROL, "-d"), everything)
    if reason is None:
        os.environ.update(variables)
        reason = try_out()
    keeper = subprocess.Popen(
        ("/bin/sh", "-c", _END_WITH_INPUT, "sh", folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=everything,
        start_new_session=True,  # Ctrl-C does not reach it.
    )
    try:
        if reason is not None:
            set_variables(before)
            _LOG.warning(
                "trainings on one GPU take turns, since MPS does not run (%s); if you may, start it with `%s -d` "
                "before the run; no result depends on it",
                reason,
                _CONTROL,
            )
            keeper.communicate()
        yield reason is None
    finally:
        set_variables(before)
        keeper.communicate()


def _failure(command: Sequence[str], environment: Mapping[str, str], text: str = "") -> str | None:
    """Run a command with `text` as its input; return why it failed in one line, and None if it did not."""
    # A file and not a pipe, since the service may keep it open.
    with tempfile.TemporaryFile() as output:
        try:
            done = subprocess.run(
                command,
                input=text.encode(),
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_ANSWER_SECONDS,
            )
        except FileNotFoundError:
            return f"{command[0]} is not installed"
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{command[0]}: {type(error).__name__}"
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines() or ["no message"]
    return None if done.returncode == 0 else f"{command[0]}: {lines[-1]}"
