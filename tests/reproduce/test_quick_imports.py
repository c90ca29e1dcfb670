"""Imports without searches for garbage."""

import gc
import importlib
import sys
from contextlib import redirect_stdout
from io import StringIO

import pytest

from reproduce.quick_imports import quick_imports


@pytest.fixture(autouse=True)
def thawed():
    yield
    gc.unfreeze()


def test_the_search_for_garbage_pauses_within_the_block():
    with quick_imports():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_stays_paused_where_it_was_paused_before():
    gc.disable()
    try:
        with quick_imports():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_an_import_made_is_set_aside(monkeypatch):
    gc.unfreeze()
    monkeypatch.delitem(sys.modules, "this", raising=False)
    with redirect_stdout(StringIO()), quick_imports():
        made = [[] for _ in range(1000)]
        importlib.import_module("this")
    assert gc.get_freeze_count() >= len(made)


def test_without_a_new_module_nothing_is_set_aside():
    gc.unfreeze()
    with quick_imports():
        importlib.import_module("gc")
    assert gc.get_freeze_count() == 0


def test_after_an_error_the_search_goes_on():
    with pytest.raises(ImportError), quick_imports():
        raise ImportError
    assert gc.isenabled()
