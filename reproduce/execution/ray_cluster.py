"""Trainings spread over the nodes of a Ray cluster, or over a Ray that is started here for the time of a run.

Ray is not needed otherwise, and imported only when it is asked for. All nodes must see the checkout, the cache and the
artifacts at the same paths, on a file system that they share: images and checkpoints travel as files, never through
Ray. A node that does not see them is named at the start. Every node trains with as many threads per training as this
machine would, so that the numbers are those of a run without Ray (on the same kind of processor).
"""

import logging
import os
import socket
import sys
import sysconfig
from concurrent.futures import Future, InvalidStateError
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from protocols.trunks.weights import WEIGHTS_VARIABLE
from reproduce.errors import InputError, WorkFailedError
from reproduce.execution.carry_out import carry_out
from reproduce.execution.devices import THREAD_VARIABLES, prepare_process, threads_per_training
from reproduce.execution.ray_capacity import Room, room_in, usable_nodes
from reproduce.execution.ray_shared_folders import check_nodes
from reproduce.execution.tasks import Done, Task
from reproduce.monitoring.observer import Tick

_LOCAL = "local"
_REACH_SECONDS = 10
_END_SECONDS = 10
_LOCAL_OBJECTS = 256 * 2**20
"""Bytes of shared memory of a Ray started here; tasks and results are small."""

_HINTS = {
    _LOCAL: "",
    "auto": "; name a cluster with --ray HOST:PORT, or start one with `ray start --head` or --ray local",
}


class WorkerDiedError(Exception):
    """A node or a process ended under a task; the other tasks go on."""


class RayCluster:
    """Trainings on all nodes of a cluster, `workers` side by side; Ray gives each its cores and its share of a GPU.

    address: `auto` for the cluster that this machine is a node of, `HOST:PORT`, `ray://HOST:PORT` for a cluster that it
    is not, `local` to start Ray here until `close`. device: cpu, cuda, or auto, which is cuda if a node has a GPU.
    workers: as many as there are GPUs, or as the cores have room for, if None. folders: what all nodes must share,
    besides this checkout. Nodes that join later are used, but not asked what they see. Raises InputError with one line.
    """

    def __init__(self, address: str, device: str, workers: int | None, folders: tuple[Path, ...]) -> None:
        self.address, self._asked = address, workers
        self._ray = import_ray()
        self._threads = threads_per_training()
        self._under_way: dict[Future[Done], Any] = {}
        self._connect()
        try:
            room = self._look_around(device, folders)
        except BaseException:
            self._ray.shutdown()
            raise
        self.device, self.workers, self.capacity = room.device, room.workers, room.workers
        self._prepare(room)

    def _connect(self) -> None:
        arguments: dict[str, Any] = {}
        if self.address == _LOCAL:
            # Ray counts this machine's cores unless it is told how many trainings it has to hold.
            cores = None if self._asked is None else self._asked * self._threads
            arguments = {"num_cpus": cores, "include_dashboard": False, "object_store_memory": _LOCAL_OBJECTS}
            # Whoever reaches Ray can run programs, so that it must not listen to other machines.
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
            hint = _HINTS.get(
                self.address, "; a cluster that asks for a token wants RAY_AUTH_MODE and RAY_AUTH_TOKEN set"
            )
            raise InputError(f"--ray {self.address}: {_first_line(error)}{hint}") from error

    def _look_around(self, device: str, folders: tuple[Path, ...]) -> Room:
        nodes = self._ray.nodes()
        room = room_in(nodes, device, self._asked, self._threads)
        check_nodes(self._ray, usable_nodes(nodes, room.device, self._threads), folders)
        return room

    def _prepare(self, room: Room) -> None:
        ray = self._ray
        self._room = room
        # A failed task goes back to the scheduler, which counts and stores failures. A process that has seen one GPU
        # cannot be given another, so that it ends with its training.
        self._carry_out = ray.remote(
            num_cpus=self._threads, num_gpus=room.gpu_share, max_retries=0, max_calls=1 if room.gpu_share else 0
        )(_carry_out_on_node)
        self._told = _mailbox(ray).remote()
        self._answer = self._told.take.remote()

    def submit(self, task: Task) -> "Future[Done]":
        """Hands the task to Ray, which starts it when there is room; raises BrokenProcessPool without a cluster."""
        if not self._ray.is_initialized():
            # Ray would start a cluster of its own.
            raise self._lost(ConnectionError("the connection is closed"))
        future: Future[Done] = Future()
        future.set_running_or_notify_cancel()
        try:
            ref = self._carry_out.remote(task, self.device, self._threads, self._told)
            self._under_way[future] = ref
            ref.future().add_done_callback(lambda done: self._settle(future, done))
        except (OSError, RuntimeError, self._ray.exceptions.RayError) as error:
            raise self._lost(error) from error
        return future

    def _settle(self, future: "Future[Done]", done: "Future[Done | Exception]") -> None:
        # A cluster that is lost may have been noticed before Ray says so here.
        with suppress(InvalidStateError):
            try:
                outcome = done.result()
            except Exception as error:
                outcome = WorkerDiedError(f"{type(error).__name__}, {_first_line(error)}")
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        self._under_way.pop(future, None)

    def _lost(self, error: Exception) -> BrokenProcessPool:
        """Tells everything under way that the connection is gone."""
        broken = BrokenProcessPool(f"the Ray cluster is lost ({_first_line(error)})")
        for future in list(self._under_way):
            with suppress(InvalidStateError):
                future.set_exception(broken)
        self._under_way.clear()
        return broken

    def ticks(self) -> list[Tick]:
        """Progress that has arrived since the last call; asks for more without waiting for it."""
        if not self._ray.is_initialized():
            self._lost(ConnectionError("the connection is closed"))
            return []
        try:
            ready, _ = self._ray.wait([self._answer], timeout=0)
            if not ready:
                return []
            answer, self._answer = self._answer, self._told.take.remote()
            return [Tick(fingerprint, iterations) for fingerprint, iterations in self._ray.get(answer)]
        except self._ray.exceptions.RayError:
            return []  # The mailbox's node is gone; Ray starts it again elsewhere.
        except (OSError, RuntimeError) as error:
            self._lost(error)
            return []

    def restart(self) -> None:
        """Connects anew after the cluster was lost; tasks under way must be submitted again."""
        self.close()
        try:
            self._connect()
        except InputError as error:
            raise WorkFailedError(f"{error}; everything finished is kept, run the same command to go on") from error
        self._prepare(self._room)

    def close(self) -> None:
        """Ends the trainings in flight and the connection, and Ray itself if it was started here."""
        refs = list(self._under_way.values()) if self._ray.is_initialized() else []
        with suppress(OSError, RuntimeError, self._ray.exceptions.RayError):
            for ref in refs:
                self._ray.cancel(ref, force=True)
            if refs:
                self._ray.wait(refs, num_returns=len(refs), timeout=_END_SECONDS)
        self._under_way.clear()
        self._ray.shutdown()


