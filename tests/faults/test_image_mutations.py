"""Damaged image files: each is decoded whole or named in one line, and its header never stops the reading."""

import io
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from protocols.images.decoding import BrokenImageError, decode, header_of

MODES = {
    "PNG": ["RGB", "P", "LA", "I;16"],
    "JPEG": ["RGB", "CMYK"],
    "TIFF": ["RGB", "I;16"],
    "GIF": ["P"],
    "BMP": ["RGB"],
}


def encoded(kind: str, mode: str) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 255, (12, 9, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257) if mode == "I;16" else image.convert(mode)
    content = io.BytesIO()
    image.save(content, kind)
    return content.getvalue()


WHOLE = [encoded(kind, mode) for kind, modes in MODES.items() for mode in modes]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An image with some bytes changed, most often in its head, and sometimes cut, doubled or extended."""
    content = bytearray(draw(st.sampled_from(WHOLE)))
    for _ in range(draw(st.integers(1, 6))):
        head = draw(st.sampled_from([64, len(content)]))
        content[draw(st.integers(0, min(head, len(content)) - 1))] = draw(st.integers(0, 255))
    start = draw(st.integers(0, len(content)))
    cut = {
        "whole": content,
        "cut": content[:start],
        "doubled": content[:start] + content,
        "longer": content + b"\xff" * 9,
    }
    return bytes(cut[draw(st.sampled_from(["whole", "whole", *cut]))])


def decoded_or_named(folder: Path, content: bytes) -> None:
    path = folder / "image"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        header_of(path)
        message = ""
        try:
            pixels = decode(path, 8)
        except BrokenImageError as error:
            message = str(error)
        else:
            assert (pixels.dtype, pixels.ndim, pixels.shape[2]) == (np.uint8, 3, 3)
    assert "\n" not in message
    assert not message or str(path) in message


def test_the_undamaged_images_are_decoded(tmp_path):
    for number, content in enumerate(WHOLE):
        path = tmp_path / str(number)
        path.write_bytes(content)
        assert min(decode(path, 8).shape[:2]) == 8


same_folder = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=200, derandomize=True, deadline=None, suppress_health_check=same_folder)
@given(content=damaged())
def test_some_damaged_images(tmp_path, content):
    decoded_or_named(tmp_path, content)


@pytest.mark.faults
@settings(max_examples=1000, deadline=None, suppress_health_check=same_folder)
@given(content=damaged())
def test_a_thousand_damaged_images(tmp_path, content):
    decoded_or_named(tmp_path, content)
