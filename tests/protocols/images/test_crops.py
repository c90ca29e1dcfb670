"""Crops against Pillow, pixel for pixel, and against an independent sampler of boxes, in distribution."""

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import ks_2samp

from protocols.images import crops as batched
from protocols.images.crops import Cuts, Rows, centre_crop, evaluation_batch, numbers_of, random_box, resized_boxes
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import pack_files
from protocols.machine.torch_state import use_precision
from results.spec.conditions import ImageSettings
from tests.support.packs import pack_arrays, training_batch


def _images(folder, height, width, channels=3, count=4):
    pixels = np.random.default_rng(1).integers(0, 256, (count, height, width, channels), dtype=np.uint8)
    packed = pack_arrays(pixels, folder / f"pack_{height}_{width}_{channels}")
    return LabelledImages(np.arange(count), np.zeros(count, dtype=np.int64), packed)


def _pillow(image):
    return Image.fromarray(np.ascontiguousarray(image[..., 0] if image.shape[2] == 1 else image))


def _chw(image):
    pixels = np.asarray(image)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("height", "width", "side"), [(256, 341, 227), (32, 32, 32), (90, 60, 33), (300, 256, 64), (20, 31, 40)]
)
def test_training_pixels_are_those_of_pillow(tmp_path, height, width, side, channels):
    images = _images(tmp_path, height, width, channels)
    settings = ImageSettings(resize=None, crop=side)
    indices = np.array([2, 0, 3, 0, 1, 2, 2, 1])
    batch = training_batch(images, indices, settings, torch.Generator().manual_seed(5))
    assert batch.shape == (8, channels, side, side)
    assert batch.dtype == torch.uint8
    replay = torch.Generator().manual_seed(5)
    for crop, index in zip(batch, indices, strict=True):
        top, left, box_height, box_width = random_box(height, width, settings, replay)
        flipped = torch.rand((), generator=replay).item() < 0.5
        box = (left, top, left + box_width, top + box_height)
        expected = _pillow(images.image(int(index))).crop(box).resize((side, side), Image.Resampling.BILINEAR)
        if flipped:
            expected = expected.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        np.testing.assert_array_equal(crop.numpy(), _chw(expected))


def _reference_box(height, width, settings, chance):
    """As torchvision's documentation of RandomResizedCrop tells it."""
    for _ in range(10):
        area = height * width * chance.uniform(*settings.area)
        ratio = math.exp(chance.uniform(math.log(settings.ratio[0]), math.log(settings.ratio[1])))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return chance.randint(0, height - h), chance.randint(0, width - w), h, w
    if width / height < min(settings.ratio):
        w, h = width, round(width / min(settings.ratio))
    elif width / height > max(settings.ratio):
        w, h = round(height * max(settings.ratio)), height
    else:
        w, h = width, height
    return (height - h) // 2, (width - w) // 2, h, w


MLRC = ImageSettings()
NARROW = ImageSettings(area=(0.5, 1.0), ratio=(0.9, 1.1))


@pytest.mark.parametrize(
    ("height", "width", "settings"),
    [(256, 341, MLRC), (400, 256, MLRC), (64, 64, MLRC), (100, 400, MLRC), (60, 90, NARROW)],
)
def test_boxes_are_distributed_as_torchvisions(height, width, settings):
    generator, chance = torch.Generator().manual_seed(0), random.Random(0)
    count = 3000
    ours = np.array([random_box(height, width, settings, generator) for _ in range(count)], dtype=float)
    theirs = np.array([_reference_box(height, width, settings, chance) for _ in range(count)], dtype=float)
    for values in (ours, theirs):
        assert (values[:, 0] >= 0).all()
        assert (values[:, 1] >= 0).all()
        assert (values[:, 0] + values[:, 2] <= height).all()
        assert (values[:, 1] + values[:, 3] <= width).all()

    def features(boxes):
        top, left, h, w = boxes.T
        # Where in its room a box lies; 0.5 where there is none.
        down = np.where(height > h, top / np.maximum(height - h, 1), 0.5)
        right = np.where(width > w, left / np.maximum(width - w, 1), 0.5)
        return {"height": h, "width": w, "area": h * w, "ratio": w / h, "down": down, "right": right}

    mine, reference = features(ours), features(theirs)
    for name in mine:
        # 0.035 is the 5 % point of two samples of 3,000; seeds are fixed, so this never fails by chance.
        assert ks_2samp(mine[name], reference[name]).statistic < 0.045, name


