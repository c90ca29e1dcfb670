"""Starts further processes, for trainings and for users' code.

What users' code changes in Python or torch ends with its process. Processes are forked from one that has imported
libraries and nothing else, since importing torch takes seconds.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Any

from results.spec.mlrc_constants import FOLDS

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

GPU_THREADS = 2
"""Threads and cores of a training on a GPU, whose host only starts kernels and prepares batches.

A constant, so that a node's GPUs are all used whatever its cores are: nodes with two cores per GPU are common.
"""

_LIBRARIES = ("torch", "pytorch_metric_learning.losses", "pytorch_metric_learning.miners", "pydantic", "PIL.Image")
"""What processes are forked with. The suite is not among it: another copy of it may be installed than the one here."""


class EndedProcessError(ValueError):
    """Users' code has ended the process that it ran in. The message is one line."""


@cache
def processes() -> ForkServerContext | SpawnContext:
    """Return how processes start: quickly where the system can fork."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_LIBRARIES))
    return context


def threads_per_training(device: str = "cpu") -> int:
    """Return the number of threads of one training on a device of this machine: `GPU_THREADS` on a GPU.

    On a CPU it depends only on the number of cores. If it depended on the number of workers, floats would be added in
    another order, and results would change with `--workers`.
    """
    return GPU_THREADS if device.startswith("cuda") else max(1, (os.cpu_count() or 1) // FOLDS)


@contextmanager
def starting(threads: int | None = None) -> Iterator[None]:
    """Start processes within the block; without a number of threads each has `threads_per_training()` of a CPU.

    They take the thread counts from the environment, where libraries read them. They do not look for modules in the
    current folder before they know where this process looks. They never see Ctrl-C, which in a terminal reaches all
    processes of a command: blocked, it arrives here at the end of the block. The same holds for the signals of SLURM,
    which reach all processes of a job, if this process has a handler for them.
    """
    variables = {**dict.fromkeys(THREAD_VARIABLES, str(threads or threads_per_training())), "PYTHONSAFEPATH": "1"}
    before = {name: os.environ.get(name) for name in variables}
    handled = {number for number in (signal.SIGTERM, signal.SIGUSR2) if callable(signal.getsignal(number))}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *handled})
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def surroundings() -> tuple[Mapping[str, str], str]:
    """Return the environment and the current folder, which a forked process would take from an older one."""
    return dict(os.environ), os.getcwd()


def take_over(environment: Mapping[str, str], folder: str) -> None:
    """Take over the surroundings of another process."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a fresh process and return its value, or raise its error.

    Raises:
        EndedProcessError: The process ended without an answer.
    """
    receiver, sender = processes().Pipe(duplex=False)
    process = processes().Process(target=_answer, args=(sender, surroundings(), function, arguments), daemon=True)
    with starting():
        process.start()
    sender.close()
    try:
        value, error = receiver.recv()
    except EOFError:
        process.join()
        raise EndedProcessError(f"the code ended its process (exit code {process.exitcode})") from None
    finally:
        process.kill()
        process.join()
        receiver.close()
    if error is not None:
        raise error
    return value


def _answer(
    sender: Connection, around: tuple[Mapping[str, str], str], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    end_with_parent()
    take_over(*around)
    answer: tuple[Any, Exception | None]
    try:
        answer = (function(*arguments), None)
    except Exception as error:
        answer = (None, error)
    sys.stdout.flush()
    sender.send(answer)


def end_with_parent() -> None:
    """Start a thread that ends this process as soon as its parent has ended. Call it in a worker when it starts."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
