"""An executor that runs tasks as job arrays of a SLURM cluster, through submitit.

submitit is optional and is imported only for `--slurm`. All nodes must see the checkout, the Python environment, the
cache and the artifacts at the same paths on a shared file system. Each node checks at the start of its job that it sees
them and has the same code. Every training uses as many threads as it would on this machine, so that the numbers equal
those of a run without SLURM (on the same kind of processor).
"""

import itertools
import logging
import math
import pickle
import shlex
import shutil
import sys
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, ClassVar
from uuid import uuid4

from protocols.processes import threads_per_training
from reproduce.errors import InputError
from reproduce.execution.clusters.nodes import (
    cannot_import,
    check_kind_of_device,
    code_version,
    environment_of_workers,
    first_line,
    mark,
)
from reproduce.execution.clusters.slurm_job import SlurmBatch, SlurmSettings, outcome_path, progress_path
from reproduce.execution.executor import WorkerDiedError
from reproduce.execution.tasks import Done, Task
from reproduce.monitoring.observer import Tick
from reproduce.storage import StoragePaths

JOBS = 32
"""Jobs at the same time without --workers."""

_POLL_SECONDS = 0.2
_GATHER_SECONDS = 0.4
"""Tasks that are submitted within this time of each other become one job array."""

_END_SECONDS = 10
_NOT_RUNNING = ("PENDING", "REQUEUED", "PREEMPTED", "SUSPENDED")
"""States of jobs that wait until they may run, perhaps again."""


@dataclass(eq=False)
class _Member:
    """A job of an array: the futures of its tasks that have no outcome yet, by number.

    Attributes:
        read: How many bytes of a task's progress were read, by the task's number.
        ended_at: When the job was first seen to have ended; None while it waits or runs.
    """

    job: Any
    unfinished: dict[int, "Future[Done]"]
    read: dict[int, int] = field(default_factory=dict)
    ended_at: float | None = None


