"""Figures that another process draws, or this one if the other is busy."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, get_ident

from reports.page.sections.drawn_figure import Drawn
from reports.page.shared_drawing import begin


def figures(names: str, suffix: str = ""):
    """Figures with the names of the letters; the SVG tells the thread that drew them."""
    for name in names:
        yield Drawn(name + suffix, str(get_ident()), None, None)


def test_without_a_helper_everything_is_drawn_here_when_it_is_wanted():
    begun = begin(None, figures, "ab", suffix="1")
    assert [figure.name for figure in begun()] == ["a1", "b1"]


def test_an_idle_helper_draws():
    with ThreadPoolExecutor(1) as idle:
        (figure,) = begin(idle, figures, "a")()
    assert figure.svg != str(get_ident())


def test_what_a_busy_helper_has_not_begun_is_drawn_here():
    go_on = Event()
    with ThreadPoolExecutor(1) as busy:
        busy.submit(go_on.wait)
        try:
            (figure,) = begin(busy, figures, "a")()
        finally:
            go_on.set()
    assert figure == Drawn("a", str(get_ident()), None, None)
