"""Decoding: deep grey images are refused, ordinary images stay as they are."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protocols.images.decoding import BrokenImageError
from protocols.images.packing import pack_files
from tests.support.packs import decode

GREY = np.random.default_rng(3).integers(0, 256, (9, 14), dtype=np.uint8)
COLOURS = np.random.default_rng(4).integers(0, 256, (9, 14, 4), dtype=np.uint8)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint16])
def test_other_numbers_than_bytes_are_refused_by_name(tmp_path: Path, kind: type) -> None:
    path = tmp_path / "image.tif"
    Image.fromarray(GREY.astype(kind)).save(path)
    with pytest.raises(BrokenImageError, match=r"image\.tif: .*more than 8 bits.*; convert it to 8 bits") as raised:
        pack_files(tmp_path, [path.name], None, tmp_path / "pack")
    assert "\n" not in str(raised.value)
    assert pack_files(tmp_path, [path.name], None, tmp_path / "pack", skip_broken=True).broken.tolist() == [0]


@pytest.mark.parametrize("suffix", ["png", "tif"])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_ordinary_images_are_those_of_pillow(tmp_path: Path, mode: str, suffix: str) -> None:
    if (mode, suffix) == ("CMYK", "png"):
        pytest.skip("PNG has no CMYK")
    path = tmp_path / f"image.{suffix}"
    picture = Image.fromarray(COLOURS, "RGBA")
    (picture.convert("RGB").convert(mode) if mode in ("P", "CMYK", "1") else picture.convert(mode)).save(path)
    expected = Image.open(path).convert("RGB")
    assert (decode(path, None, as_mlrc=True) == np.asarray(expected)).all()
    if mode not in ("LA", "RGBA"):
        assert (decode(path, None) == np.asarray(expected)).all()
