"""What a reproduction leaves to look at, made where its models and images are at hand (see `results.artifacts`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from losses.plugin import Normalization
from protocols.evaluation.evaluate_run import Embedded
from protocols.evaluation.test_data import TestData
from protocols.images.crops import evaluation_batch
from protocols.images.packed_images import LabelledImages
from protocols.metrics.neighbours import nearest
from protocols.metrics.retrieval import normalized
from protocols.trunks.embed import embed
from protocols.trunks.embedding_model import trained_model
from results.artifacts import Exhibit
from results.records import RunRecord
from results.training_spec import FoldSpec, ImageSettings

_TEST_CLASSES, _TEST_IMAGES = 12, 60
_TRAIN_CLASSES, _TRAIN_IMAGES = 20, 12
_QUERIES, _NEIGHBOURS, _SIDE = 10, 5, 96


@dataclass(frozen=True)
class FirstFold:
    """The first fold's model and what it was trained on. vectors: the loss's proxies and their classes, if any."""

    spec: FoldSpec
    weights: dict[str, Tensor]
    train: LabelledImages
    vectors: tuple[Tensor, Tensor] | None


def exhibit_of(
    record: RunRecord,
    embedded: Embedded,
    data: TestData,
    first: FirstFold,
    class_names: Sequence[str],
    device: torch.device,
) -> Exhibit:
    """The exhibit of a tested run. class_names: by class rank."""
    kind, shown = embedded.kind, embedded.by_model[0].cpu()
    rows = _spread(data.images.labels, _TEST_CLASSES, _TEST_IMAGES)
    train = _spread(first.train.labels, _TRAIN_CLASSES, _TRAIN_IMAGES)
    targets = np.searchsorted(np.unique(first.train.labels), first.train.labels)
    proxies, proxy_labels = _proxies(first, set(targets[train].tolist()), shown.shape[1], kind)
    return Exhibit(
        test_embeddings=shown[rows].float().numpy(),
        test_labels=data.images.labels[rows],
        train_embeddings=_train_embeddings(first, train, kind, device),
        train_labels=targets[train].astype(np.int64),
        proxies=proxies,
        proxy_labels=proxy_labels,
        spectrum=torch.linalg.svdvals(shown.double()).float().numpy(),
        **_gallery(record, embedded.joint, data, first.spec.images, class_names),
    )


def _spread(labels: NDArray[np.int64], classes: int, images: int) -> NDArray[np.int64]:
    """Positions of the first `images` of each of `classes` classes, evenly spaced over all of them."""
    known = np.unique(labels)
    chosen = known[np.linspace(0, len(known) - 1, min(classes, len(known))).round().astype(int)]
    return np.concatenate([np.flatnonzero(labels == label)[:images] for label in chosen])


def _train_embeddings(
    first: FirstFold, rows: NDArray[np.int64], kind: Normalization, device: torch.device
) -> NDArray[np.float32]:
    model = trained_model(first.spec, first.weights, device)
    some = LabelledImages(first.train.images, first.train.rows[rows], first.train.labels[rows])
    embeddings = normalized(embed(model, some, first.spec.images, device), kind)
    shown: NDArray[np.float32] = embeddings.cpu().float().numpy()
    return shown


def _proxies(
    first: FirstFold, classes: set[int], dimensions: int, kind: Normalization
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Those of the classes that are shown; none if the loss has vectors of another kind."""
    vectors, labels = first.vectors or (torch.empty(0, dimensions), torch.empty(0, dtype=torch.long))
    if vectors.shape[1] != dimensions:
        vectors, labels = torch.empty(0, dimensions), torch.empty(0, dtype=torch.long)
    keep = torch.tensor([label in classes for label in labels.tolist()], dtype=torch.bool)
    return normalized(vectors[keep].float(), kind).numpy(), labels[keep].numpy().astype(np.int64)


def _gallery(
    record: RunRecord, joint: Tensor, data: TestData, settings: ImageSettings, class_names: Sequence[str]
) -> dict[str, Any]:
    """Retrievals of one image of each of the hardest classes."""
    assert record.class_scores is not None
    labels = data.images.labels
    ranks = np.unique(labels)
    scores = np.asarray([score.map_at_r for score in record.class_scores.concatenated])
    counted = np.flatnonzero(np.asarray(record.class_scores.queries) > 0)
    hardest = counted[np.argsort(scores[counted], kind="stable")][:_QUERIES]
    askable = np.arange(len(labels)) if data.is_query is None else np.flatnonzero(data.is_query)
    queries = np.asarray([askable[labels[askable] == ranks[place]][0] for place in hardest])
    found = _neighbours(joint, queries, data)
    pictures = _thumbnails(data.images, np.concatenate([queries, found.reshape(-1)]), settings)
    names = np.asarray(class_names)
    return {
        "query_images": pictures[: len(queries)],
        "neighbour_images": pictures[len(queries) :].reshape(*found.shape, *pictures.shape[1:]),
        "correct": labels[found] == labels[queries][:, None],
        "class_names": names[labels[queries]],
        "neighbour_names": names[labels[found]],
        "class_scores": scores[hardest].astype(np.float32),
    }


def _neighbours(joint: Tensor, queries: NDArray[np.int64], data: TestData) -> NDArray[np.int64]:
    """Positions (q, k) of the nearest test images, the query itself left out; the gallery's where there is one."""
    others = np.arange(len(joint)) if data.is_query is None else np.flatnonzero(~data.is_query)
    depth = min(_NEIGHBOURS + 1, len(others))
    found = others[nearest(joint[queries], joint[others], depth, exclude_self=False).numpy()]
    kept = [row[row != query][: min(_NEIGHBOURS, len(others) - 1)] for row, query in zip(found, queries, strict=True)]
    return np.stack(kept).astype(np.int64)


def _thumbnails(images: LabelledImages, rows: NDArray[np.int64], settings: ImageSettings) -> NDArray[np.uint8]:
    """The centre crops that the model saw, (n, s, s, c)."""
    crops = evaluation_batch(images, rows, settings).permute(0, 2, 3, 1).numpy()
    if crops.shape[1] <= _SIDE:
        return crops
    grey = crops.shape[3] == 1
    small = [
        np.asarray(Image.fromarray(crop[..., 0] if grey else crop).resize((_SIDE, _SIDE), Image.Resampling.BILINEAR))
        for crop in crops
    ]
    stacked: NDArray[np.uint8] = np.stack(small)
    return stacked[..., None] if grey else stacked
