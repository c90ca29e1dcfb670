"""The second process that draws a part of a page's figures."""

import os
import signal
from multiprocessing import active_children

import pytest

from reproduce.outputs import drawing_helper as module
from reproduce.outputs.drawing_helper import drawing_helper


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(module.os, "cpu_count", lambda: 2)


def test_the_helper_does_not_see_ctrl_c():
    with drawing_helper() as helper:
        assert signal.SIGINT in helper.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_the_helper_ends_with_the_block_even_if_it_is_busy():
    others = active_children()
    with drawing_helper() as helper:
        number = helper.submit(os.getpid).result()
        never = helper.submit(signal.pause)
        assert number in [process.pid for process in active_children()]
    assert [process for process in active_children() if process not in others] == []
    assert never.exception() is not None


def test_with_one_core_there_is_no_helper(monkeypatch):
    monkeypatch.setattr(module.os, "cpu_count", lambda: 1)
    others = active_children()
    with drawing_helper() as helper:
        assert helper is None
        assert active_children() == others
