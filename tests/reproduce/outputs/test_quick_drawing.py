"""A page that is drawn with fewer searches for garbage."""

import gc

from reproduce.outputs import quick_drawing
from tests.support.page_material import A, B, material, values


def test_the_garbage_collector_has_its_own_settings_afterwards(monkeypatch):
    before, inside = gc.get_threshold(), []
    monkeypatch.setattr(quick_drawing, "build_page", lambda given: inside.append(gc.get_threshold()))
    quick_drawing.build_quickly(material(values(a=A, b=B)))
    assert inside[0] != before
    assert gc.get_threshold() == before
