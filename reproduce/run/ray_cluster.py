"""An executor that runs tasks on the nodes of a Ray cluster.

Ray is optional and is imported only for `--ray`. This machine must belong to the cluster. All nodes must see the
checkout, the cache and the artifacts at the same paths on a shared file system: images and checkpoints are exchanged as
files, never through Ray. Every node uses as many threads per training as this machine would, so that the numbers equal
those of a run without Ray (on the same kind of processor).
"""

import logging
import math
import os
import pickle
import socket
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from protocols.machine.kernels import kernel_variables
from protocols.machine.processes import GPU_THREADS, THREAD_VARIABLES, threads_per_training
from protocols.trunks.trunk_entry import WEIGHTS_VARIABLE
from reproduce.errors import InputError, WorkFailedError
from reproduce.run.devices import full_gpu, is_full, prepare_process
from reproduce.run.tasks import Task, TaskResult, WorkerDiedError, is_foreign, run_task
from results.wording import counted, first_line

_CHECKOUT = Path(__file__).resolve().parents[2]
_REACH_SECONDS = 10


class RayCluster:
    """Runs tasks on all nodes of a Ray cluster. Ray gives each task its cores and its share of a GPU.

    Args:
        address: `auto` or `HOST:PORT`.
        device: cpu, cuda, or auto for cuda if a node has a GPU.
        workers: Trainings at the same time at most; None for one per GPU, or on CPUs for as many as the cores allow.
        folders: Folders that all nodes must share, besides this checkout.

    Raises:
        InputError: The cluster cannot be used; the message is one line.
    """

    def __init__(self, address: str, device: str, workers: int | None, folders: tuple[Path, ...]) -> None:
        self._ray = import_ray()
        if address != "auto":
            _reach(address)
        variables = {"env_vars": environment_of_workers(threads_per_training())}
        try:
            self._ray.init(address=address, runtime_env=variables, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError, ValueError, ImportError, self._ray.exceptions.RayError) as error:
            hint = "start one with `ray start --head`; if it has a token, set RAY_AUTH_MODE=token"
            raise InputError(f"--ray {address}: {first_line(error)}; {hint}") from error
        try:
            room = room_in(self._ray.nodes(), device, workers, threads_per_training())
        except InputError:
            self.close()
            raise
        self.device, self.workers, self.sharing = room.device, room.workers, room.sharing
        self._room, self._folders = room, folders
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        # A process that has used one GPU cannot switch to another, and one with foreign code gets no other task.
        variables = {"env_vars": dict.fromkeys(THREAD_VARIABLES, str(room.threads))}
        options = {"num_cpus": room.threads, "num_gpus": 1 / room.sharing if room.sharing else 0, "max_retries": 0}
        self._once = self._ray.remote(**options, max_calls=1, runtime_env=variables)(_run_on_node)
        self._often = self._ray.remote(**options, runtime_env=variables)(_run_on_node)

    def submit(self, task: Task) -> "Future[TaskResult]":
        """Give the task to Ray, which starts it when there is room."""
        run, room = self._once if self._room.sharing or is_foreign(task) else self._often, self._room
        try:
            # Without this check Ray would start a new cluster.
            if not self._ray.is_initialized():
                raise ConnectionError("the connection is closed")
            ref = run.remote(pickle.dumps(task), room, self._folders)
        except (OSError, RuntimeError, self._ray.exceptions.RayError) as error:
            raise WorkFailedError(
                f"the Ray cluster is lost ({first_line(error)}); everything finished is kept, run the same command to "
                "continue"
            ) from error
        future: Future[TaskResult] = Future()
        ref.future().add_done_callback(partial(_settle, future))
        return future

    def close(self) -> None:
        """End the connection with all its trainings."""
        self._ray.shutdown()