@pytest.mark.parametrize(
    ("height", "width", "box"),
    [(16, 400, (0, 189, 16, 21)), (400, 16, (189, 0, 21, 16)), (400, 15, (190, 0, 20, 15))],
)
def test_where_no_box_fits_it_is_the_largest_centred_one(height, width, box):
    generator = torch.Generator().manual_seed(0)
    assert {random_box(height, width, MLRC, generator) for _ in range(20)} == {box}
    assert _reference_box(height, width, MLRC, random.Random(0)) == box


def test_half_of_the_crops_are_flipped(tmp_path):
    ramp = np.arange(8, dtype=np.uint8)[None, None, :, None].repeat(8, axis=1)
    images = LabelledImages(np.zeros(1, np.int64), np.zeros(1, np.int64), pack_arrays(ramp, tmp_path / "pack"))
    whole = {"resize": None, "crop": 8, "area": (1.0, 1.0), "ratio": (1.0, 1.0)}
    many = np.zeros(2000, dtype=np.int64)
    crops = training_batch(images, many, ImageSettings(**whole), torch.Generator().manual_seed(0))
    straight = torch.arange(8, dtype=torch.uint8).expand(1, 8, 8)
    is_straight = (crops == straight).all((1, 2, 3))
    is_flipped = (crops == straight.flip(-1)).all((1, 2, 3))
    assert (is_straight ^ is_flipped).all()
    assert abs(is_flipped.double().mean() - 0.5) < 0.03
    never = training_batch(images, many, ImageSettings(**whole, flip=False), torch.Generator().manual_seed(0))
    assert (never == straight).all()


@pytest.mark.parametrize(("height", "width"), [(256, 341), (256, 256), (300, 229), (227, 227), (230, 240)])
def test_centre_crops_are_those_of_pillow(tmp_path, height, width):
    images = _images(tmp_path, height, width)
    batch = evaluation_batch(images, np.array([1, 3]), ImageSettings())
    assert batch.shape == (2, 3, 227, 227)
    left, top = round((width - 227) / 2), round((height - 227) / 2)
    for crop, index in zip(batch, (1, 3), strict=True):
        expected = _pillow(images.image(index)).crop((left, top, left + 227, top + 227))
        assert (crop.numpy() == _chw(expected)).all()


