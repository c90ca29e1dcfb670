"""Packs of images from arrays, and what else tests need of images."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from protocols.datasets.dataset import Dataset, from_packing
from protocols.datasets.listing import ImageListing
from protocols.images.crops import size_after
from protocols.images.packed_images import PIXELS, LabelledImages, PackedImages
from protocols.images.packing import decoded, write_arrays
from protocols.images.samples import BatchSource
from results.spec.conditions import ImageSettings


def pack_arrays(images: NDArray[np.uint8], folder: Path) -> PackedImages:
    """Pack images of equal size, uint8 (N, height, width, channels), in a folder with a hash of them in the name."""
    content = hashlib.sha256(np.ascontiguousarray(images).data).hexdigest()
    place = folder.with_name(f"{folder.name}-{len(images)}-{content[:16]}")
    if not place.exists():
        place.mkdir(parents=True)
        write_arrays(images, place)
    return PackedImages(place)


def decode(path: Path, resize: int | None, *, as_mlrc: bool = False) -> NDArray[np.uint8]:
    """Decode one file, with the shorter side resized."""
    picture, _ = decoded(path, as_mlrc=as_mlrc)
    if resize is not None:
        picture = picture.resize(size_after(picture.size, resize), Image.Resampling.BILINEAR)
    return np.asarray(picture)


def training_batch(
    images: LabelledImages, rows: NDArray[np.int64], settings: ImageSettings, generator: torch.Generator
) -> Tensor:
    """Make random resized crops with flips, uint8 (batch, channels, crop, crop)."""
    return BatchSource(images, settings, torch.device("cpu")).training_batch(rows, generator)


def packed_dataset(
    name: str, class_names: Sequence[str], names: Sequence[str], labels: NDArray[np.int64], images: PackedImages
) -> Dataset:
    """Make a dataset of packed images, with their class ranks (n,); the first half of the classes is for training."""
    listing = ImageListing(name, Path(), tuple(class_names), tuple(names), labels)
    return from_packing(listing, images, hashlib.sha256((images.folder / PIXELS).read_bytes()).hexdigest())