class SlurmArrays:
    """Carries out tasks as jobs of a SLURM cluster. A thread submits them and collects their outcomes."""

    cluster: ClassVar[str] = "slurm"
    """Name of submitit's executor; tests use its local one."""
    settle_seconds: ClassVar[float] = 15
    """How long an outcome may take to appear on the shared file system after its job ended."""

    def __init__(self, settings: SlurmSettings, device: str, workers: int | None, where: StoragePaths) -> None:
        self.settings, self.device = settings, _checked_device(device, settings)
        self._threads = threads_per_training(self.device)
        self._side_by_side = settings.side_by_side(self._threads) if self.device == "cuda" else 1
        if settings.cpus is not None and settings.cpus < self._threads:
            raise InputError(
                f"--slurm cpus={settings.cpus}: a training has {self._threads} threads; use at least "
                f"cpus={self._threads}"
            )
        self.workers = workers or JOBS
        self.capacity = self.workers * settings.batch
        self._folder = where.artifacts.absolute() / "slurm" / f"{time.strftime('%Y-%m-%d_%H%M%S')}_{uuid4().hex[:8]}"
        self._executor = self._submitit_executor()
        self._marks = (mark(where.cache), mark(where.artifacts))
        self._version = code_version()
        self._numbers = itertools.count()
        self._waiting: list[tuple[Future[Done], Task]] = []
        self._last_submitted = 0.0
        self._members: list[_Member] = []
        self._ticks: SimpleQueue[Tick] = SimpleQueue()
        self._to_end: SimpleQueue[tuple[Future[Done], str]] = SimpleQueue()
        self._keep_logs = False
        self._lock, self._closed = Lock(), Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _submitit_executor(self) -> Any:
        submitit = import_submitit()
        variables = [f"{name}={value}" for name, value in environment_of_workers(self._threads).items()]
        python = shlex.join(["env", *variables, sys.executable])
        settings = self.settings
        # A job whose time ends is requeued as long as it has finished trainings in each of its times.
        times = math.ceil(settings.batch / self._side_by_side)
        limits = {f"{self.cluster}_max_num_timeout": times - 1, f"{self.cluster}_python": python}
        try:
            executor = submitit.AutoExecutor(self._folder, cluster=self.cluster, **limits)
        except RuntimeError as error:
            raise InputError(f"--slurm: jobs cannot be submitted from this machine ({first_line(error)})") from error
        executor.update_parameters(
            name="reproduce",
            timeout_min=settings.time,
            cpus_per_task=settings.cpus or self._threads * self._side_by_side,
            gpus_per_node=settings.gpus,
            slurm_array_parallelism=self.workers,
            **({} if settings.mem is None else {"mem_gb": settings.mem}),
            **({} if settings.partition is None else {"slurm_partition": settings.partition}),
        )
        return executor

    def submit(self, task: Task) -> "Future[Done]":
        """Queue the task for the next job array."""
        future: Future[Done] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            self._waiting.append((future, task))
            self._last_submitted = time.monotonic()
        return future

    def ticks(self) -> list[Tick]:
        """Return the progress that was reported since the last call."""
        ticks = []
        with suppress(Empty):
            while True:
                ticks.append(self._ticks.get_nowait())
        return ticks

    def end(self, future: "Future[Done]", reason: str) -> None:
        """Cancel the job of a task that hangs, with all tasks of its batch. A pre-empted job that waits is kept."""
        self._to_end.put((future, reason))

    def restart(self) -> None:
        """Do nothing: a job that died does not break the others."""

    def close(self) -> None:
        """Cancel all jobs, and remove their files unless a job died and its log may be needed."""
        self._closed.set()
        self._thread.join()
        for member in self._members:
            if member.unfinished and not member.job.done():
                with suppress(OSError):
                    member.job.cancel(check=False)
        end = time.monotonic() + _END_SECONDS
        while any(not member.job.done() for member in self._members) and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
        self._fail([future for member in self._members for future in member.unfinished.values()], "it was cancelled")
        self._fail([future for future, _ in self._waiting], "it was not submitted")
        self._members, self._waiting = [], []
        for path in self._marks:
            path.unlink(missing_ok=True)
        if not self._keep_logs:
            shutil.rmtree(self._folder, ignore_errors=True)

    @staticmethod
    def _fail(futures: "list[Future[Done]]", reason: str) -> None:
        for future in futures:
            future.set_exception(WorkerDiedError(reason))

    def _watch(self) -> None:
        while not self._closed.wait(_POLL_SECONDS):
            self._submit_waiting()
            self._end_hanging()
            for member in list(self._members):
                try:
                    self._collect(member)
                except Exception as error:  # The thread must not end, since the run would wait forever.
                    self._give_up(member, WorkerDiedError(f"its files cannot be read ({first_line(error)})"))

    def _submit_waiting(self) -> None:
        """Submit the waiting tasks as one array, if no task has been added for a moment."""
        with self._lock:
            if not self._waiting or time.monotonic() - self._last_submitted < _GATHER_SECONDS:
                return
            waiting, self._waiting = self._waiting, []
        size = self.settings.batch
        groups = [waiting[start : start + size] for start in range(0, len(waiting), size)]
        numbered = [{next(self._numbers): pair for pair in group} for group in groups]
        batches = [self._batch({number: task for number, (_, task) in group.items()}) for group in numbered]
        try:
            with self._executor.batch():
                jobs = [self._executor.submit(batch) for batch in batches]
        except Exception as error:  # submitit has many errors, and each of them may pass.
            self._fail([future for future, _ in waiting], f"it cannot be submitted ({_last_line(str(error))})")
            return
        for job, group in zip(jobs, numbered, strict=True):
            self._members.append(_Member(job, {number: future for number, (future, _) in group.items()}))

    def _batch(self, tasks: dict[int, Task]) -> SlurmBatch:
        return SlurmBatch(
            tasks,
            self._folder,
            self._marks,
            self._version,
            self.device,
            self._threads,
            self.settings.time,
            self._side_by_side,
        )

    def _collect(self, member: _Member) -> None:
        """Read progress and outcomes of a job. If the job has ended without all outcomes, fail its other tasks."""
        ended = member.job.done()
        if ended and member.ended_at is None:
            member.ended_at = time.monotonic()
        for number, future in list(member.unfinished.items()):
            self._read_progress(member, number)
            path = outcome_path(self._folder, number)
            if path.exists():
                outcome = pickle.loads(path.read_bytes())
                del member.unfinished[number]
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)
        if ended and not member.unfinished:
            self._members.remove(member)
        elif member.ended_at is not None and (error := self._error_of(member, member.ended_at)) is not None:
            self._give_up(member, error)

    def _end_hanging(self) -> None:
        with suppress(Empty):
            while True:
                future, reason = self._to_end.get_nowait()
                for member in list(self._members):
                    if future in member.unfinished.values() and member.job.state.upper() not in _NOT_RUNNING:
                        self._give_up(member, WorkerDiedError(f"job {member.job.job_id}: {reason}"))

    def _read_progress(self, member: _Member, number: int) -> None:
        path = progress_path(self._folder, number)
        if path.exists():
            content = path.read_bytes()
            # The last line may not be complete yet.
            content = content[: content.rfind(b"\n") + 1]
            for line in content[member.read.get(number, 0) :].decode().splitlines():
                fingerprint, iterations = line.split()
                self._ticks.put(Tick(fingerprint, int(iterations)))
            member.read[number] = len(content)

    def _error_of(self, member: _Member, ended_at: float) -> Exception | None:
        """Return why a job ended without all outcomes; None while the outcomes may still appear."""
        paths = member.job.paths
        if paths.result_pickle.exists():
            state, trace = pickle.loads(paths.result_pickle.read_bytes())
            if state == "error":
                reason = _last_line(trace)
                if reason.startswith(("ImportError", "ModuleNotFoundError")):
                    return InputError(f"--slurm: a node {cannot_import(reason)}")
                return WorkerDiedError(f"job {member.job.job_id}: {reason}; log: {paths.stderr}")
        if time.monotonic() - ended_at < self.settle_seconds:
            return None
        return WorkerDiedError(
            f"job {member.job.job_id} ended without a result ({member.job.state}); log: {paths.stderr}"
        )

    def _give_up(self, member: _Member, error: Exception) -> None:
        """Fail the unfinished tasks of a job. SLURM may requeue a job of a broken node, so it is cancelled."""
        self._keep_logs = True
        self._members.remove(member)
        with suppress(OSError):
            member.job.cancel(check=False)
        for future in member.unfinished.values():
            future.set_exception(error)


def import_submitit() -> Any:
    """Import the package submitit; raise InputError if it is not installed."""
    try:
        import submitit
    except ImportError as error:
        raise InputError(f"--slurm: submitit is not installed ({error}); run `pip install submitit`") from error
    # Its messages about a busy cluster would disturb the display of the progress.
    logging.getLogger("submitit").setLevel(logging.ERROR)
    return submitit


def _checked_device(device: str, settings: SlurmSettings) -> str:
    check_kind_of_device(device, "--slurm")
    if device == "cuda" and not settings.gpus:
        raise InputError("--device cuda: the jobs ask for no GPU; add gpus=1 to --slurm")
    return "cuda" if settings.gpus and device != "cpu" else "cpu"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
