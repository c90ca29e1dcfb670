"""The choice of images for each batch (specification, section 5).

m-per-class sampling repeats this pass: shuffle the training classes, then draw m images of each class. A class with
fewer than m images is drawn with replacement, all others without. Passes make a stream of about 100,000 images.
The stream is cut into consecutive batches; a last, incomplete batch is dropped, and a new stream starts. A batch with
images of two passes can hold a class twice (specification, 11.18). Where passes stay whole, the rest of each pass is
dropped, as loaders of shuffled images do: no batch holds a class (m-per-class) or an image (m = 0) twice.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

STREAM_LENGTH = 100_000


def batches(
    labels: NDArray[np.int64], batch_size: int, samples_per_class: int, seed: int, *, whole_passes: bool = False
) -> Iterator[NDArray[np.int64]]:
    """Yield batches of image positions without end.

    Args:
        labels: Class of every training image, (n,).
        samples_per_class: Images of a class that stand together (m); 0 draws all images in a random order.
        whole_passes: Whether each pass is cut into batches by itself.
    """
    if samples_per_class and batch_size % samples_per_class:
        raise ValueError(f"batch size {batch_size} is no multiple of {samples_per_class} images per class")
    one_pass = samples_per_class * len(np.unique(labels)) if samples_per_class else len(labels)
    if whole_passes and batch_size > one_pass:
        raise ValueError(
            f"a batch of {batch_size} images is larger than a pass of {one_pass}; use a smaller batch_size"
        )
    length = one_pass if whole_passes else STREAM_LENGTH
    generator = np.random.default_rng(seed)
    while True:
        stream = (
            _m_per_class(labels, samples_per_class, length, generator)
            if samples_per_class
            else _shuffled(labels, length, generator)
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


def _m_per_class(
    labels: NDArray[np.int64], m: int, length: int, generator: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """The passes of one stream: as many complete passes over all classes as fit into it."""
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    for _ in range(max(1, length // (m * len(members)))):
        of_classes = [members[c] for c in generator.permutation(len(members))]
        yield np.concatenate([generator.choice(rows, m, replace=len(rows) < m) for rows in of_classes])


def _shuffled(labels: NDArray[np.int64], length: int, generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    for _ in range(max(1, length // len(labels))):
        yield generator.permutation(len(labels))
