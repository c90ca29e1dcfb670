"""Figure data of a reproduction: the arrays that its figures are drawn from, made while models are in memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from protocols.evaluation.evaluate_run import Embedded, TestData
from protocols.images.crops import evaluation_batch
from protocols.images.packed_images import LabelledImages
from protocols.metrics.neighbours import nearest
from results.records.artifacts import FigureData
from results.records.records import RunRecord
from results.spec.conditions import ImageSettings

_QUERIES, _NEIGHBOURS, _SIDE = 10, 5, 96


def figure_data_of(record: RunRecord, embedded: Embedded, data: TestData, class_names: Sequence[str]) -> FigureData:
    """Make the figure data of a tested run."""
    return FigureData(
        spectrum=torch.linalg.svdvals(embedded.by_model[0].cpu().double()).float().numpy(),
        **_gallery(record, embedded.concatenated, data, record.specs[0].conditions.images, class_names),
    )


def _gallery(
    record: RunRecord, concatenated: Tensor, data: TestData, settings: ImageSettings, class_names: Sequence[str]
) -> dict[str, Any]:
    """Retrieval results for one query of each of the classes with the lowest MAP@R; none without images to show."""
    assert record.class_scores is not None
    images = data.images if isinstance(data.images, LabelledImages) else data.pictures
    if images is None:
        return {
            "query_images": np.empty((0, _SIDE, _SIDE, 3), dtype=np.uint8),
            "neighbour_images": np.empty((0, 0, _SIDE, _SIDE, 3), dtype=np.uint8),
            "correct": np.empty((0, 0), dtype=np.bool_),
            "class_names": np.empty(0, dtype=np.str_),
            "neighbour_names": np.empty((0, 0), dtype=np.str_),
            "class_scores": np.empty(0, dtype=np.float32),
        }
    labels = data.images.labels
    ranks = np.unique(labels)
    scores = np.asarray([score.map_at_r for score in record.class_scores.concatenated])
    counted = np.flatnonzero(np.asarray(record.class_scores.queries) > 0)
    hardest = counted[np.argsort(scores[counted], kind="stable")][:_QUERIES]
    candidates = np.arange(len(labels)) if data.is_query is None else np.flatnonzero(data.is_query)
    queries = np.asarray([candidates[labels[candidates] == ranks[position]][0] for position in hardest])
    neighbours = _neighbours(concatenated, queries, data)
    pictures = _thumbnails(images, np.concatenate([queries, neighbours.reshape(-1)]), settings)
    names = np.asarray(class_names)
    return {
        "query_images": pictures[: len(queries)],
        "neighbour_images": pictures[len(queries) :].reshape(*neighbours.shape, *pictures.shape[1:]),
        "correct": labels[neighbours] == labels[queries][:, None],
        "class_names": names[labels[queries]],
        "neighbour_names": names[labels[neighbours]],
        "class_scores": scores[hardest].astype(np.float32),
    }


def _neighbours(concatenated: Tensor, queries: NDArray[np.int64], data: TestData) -> NDArray[np.int64]:
    """Positions (q, k) of the nearest images, without the query itself; with a gallery, of its images only."""
    others = np.arange(len(concatenated)) if data.is_query is None else np.flatnonzero(~data.is_query)
    depth = min(_NEIGHBOURS + 1, len(others))
    rows = others[nearest(concatenated[queries], concatenated[others], depth, exclude_self=False).numpy()]
    count = min(_NEIGHBOURS, len(others) - 1)
    without_query = [row[row != query][:count] for row, query in zip(rows, queries, strict=True)]
    return np.stack(without_query).astype(np.int64)


def _thumbnails(images: LabelledImages, rows: NDArray[np.int64], settings: ImageSettings) -> NDArray[np.uint8]:
    """The centre crops that the model embeds, at most `_SIDE` pixels wide, (n, s, s, c)."""
    crops = evaluation_batch(images, rows, settings).permute(0, 2, 3, 1).numpy()
    if crops.shape[1] <= _SIDE:
        return crops
    size = (_SIDE, _SIDE)
    small = [np.asarray(Image.fromarray(crop.squeeze()).resize(size, Image.Resampling.BILINEAR)) for crop in crops]
    stacked: NDArray[np.uint8] = np.stack(small).reshape(len(crops), *size, -1)
    return stacked
