"""An executor that runs tasks on the nodes of a Ray cluster, or in a local Ray that is started for one run.

Ray is optional and is imported only for `--ray`. All nodes must see the checkout, the cache and the artifacts at the
same paths on a shared file system: images and checkpoints are exchanged as files, never through Ray. A node that does
not see them is reported at the start. Every node uses as many threads per training as this machine would, so that the
numbers equal those of a run without Ray (on the same kind of processor).
"""

import logging
import os
import socket
from collections import deque
from concurrent.futures import Future, InvalidStateError
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from protocols.processes import GPU_THREADS, THREAD_VARIABLES, threads_per_training
from reproduce.errors import InputError, WorkFailedError
from reproduce.execution.clusters.nodes import environment_of_workers, first_line, outcome_of
from reproduce.execution.clusters.ray_nodes import Room, check_nodes, room_in, usable_nodes
from reproduce.execution.devices import is_full, prepare_process
from reproduce.execution.executor import WorkerDiedError
from reproduce.execution.tasks import Done, Task
from reproduce.monitoring.observer import Tick

_LOG = logging.getLogger(__name__)
_LOCAL = "local"
_REACH_SECONDS = 10
_END_SECONDS = 10
_LOCAL_OBJECTS = 256 * 2**20
"""Shared memory in bytes of a Ray that is started here; tasks and results are small."""

_HINTS = {
    _LOCAL: "",
    "auto": "; name a cluster with --ray HOST:PORT, or start one with `ray start --head` or --ray local",
}


