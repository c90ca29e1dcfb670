"""Damaged images in a folder: they are read, refused in one line that names the file, or left out on request."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.listing import DataError
from protocols.images.packing import BrokenImageError
from tests.support.image_folders import data_request, make_folder

SAME_FOLDER = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
"""Checks of hypothesis that do not hold where all examples of a test use one folder, as they are meant to."""


FORMATS = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp", "BMP": "bmp", "GIF": "gif", "TIFF": "tif"}
MODES = {"PNG": ("RGB", "L", "RGBA", "P", "I;16", "1"), "JPEG": ("RGB", "L", "CMYK"), "TIFF": ("RGB", "F", "I;16")}
WHOLE = 23
"""Images of the folder beside the damaged one."""


def image_bytes(kind: str, mode: str) -> bytes:
    """An image of 12 x 9 pixels as a file."""
    pixels = np.arange(9 * 12 * 3, dtype=np.uint8).reshape(9, 12, 3)
    plain = Image.fromarray(pixels)
    image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 200) if mode == "I;16" else plain.convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


@st.composite
def damaged_images(draw: st.DrawFn) -> tuple[str, bytes]:
    """The suffix and the bytes of an image, in which up to four places are changed, cut or doubled."""
    kind = draw(st.sampled_from(list(FORMATS)))
    content = image_bytes(kind, draw(st.sampled_from(MODES.get(kind, ("RGB",)))))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 30)))
        content = content[:start] + draw(st.binary(max_size=8) | st.just(content[start:end] * 2)) + content[end:]
    # A file can have the suffix of another format.
    return draw(st.sampled_from([FORMATS[kind]] * 5 + list(FORMATS.values()))), content


def open_with_damaged_image(folder: Path, suffix: str, content: bytes) -> None:
    root, name = folder / "images", f"damaged.{suffix}"
    for old in (root / "class_0").glob("damaged.*"):
        old.unlink()
    (root / "class_0" / name).write_bytes(content)
    try:
        read = len(open_dataset(data_request(root, folder / "cache")).images.labels)
        refusal = ""
    except (DataError, BrokenImageError) as error:
        read, refusal = None, str(error)
    assert not refusal or name in refusal
    assert "\n" not in refusal
    left = len(open_dataset(data_request(root, folder / "cache", skip_broken_images=True)).images.labels)
    assert (read, left) in [(None, WHOLE), (WHOLE + 1, WHOLE + 1)]


@pytest.fixture
def folder(tmp_path):
    """A folder of images in which one of 24 is missing."""
    make_folder(tmp_path / "images", per_class=3)
    (tmp_path / "images" / "class_0" / "0.png").unlink()
    return tmp_path


@settings(max_examples=25, derandomize=True, suppress_health_check=SAME_FOLDER)
@given(image=damaged_images())
def test_some_damaged_images(folder, image):
    open_with_damaged_image(folder, *image)


@pytest.mark.faults
@settings(max_examples=1000, suppress_health_check=SAME_FOLDER)
@given(image=damaged_images())
def test_a_thousand_damaged_images(folder, image):
    open_with_damaged_image(folder, *image)
