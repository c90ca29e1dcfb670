"""Starts further processes, for trainings and for users' code.

What users' code changes in Python or torch ends with its process. Processes are forked from one that has imported
libraries and nothing else, since importing torch takes seconds.
"""

import logging
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Any

from protocols.machine.kernels import kernel_variables, why_native
from results.records.provenance import granted_cores
from results.spec.mlrc_constants import FOLDS

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

GPU_THREADS = 2
"""Threads and cores of a training on a GPU, whose host only starts kernels and prepares batches.

A constant, so that a node's GPUs are all used whatever its cores are: nodes with two cores per GPU are common.
"""

# torch imports the second for deterministic kernels, which takes about as long as the import of torch itself.
_LIBRARIES = ("torch", "torch._inductor.config", "pytorch_metric_learning.losses", "pydantic", "PIL.Image")
"""What processes are forked with. The suite is not among it: another copy of it may be installed than the one here."""

_LOG = logging.getLogger(__name__)
_SLOW_SECONDS = 60
"""After how long a call in a process of its own is named as what everything waits for."""

_EXIT_SECONDS = 5
"""How long a process whose connection has ended may take to exit by itself."""

_LONGEST_FOLDER = 60
"""Bytes of the name of a folder for sockets. With their own names a system takes 104 to 108."""

_starting = threading.Lock()


class EndedProcessError(ValueError):
    """A process ended before it gave an answer. The message is one line."""


@cache
def processes() -> ForkServerContext | SpawnContext:
    """Return how processes start: quickly where the system can fork."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_LIBRARIES))
    return context


def start_importing() -> None:
    """Let the process that others are forked from import its libraries now, while this one goes on."""
    if isinstance(processes(), ForkServerContext):
        with starting():
            forkserver.ensure_running()


def threads_per_training(device: str = "cpu") -> int:
    """Return the number of threads of one training on a device of this machine: `GPU_THREADS` on a GPU, 1 on a CPU.

    Each number of threads adds floats in another order, so it must not depend on the machine. Under the machine's own
    kernels it is a quarter of the cores that are granted, which are fewer in a container.
    """
    if device.startswith("cuda"):
        return GPU_THREADS
    return max(1, granted_cores() // FOLDS) if why_native() else 1


def set_variables(values: Mapping[str, str | None]) -> None:
    """Set environment variables; None removes one."""
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def socket_folder() -> str:
    """Return a folder for sockets: that of temporary files, or the system's if batch systems give a long name."""
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) <= _LONGEST_FOLDER else "/tmp"


@contextmanager
def starting(threads: int | None = None) -> Iterator[None]:
    """Start processes within the block; without a number of threads each has `threads_per_training()` of a CPU.

    They take thread counts and kernels from the environment, where libraries read them. They do not look for modules in
    the current folder before they know where this process looks. They do not import this process's program, which would
    run a program without `if __name__ == "__main__":` once more. They never see Ctrl-C, which in a terminal reaches all
    processes of a command: blocked, it arrives here at the end of the block.
    """
    variables = dict.fromkeys(THREAD_VARIABLES, str(threads or threads_per_training())) | kernel_variables()
    variables["PYTHONSAFEPATH"] = "1"
    with _starting:
        resource_tracker.ensure_running()  # Its start lets signals through, so it comes before they are blocked.
        before, folder = {name: os.environ.get(name) for name in variables}, tempfile.tempdir
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        program = vars(sys.modules["__main__"])
        origin: dict[str, Any] = {name: program.pop(name) for name in ("__file__", "__spec__") if name in program}
        program["__spec__"] = None
        os.environ.update(variables)
        tempfile.tempdir = socket_folder()  # multiprocessing asks here where its sockets may be.
        try:
            yield
        finally:
            tempfile.tempdir = folder
            program.update(origin)
            set_variables(before)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class WorkerProcess:
    """A fresh process that calls functions, one after another, until `end`. It ends with this process too.

    Args:
        threads: Threads of its computations; None takes `threads_per_training()` of a CPU.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._connection, of_worker = processes().Pipe()
        # A forked process would take the environment and the folder from an older one.
        arguments = (of_worker, {**os.environ, **kernel_variables()}, os.getcwd())
        self._process = processes().Process(target=_serve, args=arguments, daemon=True)
        with starting(threads):
            self._process.start()
        of_worker.close()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of a module there, and return its value or raise its error.

        Raises:
            EndedProcessError: The process ended without an answer.
        """
        try:
            self._connection.send((function, arguments))
            is_error, value = self._connection.recv()
        except (EOFError, ConnectionError):
            raise EndedProcessError(self._reason()) from None
        if is_error:
            raise value
        return value

    def _reason(self) -> str:
        with _starting:  # A start in another thread looks after ended processes too.
            self._process.join(_EXIT_SECONDS)
            code = self._process.exitcode
        if code is not None and code < 0:
            memory = "; the system may have had too little memory" if code == -signal.SIGKILL else ""
            return f"signal {signal.Signals(-code).name} ended the process{memory}"
        return f"the code ended its process (exit code {code})"

    def is_alive(self) -> bool:
        """Tell whether the process has not ended."""
        with _starting:
            return self._process.is_alive()

    def kill(self) -> None:
        """Kill the process; a call in another thread raises EndedProcessError."""
        self._process.kill()

    def end(self) -> None:
        """Kill the process and wait for its end. No call may be under way."""
        self._process.kill()
        with _starting:
            self._process.join()
        self._connection.close()


def run_in_subprocess(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a fresh process and return its value, or raise its error.

    Raises:
        EndedProcessError: The process ended without an answer.
    """
    worker = WorkerProcess()
    waiting = "still waiting for the import or the first step of code of yours"
    wait = threading.Timer(_SLOW_SECONDS, _LOG.warning, [waiting])
    wait.daemon = True
    wait.start()
    try:
        return worker.call(function, *arguments)
    finally:
        wait.cancel()
        worker.end()


def _serve(connection: Connection, environment: Mapping[str, str], folder: str) -> None:
    # Ctrl-C reaches the whole process group, but only the parent decides which workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    with suppress(EOFError, ConnectionError):  # The parent has ended.
        while True:
            request = connection.recv_bytes()
            try:
                function, arguments = pickle.loads(request)
                answer = False, function(*arguments)
                sys.stdout.flush()
                connection.send(answer)
            except Exception as error:
                connection.send((True, _sendable(error)))


def _sendable(error: Exception) -> Exception:
    """Return an error as another process can read it: one that cannot be unpickled becomes its name and message."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}".splitlines()[0])
    return error


def end_with_parent() -> None:
    """Start a thread that ends this process as soon as its parent has ended. Call it in a worker when it starts."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