class RayCluster:
    """Carries out tasks on all nodes of a Ray cluster. Ray gives each task its cores and its share of a GPU.

    Nodes that join later are used too, but it is not checked that they see the folders.

    Args:
        address: `auto` or `HOST:PORT` for a cluster that this machine belongs to, `ray://HOST:PORT` for another
            cluster, `local` to start Ray on this machine until `close`.
        device: cpu, cuda, or auto for cuda if a node has a GPU.
        workers: Trainings at the same time at most; None for one per GPU, or on CPUs for as many as the cores allow.
        folders: Folders that all nodes must share, besides this checkout.

    Raises:
        InputError: The cluster cannot be used; the message is one line.
    """

    def __init__(self, address: str, device: str, workers: int | None, folders: tuple[Path, ...]) -> None:
        self.address, self._requested_workers, self._kind = address, workers, device
        self._ray = import_ray()
        self._threads = threads_per_training()
        self._unfinished: dict[Future[Done], Any] = {}
        self._full: deque[tuple[Future[Done], Task, int]] = deque()
        self._connect()
        try:
            room = self._check_room(device, folders)
        except BaseException:
            self._ray.shutdown()
            raise
        self.device, self.workers, self.capacity = room.device, room.workers, room.workers
        self._prepare(room)

    def _connect(self) -> None:
        arguments: dict[str, Any] = {}
        if self.address == _LOCAL:
            # None: Ray counts the cores of this machine.
            threads = GPU_THREADS if self._kind != "cpu" and torch.cuda.is_available() else self._threads
            cores = None if self._requested_workers is None else self._requested_workers * threads
            arguments = {"num_cpus": cores, "include_dashboard": False, "object_store_memory": _LOCAL_OBJECTS}
            # Any machine that reaches Ray can run programs on it, so Ray must listen to this machine only.
            arguments["_node_ip_address"] = "127.0.0.1"
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        else:
            _reach(self.address)
        try:
            self._ray.init(
                address=self.address,
                log_to_driver=False,
                logging_level=logging.ERROR,
                runtime_env={"env_vars": environment_of_workers(self._threads)},
                **arguments,
            )
        except (OSError, RuntimeError, ValueError, ImportError, self._ray.exceptions.RayError) as error:
            hint = _HINTS.get(self.address, "; if the cluster requires a token, set RAY_AUTH_MODE and RAY_AUTH_TOKEN")
            raise InputError(f"--ray {self.address}: {first_line(error)}{hint}") from error

    def _check_room(self, device: str, folders: tuple[Path, ...]) -> Room:
        nodes = self._ray.nodes()
        room = room_in(nodes, device, self._requested_workers, self._threads)
        check_nodes(self._ray, usable_nodes(nodes, room.device, room.threads), folders)
        return room

    def _prepare(self, room: Room) -> None:
        ray = self._ray
        self._room, self._sharing = room, room.sharing
        # Ray does not retry a failed task, since the scheduler counts and stores failures. A process that has used one
        # GPU cannot switch to another, so it ends after its training. The nodes' other variables are set already.
        variables = {"env_vars": dict.fromkeys(THREAD_VARIABLES, str(room.threads))}
        on_gpu = {"max_calls": 1, "runtime_env": variables} if room.sharing else {}
        self._carry_out = ray.remote(num_cpus=room.threads, max_retries=0, **on_gpu)(_carry_out_on_node)
        self._mailbox = _mailbox(ray).remote()
        self._next_progress = self._mailbox.take.remote()

    def submit(self, task: Task) -> "Future[Done]":
        """Give the task to Ray, which starts it when there is room."""
        if not self._ray.is_initialized():
            # Without this check Ray would start a new cluster.
            raise self._fail_unfinished(ConnectionError("the connection is closed"))
        future: Future[Done] = Future()
        future.set_running_or_notify_cancel()
        try:
            self._begin(future, task)
        except (OSError, RuntimeError, self._ray.exceptions.RayError) as error:
            raise self._fail_unfinished(error) from error
        return future

    def _begin(self, future: "Future[Done]", task: Task) -> None:
        sharing = self._sharing
        carry_out = self._carry_out.options(num_gpus=1 / sharing if sharing else 0)
        ref = carry_out.remote(task, self.device, self._room.threads, sharing, self._mailbox)
        self._unfinished[future] = ref
        ref.future().add_done_callback(lambda done: self._settle(future, task, sharing, done))

    def _begin_again(self) -> None:
        """Give the tasks to Ray again that found their GPU full. Each gets a larger part of one."""
        while self._full:
            future, task, sharing = self._full[0]
            if sharing == self._sharing:
                self._sharing -= 1
                _LOG.warning(
                    "a GPU is too small for %d trainings at the same time; from now on %d", sharing, sharing - 1
                )
            if not future.done():
                self._begin(future, task)
            self._full.popleft()

    def _settle(self, future: "Future[Done]", task: Task, sharing: int, done: "Future[Done | Exception]") -> None:
        # The future may already have the error of a lost cluster.
        with suppress(InvalidStateError):
            try:
                outcome = done.result()
            except Exception as error:
                outcome = WorkerDiedError(f"{type(error).__name__}, {first_line(error)}")
            if isinstance(outcome, Exception) and is_full(outcome):
                self._full.append((future, task, sharing))
                return
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        self._unfinished.pop(future, None)

    def _fail_unfinished(self, error: Exception) -> BrokenProcessPool:
        """Set an error on all unfinished futures after the connection was lost, and return this error."""
        broken = BrokenProcessPool(f"the Ray cluster is lost ({first_line(error)})")
        for future in list(self._unfinished):
            with suppress(InvalidStateError):
                future.set_exception(broken)
        self._unfinished.clear()
        return broken

    def ticks(self) -> list[Tick]:
        """Return the progress that has arrived since the last call, without waiting for more."""
        if not self._ray.is_initialized():
            self._fail_unfinished(ConnectionError("the connection is closed"))
            return []
        try:
            self._begin_again()
            ready, _ = self._ray.wait([self._next_progress], timeout=0)
            if not ready:
                return []
            answer, self._next_progress = self._next_progress, self._mailbox.take.remote()
            return [Tick(fingerprint, iterations) for fingerprint, iterations in self._ray.get(answer)]
        except self._ray.exceptions.RayError:
            return []  # The mailbox's node is gone; Ray starts the mailbox again on another node.
        except (OSError, RuntimeError) as error:
            self._fail_unfinished(error)
            return []

    def end(self, future: "Future[Done]", reason: str) -> None:
        """Fail the future of a task that hangs, and tell Ray to kill its process."""
        # Ray may be unable to reach the process, so nothing waits for the answer.
        ref = self._unfinished.get(future)
        if ref is None:
            return
        with suppress(InvalidStateError):
            future.set_exception(WorkerDiedError(reason))
        with suppress(OSError, RuntimeError, self._ray.exceptions.RayError):
            self._ray.cancel(ref, force=True)

    def restart(self) -> None:
        """Connect again after the cluster was lost. Unfinished tasks must be submitted again."""
        self.close()
        try:
            self._connect()
        except InputError as error:
            raise WorkFailedError(f"{error}; everything finished is kept, run the same command to continue") from error
        self._prepare(self._room)

    def close(self) -> None:
        """End the unfinished trainings and the connection, and Ray itself if it was started here."""
        refs = list(self._unfinished.values()) if self._ray.is_initialized() else []
        with suppress(OSError, RuntimeError, self._ray.exceptions.RayError):
            for ref in refs:
                self._ray.cancel(ref, force=True)
            if refs:
                self._ray.wait(refs, num_returns=len(refs), timeout=_END_SECONDS)
        self._unfinished.clear()
        self._full.clear()
        self._ray.shutdown()


def import_ray() -> Any:
    """Import the package Ray; raise InputError if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise InputError(f"--ray: Ray is not installed ({error}); run `pip install 'ray[client]'`") from error
    return ray


def _carry_out_on_node(task: Task, device: str, threads: int, sharing: int, mailbox: Any) -> Done | Exception:
    sharing = max(1, sharing)
    prepare_process(device, threads, sharing)

    def report(tick: Tick) -> None:
        mailbox.put.remote(tick.fingerprint, tick.iterations)

    return outcome_of(task, device, threads, report, sharing)


def _mailbox(ray: Any) -> Any:
    """Return an actor that collects progress until it is taken."""

    # The class is defined here so that Ray sends its code, and its process does not import torch.
    class Mailbox:
        def __init__(self) -> None:
            self.progress: list[tuple[str, int]] = []

        def put(self, fingerprint: str, iterations: int) -> None:
            self.progress.append((fingerprint, iterations))

        def take(self) -> list[tuple[str, int]]:
            progress, self.progress = self.progress, []
            return progress

    return ray.remote(num_cpus=0, max_restarts=-1)(Mailbox)


def _reach(address: str) -> None:
    """Raise InputError if nothing listens at HOST:PORT. Ray itself would need minutes to notice that."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        if address == "auto":
            return
        raise InputError(f"--ray {address}: use auto, local, HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"--ray {address}: no Ray cluster answers at this address ({first_line(error)})") from error
