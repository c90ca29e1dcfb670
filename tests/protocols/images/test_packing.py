"""Decoding and packing: pixels as Pillow makes them, changed and broken files."""

import hashlib
import mmap
import os
import pickle
from multiprocessing import get_context

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps, features

from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.folder import SUFFIXES
from protocols.images import packing
from protocols.images.crops import evaluation_batch
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import BrokenImageError, content_hash, decoded, pack_files
from protocols.images.samples import BatchSource
from results.spec.conditions import ImageSettings
from tests.support.image_folders import data_request, make_cub, make_folder, refused
from tests.support.packs import decode, pack_arrays


def _picture(mode, width, height, seed=0):
    generator = np.random.default_rng(seed)
    if mode == "P":
        palette = Image.fromarray(generator.integers(0, 256, (height, width), dtype=np.uint8), "L").convert("P")
        palette.putpalette(generator.integers(0, 256, 768, dtype=np.uint8).tobytes())
        return palette
    bands = len(Image.new(mode, (1, 1)).getbands())
    shape = (height, width) if bands == 1 else (height, width, bands)
    return Image.frombytes(mode, (width, height), generator.integers(0, 256, shape, dtype=np.uint8).tobytes())


def _resized_by_hand(path, target):
    """The plain way: open as RGB, shorter side to `target`, longer side cut to whole pixels."""
    image = Image.open(path).convert("RGB")
    width, height = image.size
    scale = target / min(width, height)
    short, long = target, int(max(width, height) * target / min(width, height))
    assert abs(long - scale * max(width, height)) < 1
    return np.asarray(image.resize((short, long) if width <= height else (long, short), Image.Resampling.BILINEAR))


@pytest.fixture
def pictures(tmp_path):
    root = tmp_path / "pictures"
    root.mkdir()
    names = [f"{i}.png" for i in range(10)]
    for i, name in enumerate(names):
        _picture("RGB", 12 + i, 9 + 2 * i, seed=i).save(root / name)
    return root, names


@pytest.mark.parametrize("resident", [None, True])
def test_enlarged_images_take_the_bytes_of_their_files_and_give_the_same_pixels(tmp_path, resident):
    sizes, target = [(12, 9), (9, 20), (40, 30), (16, 16)], 16
    for number, size in enumerate(sizes):
        _picture("RGB", *size, seed=number).save(tmp_path / f"{number}.png")
    names = [f"{number}.png" for number in range(len(sizes))]
    images = pack_files(tmp_path, names, target, tmp_path / "pack")
    expected = [_resized_by_hand(tmp_path / name, target) for name in names]
    assert (images.folder / "pixels.bin").stat().st_size == 3 * (12 * 9 + 9 * 20 + 21 * 16 + 16 * 16)
    for number, pixels in enumerate(expected):
        assert (images.image(number) == pixels).all()
        assert images.shapes_of(np.array([number])).tolist() == [list(pixels.shape)]
    # Crops of a pack that holds the enlarged images are the same.
    (tmp_path / "enlarged").mkdir()
    for name, pixels in zip(names, expected, strict=True):
        Image.fromarray(pixels).save(tmp_path / "enlarged" / name)
    enlarged = pack_files(tmp_path / "enlarged", names, None, tmp_path / "pack")
    rows, settings = np.arange(len(sizes)), ImageSettings(resize=target, crop=14)
    crops = []
    for pack in (images, enlarged):
        labelled = LabelledImages(rows, rows, pack)
        source = BatchSource(labelled, settings, torch.device("cpu"), resident=resident)
        random = source.training_batch(rows, torch.Generator().manual_seed(0))
        crops.append(torch.cat([random, evaluation_batch(labelled, rows, settings)]))
        assert labelled.n_bytes == sum(pixels.size for pixels in expected)
    assert torch.equal(*crops)