@pytest.mark.parametrize(("height", "width"), [(5, 9), (8, 5), (3, 3), (8, 8), (12, 4)])
def test_small_images_are_padded_with_black(height, width):
    image = torch.randint(1, 256, (3, height, width), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    crop = centre_crop(image, 8)
    assert crop.shape == (3, 8, 8)
    # Pillow's crop fills with black what lies outside.
    left, top = -((8 - width) // 2) if width < 8 else (width - 8) // 2, -((8 - height) // 2)
    if height >= 8:
        top = (height - 8) // 2
    expected = Image.fromarray(image.permute(1, 2, 0).numpy()).crop((left, top, left + 8, top + 8))
    assert (crop.numpy() == _chw(expected)).all()


@pytest.mark.parametrize(("height", "width"), [(90, 120), (131, 77), (64, 64), (30, 41)])
def test_a_resize_before_the_centre_crop_is_that_of_packing(tmp_path, height, width):
    """The authors' way: training crops from the full-size image, evaluation at a resize of its own."""
    pixels = np.random.default_rng(2).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "image.png")
    batches = []
    for settings in (
        ImageSettings(resize=64, crop=56),
        ImageSettings(resize=None, crop=56, evaluation_resize=64),
        ImageSettings(resize=64, crop=56, evaluation_resize=64),
    ):
        packed = pack_files(tmp_path, ["image.png"], settings.resize, tmp_path / f"pack_{settings.resize}")
        images = LabelledImages(np.zeros(1, np.int64), np.zeros(1, np.int64), packed)
        batches.append(evaluation_batch(images, np.zeros(1, np.int64), settings))
    assert batches[0].shape == (1, 3, 56, 56)
    assert torch.equal(batches[1], batches[0])
    assert torch.equal(batches[2], batches[0])


def test_a_resize_for_evaluation_leaves_training_crops_and_grey_images_as_they_are(tmp_path):
    images, rows = _images(tmp_path, 50, 70, channels=1), np.arange(4)
    plain, other = ImageSettings(crop=16), ImageSettings(crop=16, evaluation_resize=20)
    crops = [training_batch(images, rows, how, torch.Generator().manual_seed(0)) for how in (plain, other)]
    assert torch.equal(*crops)
    shrunk = evaluation_batch(images, rows, other)
    for crop, index in zip(shrunk, rows, strict=True):
        expected = _pillow(images.image(int(index))).resize((28, 20), Image.Resampling.BILINEAR).crop((6, 2, 22, 18))
        np.testing.assert_array_equal(crop.numpy(), _chw(expected))


Pixels = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Case:
    """Images behind one another, a box of each, and what Pillow makes of it."""

    pixels: torch.Tensor
    start: Rows
    down: Rows
    cuts: Cuts
    channels: int
    side: int
    expected: Pixels


def _by_pillow(box, side, flip):
    picture = Image.fromarray(np.ascontiguousarray(box[..., 0] if box.shape[2] == 1 else box))
    resized = np.asarray(picture.resize((side, side), Image.Resampling.BILINEAR)).reshape(side, side, -1)
    return (resized[:, ::-1] if flip else resized).transpose(2, 0, 1)


def _case(sizes, side, channels, seed=0, *, whole=False):
    """Random pixels; boxes at random places unless they are `whole` images."""
    chance = np.random.default_rng(seed)
    images = [chance.integers(0, 256, (height, width, channels), dtype=np.uint8) for height, width in sizes]
    windows, expected, first = [], [], 0
    for image in images:
        (top, bottom), (left, right) = (
            (0, n) if whole else sorted(chance.choice(n + 1, 2, replace=False)) for n in image.shape[:2]
        )
        flip = bool(chance.integers(2))
        start = first + (top * image.shape[1] + left) * channels
        windows.append((start, image.shape[1] * channels, (top, left, bottom - top, right - left), flip))
        expected.append(_by_pillow(image[top:bottom, left:right], side, flip))
        first += image.size
    starts, downs, boxes, flips = (np.asarray(column) for column in zip(*windows, strict=True))
    pixels = torch.from_numpy(np.concatenate([image.reshape(-1) for image in images]))
    return Case(pixels, starts, downs, Cuts(boxes, flips), channels, side, np.stack(expected))


def _resized(case, device="cpu"):
    numbers = numbers_of(case.start, case.down, case.cuts, case.channels, case.side)
    crops = resized_boxes(case.pixels.to(device), numbers, case.channels, case.side)
    assert crops.dtype == torch.uint8
    return crops.cpu().numpy()


MIXED = [(60, 81), (256, 341), (120, 90), (33, 200), (5, 4), (150, 40), (1, 1), (227, 227)]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [1, 16, 33, 227])
@pytest.mark.parametrize("seed", [0, 1])
def test_pixels_are_those_of_pillow(side, channels, seed):
    case = _case(MIXED, side, channels, seed)
    np.testing.assert_array_equal(_resized(case), case.expected)


@pytest.mark.parametrize("width", [20, 40, 64, 90])
def test_every_height_is_resized_in_pillows_order(width):
    # Pillow 13 takes the height first from 2 * width - side on.
    case = _case([(height, width) for height in range(10, 200, 3)], 40, 1, whole=True)
    np.testing.assert_array_equal(_resized(case), case.expected)


@pytest.mark.parametrize("height_first", [True, False])
def test_either_order_is_within_one_grey_level(monkeypatch, height_first):
    monkeypatch.setattr(batched, "_TALL_BOXES_HEIGHT_FIRST", height_first)
    case = _case([(200, 60), (300, 31), (90, 45), (64, 64)] * 8, 32, 3)
    assert np.abs(_resized(case).astype(int) - case.expected).max() <= 1


@pytest.mark.parametrize("at_once", [1, 100_000, 200_000])
def test_large_boxes_are_resized_in_parts_and_come_back_in_order(monkeypatch, at_once):
    case = _case(MIXED, 16, 3)
    products = []
    resized = batched.resized

    def spy(pixels, numbers, *rest):
        products.append(numbers.shape[1])
        return resized(pixels, numbers, *rest)

    monkeypatch.setattr(batched, "resized", spy)
    monkeypatch.setattr(batched, "PIXELS_AT_ONCE", at_once)
    np.testing.assert_array_equal(_resized(case), case.expected)
    assert sum(products) == len(MIXED)
    assert len(products) == len(MIXED) if at_once == 1 else 1 < len(products) < len(MIXED)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["amp", "float32"])
def test_a_gpu_gives_the_same_bits(precision):
    use_precision(precision)
    case = _case(MIXED * 4, 227, 3)
    np.testing.assert_array_equal(_resized(case, "cuda"), case.expected)