def import_ray() -> Any:
    """Import the package Ray; raise InputError if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise InputError(f"--ray: Ray is not installed ({error}); run `pip install ray`") from error
    return ray


def _reach(address: str) -> None:
    """Raise InputError if nothing listens at HOST:PORT. Ray itself would need minutes to notice that."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or "/" in host:
        raise InputError(f"--ray {address}: use auto or HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"--ray {address}: no Ray cluster answers at this address ({first_line(error)})") from error


@dataclass(frozen=True)
class Room:
    """The capacity of a cluster for trainings.

    Attributes:
        device: cpu or cuda.
        workers: How many trainings run at the same time.
        sharing: How many trainings share a GPU; 0 on CPUs.
        threads: Threads and cores of each training.
    """

    device: str
    workers: int
    sharing: int
    threads: int


def room_in(nodes: Sequence[dict[str, Any]], device: str, workers: int | None, cpu_threads: int) -> Room:
    """Apply `--device` and `--workers` to Ray's list of nodes; raise InputError if no node can run a training.

    A training has `cpu_threads` cores on a CPU, and `GPU_THREADS` beside a GPU. Without a number of workers there is
    one per GPU, or on CPUs as many as the cores allow. If there are more workers than GPUs, each GPU is shared by the
    same number of trainings, rounded up. Workers for which a node has no cores are left out, since Ray would fill some
    GPUs and leave others idle.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"device {device!r}: with --ray use cpu, cuda or auto; Ray chooses which GPU")
    amounts = [node["Resources"] for node in nodes if node["Alive"]]
    places = [(int(each.get("CPU", 0)) // GPU_THREADS, int(each.get("GPU", 0))) for each in amounts]
    gpus = sum(min(place) for place in places)
    if device != "cpu" and gpus:
        wanted = workers or gpus
        sharing = math.ceil(min(wanted, sum(cores for cores, here in places if here)) / gpus)
        at_most = sum(min(cores, sharing * here) for cores, here in places)
        return Room("cuda", min(wanted, at_most), sharing, GPU_THREADS)
    by_cores = sum(int(each.get("CPU", 0)) // cpu_threads for each in amounts)
    if device == "cuda" or not by_cores:
        needs = f"{counted(GPU_THREADS, 'core')} and a GPU" if device == "cuda" else counted(cpu_threads, "core")
        raise InputError(f"--ray: no node of the cluster has {needs} for a training on {device.replace('auto', 'cpu')}")
    return Room("cpu", workers or by_cores, 0, cpu_threads)


def environment_of_workers(threads: int) -> dict[str, str]:
    """Return the nodes' environment variables: threads, kernels, and where modules and weights are found."""
    folders = [str(_CHECKOUT), os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    variables = dict.fromkeys(THREAD_VARIABLES, str(threads)) | kernel_variables()
    # Trunks are loaded from torch.hub's folder, which may differ between the nodes' home folders.
    variables |= {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(str(Path(folder).absolute()) for folder in folders)),
        "TORCH_HOME": str(Path(torch.hub.get_dir()).parent.absolute()),
    }
    if weights := os.environ.get(WEIGHTS_VARIABLE):
        variables[WEIGHTS_VARIABLE] = str(Path(weights).expanduser().absolute())
    return variables


def _run_on_node(task: bytes, room: Room, folders: tuple[Path, ...]) -> TaskResult | Exception:
    """Run a task on a node. An error is returned and not raised, since Ray wraps errors into its own."""
    sharing = max(1, room.sharing)
    for folder in folders:
        if not folder.is_dir():
            return InputError(
                f"--ray: node {socket.gethostname()} does not see {folder}; the cache, the artifacts and the checkout "
                "must lie on a file system that all nodes share (--cache, --artifacts)"
            )
    try:
        prepare_process(room.device, room.threads, sharing)
        return run_task(pickle.loads(task), room.device)
    except Exception as error:
        return full_gpu(error, room.device, sharing) if is_full(error) else error


def _settle(future: "Future[TaskResult]", done: "Future[TaskResult | Exception]") -> None:
    try:
        outcome = done.result()
    except Exception as error:
        outcome = WorkerDiedError(f"{type(error).__name__}, {first_line(error)}")
        if "ModuleNotFoundError" in str(error):
            outcome = InputError(
                f"--ray: a node cannot import this suite; it must see {_CHECKOUT} and have the same packages installed"
            )
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
