"""The part of `make bench-gpu` with several trainings on one GPU, with and without NVIDIA's Multi-Process Service."""

import atexit
import statistics
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch.multiprocessing import get_context

from protocols.training.torch_state import isolated_random_numbers, use_precision
from reproduce.execution.devices import prepare_process
from reproduce.execution.mps import multi_process_service
from tests.benchmarks.gpu_parts import LeftOutError, Note, Piece, Setup, steps_per_second, training_step

ANSWER_SECONDS = 120


def side_by_side(setup: Setup) -> dict[str, Piece]:
    """Steps a second of 2 and 4 trainings on one GPU together, as those of `steps`."""
    groups = _Groups(setup)
    atexit.register(groups.close)

    def piece(processes: int, mps: bool, kind: tuple[str, int, str], note: Note) -> None:
        use_precision(kind[2])  # type: ignore[arg-type]  # for the origin of the numbers; each process sets its own
        rates = groups.of(processes, mps).rates(kind)
        note({"sum": sum(rates), "each": rates})

    pieces: dict[str, Piece] = {}
    for mps in (False, True):
        for processes in (2,) if setup.smoke else (2, 4):
            for kind in setup.kinds:
                trunk, batch, precision = kind
                name = f"{trunk}, batch {batch}, {precision}, {processes} processes {'with' if mps else 'without'} MPS"
                pieces[name] = partial(piece, processes, mps, kind)
    return pieces


class _Groups:
    """The processes that are running. They are kept for the next piece with the same number of them."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._open = ExitStack()
        self._running: tuple[tuple[int, bool], _Group] | None = None
        self._without_mps = False

    def of(self, processes: int, mps: bool) -> "_Group":
        if self._running is None or self._running[0] != (processes, mps):
            self.close()
            # Processes see the service if it is there when they start.
            if mps and (self._without_mps or not self._open.enter_context(multi_process_service())):
                self._without_mps = True
                raise LeftOutError("MPS could not be started on this machine")
            group = _Group(processes, self._setup)
            self._open.callback(group.close)
            self._running = (processes, mps), group
        return self._running[1]

    def close(self) -> None:
        self._running = None
        self._open.close()


class _Group:
    """Processes that make steps at the same time."""

    def __init__(self, processes: int, setup: Setup) -> None:
        context = get_context("spawn")
        self._processes, self._ends = [], []
        for _ in range(processes):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, setup), daemon=True)
            process.start()
            there.close()
            self._processes.append(process)
            self._ends.append(here)

    def rates(self, kind: tuple[str, int, str]) -> list[float]:
        """Steps a second of each process. They begin together, when all are ready."""
        self._ask(kind)
        return self._ask("go")

    def _ask(self, order: Any) -> list[Any]:
        for end in self._ends:
            end.send(order)
        answers = []
        for end in self._ends:
            if not end.poll(ANSWER_SECONDS):
                raise RuntimeError(f"a process gave no answer for {ANSWER_SECONDS} seconds")
            answers.append(end.recv())
        if errors := [answer for answer in answers if isinstance(answer, str)]:
            raise RuntimeError(errors[0])
        return answers

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()


def _serve(orders: Connection, setup: Setup) -> None:
    """In each process: make the step that is named, say so, and measure it when told. An error is sent as a string."""
    prepare_process(str(setup.device))
    while True:
        kind = orders.recv()
        try:
            with isolated_random_numbers(str(setup.device)):
                step = training_step(*kind, setup)
                step()
                orders.send(0.0)
                orders.recv()
                orders.send(statistics.median(steps_per_second(step, setup.device, 0.1 if setup.smoke else 3)))
        except Exception as error:
            orders.send(f"{type(error).__name__}: {error}".partition("\n")[0])
            return
        # What this process keeps of the GPU's memory, the others lack at the next kind of step.
        del step
        torch.cuda.empty_cache()
