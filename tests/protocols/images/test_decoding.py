"""Decoding: deep grey images are scaled, numbers of unknown range are refused, ordinary images stay as they are."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protocols.images.decoding import BrokenImageError
from protocols.images.packing import pack_files
from tests.support.packs import decode

GREY = np.random.default_rng(3).integers(0, 256, (9, 14), dtype=np.uint8)
COLOURS = np.random.default_rng(4).integers(0, 256, (9, 14, 4), dtype=np.uint8)


def as_grey(pixels: np.ndarray) -> bool:
    return bool((pixels == GREY[..., None]).all())


@pytest.mark.parametrize("factor", [256, 257], ids=["shifted", "repeated"])
@pytest.mark.parametrize("suffix", ["png", "tif", "big-endian.tif", "ppm"])
def test_grey_images_with_16_bits_are_scaled(tmp_path: Path, suffix: str, factor: int) -> None:
    path = tmp_path / f"image.{suffix}"
    values = GREY.astype(np.uint16) * factor
    if suffix == "ppm":
        path.write_bytes(b"P5 14 9 65535\n" + values.astype(">u2").tobytes())
    elif suffix == "big-endian.tif":
        Image.frombytes("I;16B", (14, 9), values.astype(">u2").tobytes()).save(path)
    else:
        Image.fromarray(values).save(path)
    assert as_grey(decode(path, None))


def test_grey_images_with_12_bits_are_scaled(tmp_path: Path) -> None:
    values = GREY.astype(np.uint16) * 16
    pairs = values.reshape(-1, 2)
    packed = np.stack([pairs[:, 0] >> 4, (pairs[:, 0] & 15) << 4 | pairs[:, 1] >> 8, pairs[:, 1] & 255], axis=1)
    tags = {256: 14, 257: 9, 258: 12, 259: 1, 262: 1, 273: 8, 277: 1, 278: 9, 279: packed.size}
    content = packed.astype(np.uint8).tobytes()
    header = b"II*\0" + (8 + len(content)).to_bytes(4, "little")
    entries = b"".join(
        tag.to_bytes(2, "little") + (4).to_bytes(2, "little") + (1).to_bytes(4, "little") + value.to_bytes(4, "little")
        for tag, value in tags.items()
    )
    path = tmp_path / "image.tif"
    path.write_bytes(header + content + (9).to_bytes(2, "little") + entries + bytes(4))
    assert as_grey(decode(path, None))


@pytest.mark.parametrize(("kind", "said"), [(np.float32, "floating point numbers"), (np.int32, "whole numbers of 32")])
def test_numbers_of_unknown_range_are_refused_by_name(tmp_path: Path, kind: type, said: str) -> None:
    path = tmp_path / "image.tif"
    Image.fromarray(GREY.astype(kind)).save(path)
    with pytest.raises(BrokenImageError, match=f"image.tif: .*holds {said}.*; convert it to 8 or 16 bits") as raised:
        pack_files(tmp_path, [path.name], None, tmp_path / "pack")
    assert "\n" not in str(raised.value)
    assert pack_files(tmp_path, [path.name], None, tmp_path / "pack", skip_broken=True).skipped == (path.name,)


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


@pytest.mark.parametrize("kind", ["dangling", "folder"])
def test_what_is_no_file_is_named_or_left_out(tmp_path: Path, kind: str) -> None:
    Image.fromarray(GREY).save(tmp_path / "good.png")
    path = tmp_path / "odd.png"
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere.png")
    names = ["good.png", "odd.png"]
    with pytest.raises(BrokenImageError, match=r"odd\.png: cannot be decoded .*; repair or remove it"):
        pack_files(tmp_path, names, None, tmp_path / "pack")
    assert pack_files(tmp_path, names, None, tmp_path / "pack", skip_broken=True).skipped == ("odd.png",)