@pytest.mark.parametrize("size", [(40, 30), (17, 90), (7, 5)], ids=str)
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P"])
@pytest.mark.parametrize("target", [24, 33])
def test_pixels_are_those_of_pillow(tmp_path, size, mode, target):
    path = tmp_path / "image.png"
    _picture(mode, *size).save(path)
    packed = pack_files(tmp_path, [path.name], target, tmp_path / "pack", as_mlrc=True)
    expected = _resized_by_hand(path, target)
    assert min(expected.shape[:2]) == target
    assert packed.image(0).shape == expected.shape
    assert (packed.image(0) == expected).all()


def test_a_pack_holds_all_files_in_order(pictures, tmp_path):
    root, names = pictures
    seen = []
    packed = pack_files(root, names, 8, tmp_path / "pack", progress=lambda done, total: seen.append((done, total)))
    assert len(packed) == 10
    assert packed.channels == 3
    assert packed.broken.tolist() == []
    for i, name in enumerate(names):
        assert (packed.image(i) == decode(root / name, 8)).all()
    assert seen[-1] == (10, 10)
    assert packs_in(tmp_path) == [packed.folder]


def packs_in(folder):
    """The complete packs of a folder."""
    return [path for path in folder.glob("pack-*") if path.is_dir()]


def _counting(monkeypatch, fails=lambda path: False):
    """Makes `decoded` write down the files it has finished; raises at those for which `fails`."""
    finished = []

    def counted(path, *, as_mlrc):
        if fails(path):
            raise KeyboardInterrupt
        outcome = decoded(path, as_mlrc=as_mlrc)
        finished.append(path.name)
        return outcome

    monkeypatch.setattr(packing, "decoded", counted)
    return finished


def test_an_existing_pack_is_opened(pictures, tmp_path, monkeypatch):
    root, names = pictures
    first = pack_files(root, names, 8, tmp_path / "pack")
    finished = _counting(monkeypatch)
    assert pack_files(root, names, 8, tmp_path / "pack") == first
    assert finished == []


def test_an_interrupted_packing_leaves_nothing_behind(pictures, tmp_path, monkeypatch):
    root, names = pictures
    uninterrupted = pack_files(root, names, 8, tmp_path / "whole")
    _counting(monkeypatch, fails=lambda path: path.name == "6.png")
    with pytest.raises(KeyboardInterrupt):
        pack_files(root, names, 8, tmp_path / "pack")
    assert packs_in(tmp_path) == []
    stamp = uninterrupted.folder.name.removeprefix("whole")
    (tmp_path / f".pack{stamp}.{0:032x}.partial").mkdir()  # As after a kill.
    _counting(monkeypatch)
    again = pack_files(root, names, 8, tmp_path / "pack")
    assert content_hash(again) == content_hash(uninterrupted)
    assert not list(tmp_path.glob(".*.partial"))


def _rewrite(path, picture):
    """Other content, and a later time stamp even where the clock is coarse."""
    time = path.stat().st_mtime_ns + 10**9
    picture.save(path)
    os.utime(path, ns=(time, time))


@pytest.mark.parametrize("change", ["content", "resize", "files", "order"])
def test_a_changed_dataset_is_packed_anew(pictures, tmp_path, change):
    root, names = pictures
    before = pack_files(root, names, 8, tmp_path / "pack")
    size = 8
    if change == "content":
        _rewrite(root / names[3], _picture("RGB", 15, 15, seed=77))
    elif change == "resize":
        size = 6
    else:
        names = names[:7] if change == "files" else names[::-1]
    after = pack_files(root, names, size, tmp_path / "pack")
    assert len(after) == len(names)
    for i, name in enumerate(names):
        assert (after.image(i) == decode(root / name, size)).all()
    # The hash is of the files' contents, which a resize leaves alone.
    assert (content_hash(after) == content_hash(before)) == (change == "resize")


def _break(path, how):
    if how == "header":
        path.write_bytes(b"this is no image")
    elif how == "kind":  # Pillow takes the format from the content, and raises an error of that format.
        Image.new("P", (8, 8)).save(path, "BLP")
        path.write_bytes(path.read_bytes()[:4] + b"\x63" + path.read_bytes()[5:])
    elif how == "empty":
        path.write_bytes(b"")
    else:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("how", ["header", "empty", "body", "kind"])
