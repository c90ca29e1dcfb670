"""The batched resize against Pillow's, pixel for pixel, whatever the sizes, the order of the axes and the threads."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from protocols.images import device_crops as batched
from protocols.images.crops import Cuts
from protocols.images.device_crops import Rows, numbers_of, resized_boxes
from protocols.machine.torch_state import use_precision
from results.spec.conditions import Precision

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


def _by_pillow(box: Pixels, side: int, flip: bool) -> Pixels:
    picture = Image.fromarray(np.ascontiguousarray(box[..., 0] if box.shape[2] == 1 else box))
    resized = np.asarray(picture.resize((side, side), Image.Resampling.BILINEAR)).reshape(side, side, -1)
    return (resized[:, ::-1] if flip else resized).transpose(2, 0, 1)


def _case(sizes: list[tuple[int, int]], side: int, channels: int, seed: int = 0, *, whole: bool = False) -> Case:
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


def _resized(case: Case, device: str = "cpu") -> Pixels:
    numbers = numbers_of(case.start, case.down, case.cuts, case.channels, case.side)
    crops = resized_boxes(case.pixels.to(device), numbers, case.channels, case.side)
    assert crops.dtype == torch.uint8
    return crops.cpu().numpy()


MIXED = [(60, 81), (256, 341), (120, 90), (33, 200), (5, 4), (150, 40), (1, 1), (227, 227)]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [1, 16, 33, 227])
@pytest.mark.parametrize("seed", [0, 1])
def test_pixels_are_those_of_pillow(side: int, channels: int, seed: int) -> None:
    case = _case(MIXED, side, channels, seed)
    np.testing.assert_array_equal(_resized(case), case.expected)


@pytest.mark.parametrize("width", [20, 40, 64, 90])
def test_every_height_is_resized_in_pillows_order(width: int) -> None:
    # Pillow 13 takes the height first from 2 * width - side on.
    case = _case([(height, width) for height in range(10, 200, 3)], 40, 1, whole=True)
    np.testing.assert_array_equal(_resized(case), case.expected)


@pytest.mark.parametrize("height_first", [True, False])
def test_either_order_is_within_one_grey_level(monkeypatch: pytest.MonkeyPatch, height_first: bool) -> None:
    monkeypatch.setattr(batched, "_TALL_BOXES_HEIGHT_FIRST", height_first)
    case = _case([(200, 60), (300, 31), (90, 45), (64, 64)] * 8, 32, 3)
    assert np.abs(_resized(case).astype(int) - case.expected).max() <= 1


@pytest.mark.parametrize("at_once", [1, 100_000, 200_000])
def test_large_boxes_are_resized_in_parts_and_come_back_in_order(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    case = _case(MIXED, 16, 3)
    products: list[int] = []
    resized = batched.resized

    def spy(pixels: torch.Tensor, numbers: torch.Tensor, *rest: Any) -> torch.Tensor:
        products.append(numbers.shape[1])
        return resized(pixels, numbers, *rest)

    monkeypatch.setattr(batched, "resized", spy)
    monkeypatch.setattr(batched, "PIXELS_AT_ONCE", at_once)
    np.testing.assert_array_equal(_resized(case), case.expected)
    assert sum(products) == len(MIXED)
    assert len(products) == len(MIXED) if at_once == 1 else 1 < len(products) < len(MIXED)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["amp", "float32"])
def test_a_gpu_gives_the_same_bits(precision: Precision) -> None:
    use_precision(precision)
    case = _case(MIXED * 4, 227, 3)
    np.testing.assert_array_equal(_resized(case, "cuda"), case.expected)
