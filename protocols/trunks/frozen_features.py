"""Features of a frozen trunk: computed once for all images of a dataset, and kept in the cache.

A frozen trunk gets the centre crop of each image, as in an evaluation, and computes in float32. So its features depend
only on the data, the trunk with its weights, the resize and the crop. An interrupted computation is continued by the
next call.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from protocols.datasets.dataset import Dataset
from protocols.images.packed_images import LabelledImages
from protocols.images.packing import Progress, cache_lock
from protocols.images.samples import FEATURES_FILE, LabelledFeatures, evaluation_batches_of
from protocols.machine.torch_state import isolated_random_numbers, use_precision
from protocols.trunks.embedding_model import EmbeddingModel, trunk_width
from results.atomic_files import put_in_place
from results.spec.conditions import ImageSettings
from results.spec.trunk_spec import TrunkSpec
from results.values import fingerprint_of

FEATURES_VERSION = 1
"""Version of the computation. Raise it, and `TRAINING_VERSION`, with a change that alters features."""


def features_name(data_fingerprint: str, trunk: TrunkSpec, settings: ImageSettings) -> str:
    """Name the features of a dataset by everything that decides them."""
    transform = [settings.resize, settings.evaluation_resize, settings.crop]
    return fingerprint_of([FEATURES_VERSION, data_fingerprint, trunk.identity(), transform])


def with_features(
    dataset: Dataset,
    trunk: TrunkSpec,
    settings: ImageSettings,
    cache: Path,
    device: str,
    progress: Progress | None = None,
) -> Dataset:
    """Replace the images of a dataset by the features of a frozen trunk.

    Args:
        trunk: The trunk, which stays as it is.
        settings: The images that the trunk gets.
        progress: Counts images.
    """
    images = dataset.images
    assert isinstance(images, LabelledImages), "features have no trunk"
    folder = cache / f"features-{features_name(dataset.fingerprint, trunk, settings)}"
    with cache_lock(folder):
        if not folder.exists():
            _compute(images, trunk, settings, folder, torch.device(device), progress)
    features = LabelledFeatures(np.arange(len(images)), images.labels, folder / FEATURES_FILE)
    return replace(dataset, images=features)


def _compute(
    images: LabelledImages,
    trunk: TrunkSpec,
    settings: ImageSettings,
    folder: Path,
    device: torch.device,
    progress: Progress | None,
) -> None:
    # The name is fixed, so that the next call continues an interrupted one. The lock excludes other processes.
    partial = folder.with_name(folder.name + ".partial")
    rows, first = _prepared(partial, len(images), trunk_width(trunk))
    left = images.select(np.arange(first, len(images)))
    use_precision("ieee")
    with isolated_random_numbers(str(device)), torch.no_grad():
        model = EmbeddingModel(trunk, None).place(device).eval()
        for crops in evaluation_batches_of(left, settings, device, keep=False).batches():
            rows[first : first + len(crops)] = model.features(crops).cpu().numpy()
            first += len(crops)
            rows.flush()
            (partial / "done").write_text(str(first))
            if progress:
                progress(first, len(images))
    if device.type == "cuda":
        torch.cuda.empty_cache()  # Other processes train on this GPU next.
    (partial / "done").unlink()
    put_in_place(partial, folder)


def _prepared(partial: Path, count: int, width: int) -> tuple[np.memmap, int]:
    """Open the file to fill, and return it with the number of rows that an interrupted computation has filled."""
    file, done = partial / FEATURES_FILE, partial / "done"
    if done.exists():
        rows: np.memmap = np.lib.format.open_memmap(file, mode="r+")
        return rows, int(done.read_text() or 0)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    return np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(count, width)), 0
