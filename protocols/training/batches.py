"""Which images make a batch (specification, section 5).

m-per-class: repeat { shuffle the training classes; of each draw m images without replacement, or with replacement where
a class has fewer }. The stream has about 100,000 entries and is cut into consecutive batches, the last partial one
dropped; then it starts anew. A batch that straddles two passes may hold a class twice (specification, 11.18).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

STREAM_LENGTH = 100_000


def batches(
    labels: NDArray[np.int64], batch_size: int, samples_per_class: int, seed: int
) -> Iterator[NDArray[np.int64]]:
    """Endless positions into `labels`, `batch_size` at a time; `samples_per_class` 0 draws whole shuffled passes.

    Raises ValueError where `batch_size` is no multiple of `samples_per_class`, since groups would be torn.
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
    rest = np.empty(0, dtype=np.int64)
    for part in stream:
        rest = np.concatenate([rest, part])
        whole = len(rest) - len(rest) % batch_size
        for first in range(0, whole, batch_size):
            yield rest[first : first + batch_size]
        rest = rest[whole:]


def _m_per_class(labels: NDArray[np.int64], m: int, generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """One pass over all classes at a time, as many whole passes as fit into the stream."""
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    for _ in range(max(1, STREAM_LENGTH // (m * len(members)))):
        order = generator.permutation(len(members))
        draws = [generator.choice(members[c], m, replace=len(members[c]) < m) for c in order]
        yield np.concatenate(draws)


def _shuffled(labels: NDArray[np.int64], generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    for _ in range(max(1, STREAM_LENGTH // len(labels))):
        yield generator.permutation(len(labels))
