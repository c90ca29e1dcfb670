"""What all tests share. Nothing here imports torch or numpy, or trains, before a test asks for it."""

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from protocols.machine.kernels import pin_kernels
from tests.support.durations import mark_and_order

if TYPE_CHECKING:
    from tests.support.command_line import Answer
    from tests.support.tiny_run import GlyphRun

# While tests are collected, hardly anything that is made goes, and looking for it takes half of the time.
gc.disable()

# The kernels that commands run under, and one thread for torch, here and in processes that tests start: they are small,
# and sums are the same on every machine.
pin_kernels()
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

# No test fails for time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background, the tests ignore Ctrl-C, and so would the jobs that they start and cancel.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, order by what is shared, and skip what needs a GPU where there is none."""
    mark_and_order(items)
    for_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if for_gpu:
        import torch

        if not torch.cuda.is_available():
            for item in for_gpu:
                item.add_marker(pytest.mark.skip(reason="needs a GPU"))


def pytest_collection_finish() -> None:
    """What was collected stays, so that neither this process nor those that tests fork look through it again."""
    gc.enable()
    gc.freeze()


@pytest.fixture
def same_threads_afterwards() -> Iterator[None]:
    """For tests of code that sets the number of threads: the tests after them get the number back."""
    import torch

    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def say(capsys, monkeypatch, tmp_path, same_threads_afterwards) -> "Callable[..., Answer]":
    """The command line, in an empty folder."""
    from tests.support.command_line import ask

    monkeypatch.chdir(tmp_path)
    return lambda *words, **options: ask(*map(str, words), capsys=capsys, monkeypatch=monkeypatch, **options)


@pytest.fixture
def forked_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes for users' code have this one's modules; those of a run import the suite and torch's optimizers."""
    import torch._dynamo  # noqa: F401

    gc.collect()  # Or a forked process would end the executor of an earlier test, and wait for its locks.
    fork = multiprocessing.get_context("fork")
    monkeypatch.setattr("protocols.machine.processes.processes", lambda: fork)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `images`, `tiny.yaml` and its finished run in `runs`, tracked by TensorBoard."""
    from tests.support.tiny_run import finished_run

    return finished_run(tmp_path_factory.mktemp("tiny_run"))


@pytest.fixture(scope="session")
def glyph_run(tmp_path_factory: pytest.TempPathFactory) -> "GlyphRun":
    """A run on glyphs by two workers, with its page; only read."""
    from tests.support.tiny_run import glyph_run

    return glyph_run(tmp_path_factory.mktemp("glyph_run"))
