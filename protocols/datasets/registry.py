"""The datasets by name."""

from dataclasses import dataclass

from protocols.datasets.cub200 import open_cub200
from protocols.datasets.dataset import DataError, DataRequest, Dataset, Opener, from_packing
from protocols.datasets.folder import open_folder
from protocols.datasets.glyphs import render
from protocols.images.packing import pack_arrays


@dataclass(frozen=True)
class DatasetEntry:
    """How a dataset is opened and what a person should know about it."""

    opener: Opener
    description: str
    needs_root: bool


def open_glyphs(request: DataRequest) -> Dataset:
    """The embedded dataset, rendered from matplotlib's typefaces."""
    glyphs = render()
    packing = pack_arrays(glyphs.images[..., None], request.cache / "glyphs")
    return from_packing("glyphs", glyphs.class_names, glyphs.image_names, glyphs.labels, packing)


DATASETS = {
    "glyphs": DatasetEntry(
        open_glyphs, "characters in matplotlib's 16 typefaces; embedded, nothing to download", False
    ),
    "cub200": DatasetEntry(open_cub200, "CUB-200-2011, 11,788 photographs of 200 bird species, official layout", True),
    "folder": DatasetEntry(open_folder, "any folder of images: one folder per class", True),
}


def open_dataset(request: DataRequest) -> Dataset:
    """The dataset that a request names; raises DataError with one line on what to do."""
    if request.name not in DATASETS:
        raise DataError(f"unknown dataset {request.name!r}; known are {', '.join(sorted(DATASETS))}")
    return DATASETS[request.name].opener(request)