def import_ray() -> Any:
    """The package; raises InputError if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise InputError(f"--ray: Ray is not installed ({error}); run `pip install 'ray[client]'`") from error
    return ray


def environment_of_workers(threads: int) -> dict[str, str]:
    """Variables of every process on the nodes: threads, and where this process finds modules and weights."""
    installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders = [str(Path(__file__).resolve().parents[2]), *(str(Path(entry).absolute()) for entry in sys.path)]
    source_folders = [folder for folder in dict.fromkeys(folders) if folder not in installed and Path(folder).is_dir()]
    variables = dict.fromkeys(THREAD_VARIABLES, str(threads))
    # Trunks are looked for among torch.hub's downloads, which need not be at home on every node.
    variables |= {
        "PYTHONPATH": os.pathsep.join(source_folders),
        "TORCH_HOME": str(Path(torch.hub.get_dir()).parent.absolute()),
    }
    if named := os.environ.get(WEIGHTS_VARIABLE):
        variables[WEIGHTS_VARIABLE] = str(Path(named).expanduser().absolute())
    return variables


def _carry_out_on_node(task: Task, device: str, threads: int, told: Any) -> Done | Exception:
    """Runs on a node. An error is returned and not raised, since Ray would wrap it into an error of its own."""
    prepare_process(device, threads)
    try:
        return carry_out(task, device, lambda tick: told.put.remote(tick.fingerprint, tick.iterations))
    except Exception as error:
        return error


def _mailbox(ray: Any) -> Any:
    """An actor that holds progress until it is asked for."""

    # Defined here so that it travels by value: its process need not import torch.
    class Mailbox:
        def __init__(self) -> None:
            self.told: list[tuple[str, int]] = []

        def put(self, fingerprint: str, iterations: int) -> None:
            self.told.append((fingerprint, iterations))

        def take(self) -> list[tuple[str, int]]:
            told, self.told = self.told, []
            return told

    return ray.remote(num_cpus=0, max_restarts=-1)(Mailbox)


def _reach(address: str) -> None:
    """Raises InputError if nothing listens at HOST:PORT, which Ray itself takes minutes to notice."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        if address == "auto":
            return
        raise InputError(f"--ray {address}: use auto, local, HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"--ray {address}: no Ray cluster answers there ({_first_line(error)})") from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
