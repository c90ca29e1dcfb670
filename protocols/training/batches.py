"""The choice of images for each batch (specification, section 5).

m-per-class sampling repeats this pass: shuffle the training classes, then draw m images of each class. A class with
fewer than m images is drawn with replacement, all others without. Passes make a stream of about 100,000 images.
The stream is cut into consecutive batches; a last, incomplete batch is dropped, and a new stream starts. A batch with
images of two passes can hold a class twice (specification, 11.18). Where passes stay whole, the rest of each pass is
dropped, as loaders of shuffled images do: no batch holds a class (m-per-class) or an image (m = 0) twice.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from results.wording import counted

STREAM_LENGTH = 100_000


def batches(
    labels: NDArray[np.int64], batch_size: int, samples_per_class: int, seed: int, *, whole_passes: bool = False
) -> Iterator[NDArray[np.int64]]:
    """Return batches of image positions without end.

    Args:
        labels: Class of every training image, (n,).
        samples_per_class: Images of a class that stand together (m); 0 draws all images in a random order.
        whole_passes: Whether each pass is cut into batches by itself.

    Raises:
        ValueError: No batch of this size can be cut from the streams of these images.
    """
    m = samples_per_class
    if m and batch_size % m:
        raise ValueError(f"batch size {batch_size} is no multiple of {counted(m, 'image')} per class")
    one_pass = m * len(np.unique(labels)) if m else len(labels)
    passes = 1 if whole_passes else max(1, STREAM_LENGTH // one_pass)
    if batch_size > passes * one_pass:
        raise ValueError(
            f"batch size {batch_size} is above {passes * one_pass}, the largest of these "
            f"{counted(len(labels), 'image')}"
        )
    return _endless(labels, batch_size, m, seed, passes)


def _endless(labels: NDArray[np.int64], batch_size: int, m: int, seed: int, passes: int) -> Iterator[NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    while True:
        yield from _cut((_one_pass(members, len(labels), m, generator) for _ in range(passes)), batch_size)


def _cut(stream: Iterator[NDArray[np.int64]], batch_size: int) -> Iterator[NDArray[np.int64]]:
    rest = np.empty(0, dtype=np.int64)
    for part in stream:
        rest = np.concatenate([rest, part])
        full_batches = len(rest) - len(rest) % batch_size
        for first in range(0, full_batches, batch_size):
            yield rest[first : first + batch_size]
        rest = rest[full_batches:]


def _one_pass(
    members: Sequence[NDArray[np.int64]], images: int, m: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    if not m:
        return generator.permutation(images)
    of_classes = [members[c] for c in generator.permutation(len(members))]
    return np.concatenate([generator.choice(rows, m, replace=len(rows) < m) for rows in of_classes])
