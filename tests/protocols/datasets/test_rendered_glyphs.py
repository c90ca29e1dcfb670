"""The embedded dataset is drawn once and then taken from the cache, with the same fingerprint."""

from pathlib import Path

import pytest

from protocols.datasets import glyphs
from protocols.datasets.dataset import DataRequest
from results.spec.conditions import ImageSettings
from results.spec.data_choice import DataChoice


def test_glyphs_are_rendered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = DataRequest(DataChoice(name="glyphs"), ImageSettings(resize=None, crop=32), tmp_path)
    drawn = glyphs.open_glyphs(request)

    def refuse() -> None:
        raise AssertionError("rendered again")

    monkeypatch.setattr(glyphs, "render", refuse)
    cached = glyphs.open_glyphs(request)
    assert cached.fingerprint == drawn.fingerprint
    assert (cached.images.labels == drawn.images.labels).all()
    assert (cached.images.image(7) == drawn.images.image(7)).all()
    assert cached.n_classes >= 200
