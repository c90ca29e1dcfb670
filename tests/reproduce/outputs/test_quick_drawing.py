"""A page that is drawn on two cores."""

import gc
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool

import pytest

from reports.page.build import build_page
from reproduce.outputs import quick_drawing
from reproduce.outputs.drawing_helper import drawing_helper
from tests.support.page_material import A, B, exhibit, material, search, values


@pytest.fixture
def shown():
    return material(values(a=A, b=B), exhibits={"a": exhibit()}, searches={"a": search()})


def test_a_second_process_draws_the_same_figures(shown):
    here = build_page(shown)
    with drawing_helper() as helper:
        quick = quick_drawing.build_quickly(shown, helper)
    assert {"tsne_test_a", "search_a_history"} <= {figure.name for figure in quick.figures}
    assert quick == here


class KilledHelper(Executor):
    """A helper whose process was killed."""

    def submit(self, fn, /, *args, **kwargs):
        raise BrokenProcessPool


def test_without_the_helper_the_figures_are_drawn_here(shown):
    assert quick_drawing.build_quickly(shown, KilledHelper()) == build_page(shown)


def test_the_garbage_collector_has_its_own_settings_afterwards(monkeypatch):
    before, inside = gc.get_threshold(), []
    monkeypatch.setattr(quick_drawing, "build_page", lambda given, helper: inside.append(gc.get_threshold()))
    quick_drawing.build_quickly(material(values(a=A, b=B)))
    assert inside[0] != before
    assert gc.get_threshold() == before