def test_a_broken_image_can_be_left_out(pictures, tmp_path, how):
    root, names = pictures
    whole = pack_files(root, names, 8, tmp_path / "whole")
    _break(root / "4.png", how)
    said = f"{root / '4.png'}: cannot be decoded ("
    with refused(said, "; repair or remove it, or leave it out with --skip-broken-images", error=BrokenImageError):
        pack_files(root, names, 8, tmp_path / "pack")
    assert packs_in(tmp_path) == []
    packed = pack_files(root, names, 8, tmp_path / "pack", skip_broken=True)
    assert packed.broken.tolist() == [names.index("4.png")]
    assert content_hash(packed) != content_hash(whole)
    for i, name in enumerate(names):
        if name != "4.png":
            assert (packed.image(i) == decode(root / name, 8)).all()
    assert pack_files(root, names, 8, tmp_path / "pack", skip_broken=True) == packed
    with pytest.raises(BrokenImageError, match=r"4\.png"):
        pack_files(root, names, 8, tmp_path / "pack")


def test_two_processes_that_pack_the_same_folder_both_find_it_whole(pictures):
    root, names = pictures
    arguments = [(root, names, 8, root.parent / "pack")] * 2
    with get_context("fork").Pool(2) as pool:
        first, second = pool.starmap(pack_files, arguments)
    assert content_hash(first) == content_hash(second)
    np.testing.assert_array_equal(first.image(3), second.image(3))


def test_a_run_keeps_its_pack_if_the_images_change(pictures, tmp_path):
    root, names = pictures
    running = pack_files(root, names, 8, tmp_path / "pack")
    before = running.image(0).copy()
    changed = root / "0.png"
    status = changed.stat()
    content = changed.read_bytes()
    _picture("RGB", 12, 9, seed=99).save(changed)
    # Neither the size nor the time of the last change gives it away.
    changed.write_bytes(changed.read_bytes().ljust(len(content), b"\0"))
    os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
    other = pack_files(root, names, 8, tmp_path / "pack")
    assert (pickle.loads(pickle.dumps(running)).image(0) == before).all()
    assert (other.image(0) == decode(root / "0.png", 8)).all()
    assert (other.image(0) != before).any()


def test_a_users_image_is_never_read_through_a_memory_map(tmp_path, monkeypatch):
    """Pillow maps images without compression, and a map of a file that is cut off ends the process."""
    path = tmp_path / "image.pgm"
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8)).save(path)
    monkeypatch.setattr(mmap, "mmap", lambda *_, **__: pytest.fail("mapped"))
    with Image.open(path) as image, pytest.raises(pytest.fail.Exception):
        image.load()
    assert np.array_equal(decode(path, None)[:, :, 0], np.arange(48).reshape(6, 8))


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(0, 256, (12, 5, 4, 3), dtype=np.uint8)


@pytest.fixture
def images(tmp_path, pixels):
    return pack_arrays(pixels, tmp_path / "pack")


def test_images_are_read_only_views_of_the_map_and_pickles_are_the_path_alone(images, pixels):
    assert len(images) == 12
    image = images.image(7)
    assert isinstance(images._pixels.base, np.memmap)
    assert np.shares_memory(image, images._pixels)
    with pytest.raises(ValueError, match="read-only"):
        image[0, 0, 0] = 1
    pickled = pickle.dumps(images)
    assert len(pickled) < 1000, "the pixels travel along"
    copy = pickle.loads(pickled)
    assert copy == images
    assert (copy.image(7) == pixels[7]).all()


def test_a_selection_gives_its_own_images_in_order_and_no_others(images, pixels):
    selection = LabelledImages(np.array([9, 2, 4, 7]), np.array([5, 3, 5, 8]), images)
    for index, row in enumerate([9, 2, 4, 7]):
        assert (selection.image(index) == pixels[row]).all()
    picked = selection.of_classes((8, 5, 6))
    assert (picked.labels.tolist(), picked.rows.tolist()) == ([5, 5, 8], [9, 4, 7])
    assert (picked.image(1) == pixels[4]).all()
    with pytest.raises(IndexError):
        picked.image(3)
    assert len(selection.of_classes(())) == 0


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
