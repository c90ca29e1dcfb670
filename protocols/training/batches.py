"""The choice of images for each batch (specification, section 5).

m-per-class sampling repeats this pass: shuffle the training classes, then draw m images of each class. A class with
fewer than m images is drawn with replacement, all others without. Passes make a stream of about 100,000 images.
The stream is cut into consecutive batches; a last, incomplete batch is dropped, and a new stream starts. A batch with
images of two passes can hold a class twice (specification, 11.18).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

STREAM_LENGTH = 100_000


def check_batches(labels: NDArray[np.int64], batch_size: int, samples_per_class: int) -> None:
    """Raise ValueError if no batch of this size can be cut from the streams of these images."""
    if samples_per_class and batch_size % samples_per_class:
        raise ValueError(f"batch size {batch_size} is no multiple of {samples_per_class} images per class")
    in_a_pass = samples_per_class * len(np.unique(labels)) if samples_per_class else len(labels)
    if batch_size > (longest := _passes(in_a_pass) * in_a_pass):
        raise ValueError(f"batch size {batch_size} is above {longest}, the largest of these {len(labels)} images")


def _passes(images: int) -> int:
    return max(1, STREAM_LENGTH // images)


def batches(
    labels: NDArray[np.int64], batch_size: int, samples_per_class: int, seed: int
) -> Iterator[NDArray[np.int64]]:
    """Return batches of image positions without end; raise ValueError as `check_batches`.

    Args:
        labels: Class of every training image, (n,).
    """
    check_batches(labels, batch_size, samples_per_class)
    return _endless(labels, batch_size, samples_per_class, seed)


def _endless(
    labels: NDArray[np.int64], batch_size: int, samples_per_class: int, seed: int
) -> Iterator[NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    while True:
        stream = (
            _m_per_class(labels, samples_per_class, generator) if samples_per_class else _shuffled(labels, generator)
        )
        yield from _cut(stream, batch_size)


def _cut(stream: Iterator[NDArray[np.int64]], batch_size: int) -> Iterator[NDArray[np.int64]]:
    rest = np.empty(0, dtype=np.int64)
    for part in stream:
        rest = np.concatenate([rest, part])
        full_batches = len(rest) - len(rest) % batch_size
        for first in range(0, full_batches, batch_size):
            yield rest[first : first + batch_size]
        rest = rest[full_batches:]


def _m_per_class(labels: NDArray[np.int64], m: int, generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """The passes of one stream: as many complete passes over all classes as fit into it."""
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    for _ in range(_passes(m * len(members))):
        of_classes = [members[c] for c in generator.permutation(len(members))]
        yield np.concatenate([generator.choice(rows, m, replace=len(rows) < m) for rows in of_classes])


def _shuffled(labels: NDArray[np.int64], generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    for _ in range(_passes(len(labels))):
        yield generator.permutation(len(labels))
