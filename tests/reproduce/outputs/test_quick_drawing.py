"""A page that is drawn on two cores."""

import gc
import signal
from concurrent.futures.process import BrokenProcessPool

import pytest

from reports.page.build import build_page
from reproduce.outputs import quick_drawing
from tests.support.page_material import A, B, exhibit, material, values


@pytest.fixture
def shown():
    return material(values(a=A, b=B), exhibits={"a": exhibit()})


@pytest.mark.slow
def test_a_second_process_draws_the_same_figures(shown):
    here, quick = build_page(shown), quick_drawing.build_quickly(shown)
    assert [figure.name for figure in quick.figures if "map" in figure.name] != []
    assert quick == here


def test_without_the_helper_the_figures_are_drawn_here(shown, monkeypatch):
    drawn = []

    def fails_with_a_helper(given, helper=None):
        drawn.append(helper is not None)
        if helper is not None:
            raise BrokenProcessPool
        return "the page"

    monkeypatch.setattr(quick_drawing, "build_page", fails_with_a_helper)
    monkeypatch.setattr(quick_drawing.os, "cpu_count", lambda: 2)
    assert quick_drawing.build_quickly(shown) == "the page"
    assert drawn == [True, False]


def test_the_helper_does_not_see_ctrl_c(shown, monkeypatch):
    monkeypatch.setattr(
        quick_drawing,
        "build_page",
        lambda given, helper: helper.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result(),
    )
    monkeypatch.setattr(quick_drawing.os, "cpu_count", lambda: 2)
    assert signal.SIGINT in quick_drawing.build_quickly(shown)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_the_garbage_collector_has_its_own_settings_afterwards(monkeypatch):
    before, inside = gc.get_threshold(), []
    monkeypatch.setattr(quick_drawing, "build_page", lambda given: inside.append(gc.get_threshold()))
    quick_drawing.build_quickly(material(values(a=A, b=B)))
    assert inside[0] != before
    assert gc.get_threshold() == before
