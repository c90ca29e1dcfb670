"""The second process that draws a part of a page's figures."""

import os
import signal
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children

import pytest

from reports.page.build import build_page
from reproduce.outputs import drawing_helper as module
from reproduce.outputs.drawing_helper import drawing_helper
from reproduce.outputs.page import write_page
from reproduce.storage import open_store, storage_paths
from tests.support.page_material import A, B, exhibit, material, search, values
from tests.support.sample_records import some_run, some_summary


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(module.os, "cpu_count", lambda: 2)


def test_the_helper_ignores_ctrl_c_and_ends_with_the_block_even_if_it_is_busy():
    others = active_children()
    with drawing_helper() as helper:
        assert signal.SIGINT in helper.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result()
        number = helper.submit(os.getpid).result()
        never = helper.submit(signal.pause)
        assert number in [process.pid for process in active_children()]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert [process for process in active_children() if process not in others] == []
    assert never.exception() is not None


def test_with_one_core_there_is_no_helper(monkeypatch):
    monkeypatch.setattr(module.os, "cpu_count", lambda: 1)
    with drawing_helper() as helper:
        assert helper is None


@pytest.mark.slow
def test_a_second_process_draws_the_same_figures():
    shown = material(values(a=A, b=B), exhibits={"a": exhibit()}, searches={"a": search()})
    with drawing_helper() as helper:
        built = build_page(shown, helper)
    assert {"tsne_test_a", "search_a_history"} <= {figure.name for figure in built.figures}
    assert built == build_page(shown)


class KilledHelper(Executor):
    """A helper whose process was killed."""

    def submit(self, fn, /, *args, **kwargs):
        raise BrokenProcessPool


def test_without_the_helper_the_page_is_drawn_here(tmp_path):
    where = storage_paths(str(tmp_path / "store.sqlite"), None, None, None)
    store = open_store(where)
    store.put_experiment("e" * 32, "tiny", some_summary(methods={"triplet": "Triplet"}, trials=0))
    store.put_run(run := some_run("triplet", 0, 0.5))
    store.enlist("e" * 32, "triplet", run)
    assert write_page("tiny", "e" * 32, store, where, tmp_path, KilledHelper()).is_file()
