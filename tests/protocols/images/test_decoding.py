"""Decoding: deep grey images are refused, ordinary ones stay as they are, users' own are upright, on white ground."""

import hashlib

import numpy as np
import pytest
from PIL import Image, ImageOps, features

from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.folder import SUFFIXES
from protocols.images.packing import BrokenImageError, content_hash, pack_files
from tests.support.image_folders import data_request, make_cub, make_folder
from tests.support.packs import decode

GREY = np.random.default_rng(3).integers(0, 200, (9, 14), dtype=np.uint8)
COLOURS = np.random.default_rng(4).integers(0, 200, (9, 14, 3), dtype=np.uint8)
INSIDE = np.add.outer((np.arange(9) - 4) ** 2, (np.arange(14) - 7) ** 2) < 12
ORIENTATION = 274


def with_alpha(picture, alpha=INSIDE):
    picture.putalpha(Image.fromarray(np.where(alpha, 255, 0).astype(np.uint8)))
    return picture


def save_rgba(path):
    with_alpha(Image.fromarray(COLOURS)).save(path, lossless=True)
    return COLOURS


def save_palette(path):
    """Palette entry 255 is transparent; the others are their own grey level."""
    picture = Image.fromarray(np.where(INSIDE, GREY, 255).astype(np.uint8), "P")
    picture.putpalette([level for grey in range(256) for level in [grey] * 3])
    picture.save(path, transparency=255)
    return np.repeat(GREY[..., None], 3, axis=2)


def save_grey_value(path):
    Image.fromarray(np.where(INSIDE, GREY, 255).astype(np.uint8)).save(path, transparency=255)
    return np.repeat(GREY[..., None], 3, axis=2)


def save_colour_value(path):
    Image.fromarray(np.where(INSIDE[..., None], COLOURS, 255).astype(np.uint8)).save(path, transparency=(255, 255, 255))
    return COLOURS


TRANSPARENT = {
    "rgba": ("png", save_rgba),
    "rgba.webp": ("webp", save_rgba),
    "palette": ("png", save_palette),
    "grey value": ("png", save_grey_value),
    "colour value": ("png", save_colour_value),
}


@pytest.mark.parametrize("kind", TRANSPARENT)
def test_what_is_transparent_is_white(tmp_path, kind):
    suffix, save = TRANSPARENT[kind]
    path = tmp_path / f"image.{suffix}"
    seen = np.where(INSIDE[..., None], save(path), 255)
    assert (decode(path, None) == seen).all()


def test_a_half_transparent_colour_is_mixed_with_white(tmp_path):
    Image.new("RGBA", (4, 4), (100, 0, 255, 51)).save(tmp_path / "image.png")
    assert decode(tmp_path / "image.png", None)[0, 0].tolist() == [224, 204, 255]


def turned(path, value):
    exif = Image.Exif()
    exif[ORIENTATION] = value
    Image.fromarray(COLOURS).save(path, exif=exif)


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tif", "avif"])
def test_pictures_are_turned_upright(tmp_path, suffix, value):
    if suffix == "avif" and not features.check("avif"):
        pytest.skip("this Pillow has no AVIF")
    path = tmp_path / f"image.{suffix}"
    turned(path, value)
    expected = np.asarray(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))
    assert expected.shape == ((9, 14, 3) if value < 5 else (14, 9, 3))
    for resize in (None, 6, 20):
        packed = pack_files(tmp_path, [path.name], resize, tmp_path / f"pack{resize}")
        assert (packed.image(0) == decode(path, resize)).all()
    assert (decode(path, None) == expected).all()
    if suffix != "tif":  # Pillow turns TIFF files itself.
        assert decode(path, None, as_mlrc=True).shape == (9, 14, 3)


def test_only_a_picture_that_becomes_another_one_gets_another_content_hash(tmp_path):
    Image.fromarray(COLOURS).save(tmp_path / "plain.png")
    with_alpha(Image.fromarray(COLOURS), np.ones_like(INSIDE)).save(tmp_path / "opaque.png")
    with_alpha(Image.fromarray(COLOURS)).save(tmp_path / "transparent.png")
    turned(tmp_path / "upright.jpg", 1)
    turned(tmp_path / "turned.jpg", 6)
    for name in ("plain.png", "opaque.png", "transparent.png", "upright.jpg", "turned.jpg"):
        before = hashlib.sha256(hashlib.sha256((tmp_path / name).read_bytes()).digest()).hexdigest()
        packing = pack_files(tmp_path, [name], None, tmp_path / "packs" / name)
        assert (content_hash(packing) != before) == (name in ("transparent.png", "turned.jpg"))
        as_mlrc = pack_files(tmp_path, [name], None, tmp_path / "packs" / name, as_mlrc=True)
        assert content_hash(as_mlrc) == before
        assert as_mlrc.folder != packing.folder


@pytest.mark.parametrize("name", ["folder", "cub200"])
def test_only_a_folder_of_ones_own_is_decoded_as_people_see_it(tmp_path, name):
    root = (make_folder if name == "folder" else make_cub)(tmp_path / "photos")
    first = sorted((*root.rglob("*.png"), *root.rglob("*.jpg")))[0]
    turned(first, 6)
    dataset = open_dataset(data_request(root, tmp_path / "cache", name))
    assert dataset.images.image(0).shape == ((12, 8, 3) if name == "folder" else (8, 12, 3))


# Suffixes

UNREADABLE = {
    *(".bufr", ".grib", ".h5", ".hdf"),  # Need a handler that another package installs.
    *(".emf", ".wmf"),  # Only on Windows.
    *(".eps", ".ps"),  # Run another program.
    *(".mpeg", ".mpg"),  # Are only recognised.
}


def test_every_suffix_that_pillow_decodes_counts():
    Image.init()
    opened = {suffix for suffix, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    assert opened - SUFFIXES == opened & UNREADABLE
    assert SUFFIXES.isdisjoint(UNREADABLE)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint16])
def test_other_numbers_than_bytes_are_refused_by_name(tmp_path, kind):
    path = tmp_path / "image.tif"
    Image.fromarray(GREY.astype(kind)).save(path)
    with pytest.raises(BrokenImageError, match=r"image\.tif: .*more than 8 bits.*; convert it to 8 bits") as raised:
        pack_files(tmp_path, [path.name], None, tmp_path / "pack")
    assert "\n" not in str(raised.value)
    assert pack_files(tmp_path, [path.name], None, tmp_path / "pack", skip_broken=True).broken.tolist() == [0]


@pytest.mark.parametrize("suffix", ["png", "tif"])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_ordinary_images_are_those_of_pillow(tmp_path, mode, suffix):
    if (mode, suffix) == ("CMYK", "png"):
        pytest.skip("PNG has no CMYK")
    path = tmp_path / f"image.{suffix}"
    picture = with_alpha(Image.fromarray(COLOURS))
    (picture.convert("RGB").convert(mode) if mode in ("P", "CMYK", "1") else picture.convert(mode)).save(path)
    expected = Image.open(path).convert("RGB")
    assert (decode(path, None, as_mlrc=True) == np.asarray(expected)).all()
    if mode not in ("LA", "RGBA"):
        assert (decode(path, None) == np.asarray(expected)).all()
