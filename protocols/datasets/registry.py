"""The datasets by name."""

from dataclasses import dataclass

from protocols.datasets.cub200 import open_cub200
from protocols.datasets.dataset import DataError, DataRequest, Dataset, Opener
from protocols.datasets.embedded import open_glyphs
from protocols.datasets.folder import open_folder


@dataclass(frozen=True)
class DatasetEntry:
    """How a dataset is opened and what a person should know about it."""

    opener: Opener
    description: str
    needs_root: bool


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
