"""The choice of images for each batch (specification, section 5).

m-per-class sampling repeats this pass: shuffle the training classes, then draw m images of each class. A class with
fewer than m images is drawn with replacement, all others without. Passes make a stream of about 100,000 images.
The stream is cut into consecutive batches; a last, incomplete batch is dropped, and a new stream starts. A batch with
images of two passes can hold a class twice (specification, 11.18).
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

STREAM_LENGTH = 100_000


def batches(
    labels: NDArray[np.int64], batch_size: int, samples_per_class: int, seed: int
) -> Iterator[NDArray[np.int64]]:
    """Yield batches of image positions without end.

    Args:
        labels: Class of every training image, (n,).
        batch_size: Images per batch.
        samples_per_class: m of the m-per-class sampling; 0 shuffles all images of each pass.
        seed: Seed of the draws.

    Yields:
        Positions in `labels`, (batch_size,).

    Raises:
        ValueError: `batch_size` is no multiple of `samples_per_class`, so that a batch would cut a class's group.
    """
    if samples_per_class and batch_size % samples_per_class:
        raise ValueError(f"batch size {batch_size} is no multiple of {samples_per_class} images per class")
    generator = np.random.default_rng(seed)
    while True:
        stream = (
            _m_per_class(labels, samples_per_class, generator) if samples_per_class else _shuffled(labels, generator)
        )
        yield from _cut(stream, batch_size)


def _cut(stream: Iterator[NDArray[np.int64]], batch_size: int) -> Iterator[NDArray[np.int64]]:
    """Cut a stream into batches."""
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
    draw = _some_of_each(members, m, generator)
    for _ in range(max(1, STREAM_LENGTH // (m * len(members)))):
        yield draw(generator.permutation(len(members)))


_Draw = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""Positions of drawn images, for classes in the given order."""


def _some_of_each(members: list[NDArray[np.int64]], m: int, generator: np.random.Generator) -> _Draw:
    """Draw as `generator.choice(of_class, m, replace=len(of_class) < m)` for one class after another, in one call.

    Numpy chooses without replacement by Floyd's algorithm and shuffles the choice. A class has m random numbers for the
    choice and m - 1 for the shuffle. Where an upper bound is 0, numpy draws nothing.
    """
    sizes = np.array([len(of_class) for of_class in members])
    starts, positions, few = np.cumsum(sizes) - sizes, np.concatenate(members), sizes < m
    bounds = np.zeros((len(members), 2 * m - 1), dtype=np.int64)
    bounds[:, :m] = np.where(few[:, None], sizes[:, None] - 1, sizes[:, None] + np.arange(-m, 0))
    bounds[~few, m:] = np.arange(m - 1, 0, -1)

    def draw(order: NDArray[np.int64]) -> NDArray[np.int64]:
        highest, all_differ, rows = bounds[order], ~few[order], np.arange(len(order))
        numbers = generator.integers(0, highest, endpoint=True)
        chosen, exchanged = numbers[:, :m], numbers[:, m:]
        for i in range(1, m):
            again = (chosen[:, :i] == chosen[:, i : i + 1]).any(1) & all_differ
            chosen[again, i] = highest[again, i]
        for i, other in zip(range(m - 1, 0, -1), exchanged.T, strict=True):
            other = np.where(all_differ, other, i)
            chosen[rows, i], chosen[rows, other] = chosen[rows, other], chosen[rows, i].copy()
        drawn: NDArray[np.int64] = positions[starts[order][:, None] + chosen].ravel()
        return drawn

    return draw


def _shuffled(labels: NDArray[np.int64], generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    for _ in range(max(1, STREAM_LENGTH // len(labels))):
        yield generator.permutation(len(labels))
