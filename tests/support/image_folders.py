"""Folders of small images, plain and in the layout of CUB-200-2011, and what is said about malformed ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from protocols.datasets.dataset import DataRequest
from protocols.datasets.listing import DataError
from results.spec.conditions import ImageSettings
from results.spec.data_choice import DataChoice

SETTINGS = ImageSettings(resize=8, crop=8)
BIRDS = tuple(f"{c + 1:03d}.Bird_{c}" for c in range(8))


def paint(path: Path, seed: int) -> None:
    """An image of noise, 12 by 9 pixels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


def make_folder(root: Path, classes: int = 8, per_class: int = 2) -> Path:
    for c in range(classes):
        for i in range(per_class):
            paint(root / f"class_{c}" / f"{i}.png", seed=100 * c + i)
    return root


def make_cub(root: Path, classes: int = 8, per_class: int = 2) -> Path:
    """The official layout: ids from 1, images by class folder, one space between the columns."""
    images, labels, names = [], [], []
    for c in range(classes):
        name = f"{c + 1:03d}.Bird_{c}"
        names.append(f"{c + 1} {name}")
        for i in range(per_class):
            number = len(images) + 1
            path = f"{name}/Bird_{c}_{i:04d}.jpg"
            paint(root / "images" / path, seed=number)
            images.append(f"{number} {path}")
            labels.append(f"{number} {c + 1}")
    for file, lines in (("classes.txt", names), ("images.txt", images), ("image_class_labels.txt", labels)):
        (root / file).write_text("\n".join(lines) + "\n")
    return root


def data_request(root: Path | None, cache: Path, name: str = "folder", **changes: Any) -> DataRequest:
    images = changes.pop("images", SETTINGS)
    return DataRequest(DataChoice(**{"name": name, "root": root, "subset": True, **changes}), images, cache)


@contextmanager
def refused(*words: str, error: type[Exception] = DataError) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """What happens inside ends in one line with all the words."""
    with pytest.raises(error) as caught:
        yield caught
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message
