"""The memory is a ring, and its running sums are the sums of its rows, whatever was pushed."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from losses.memory_queue import MemoryQueue, SummedMemoryQueue

CLASSES, SIZE, WIDTH = 4, 7, 3
PUSHES = st.lists(st.lists(st.integers(0, CLASSES - 1), max_size=2 * SIZE), max_size=12)


class ListQueue:
    """The ring, said with a list."""

    def __init__(self, size):
        self.rows, self.size = [], size

    def push(self, values):
        self.rows = (self.rows + values)[-self.size :]


@pytest.mark.parametrize("sizes", [[3, 3, 3, 3], [5], [2, 9, 1], [7, 7], [0, 4, 0]])
def test_fifo_keeps_the_latest_rows(sizes):
    queue, oracle, value = MemoryQueue(5, 1), ListQueue(5), 0
    for q in sizes:
        values = list(range(value, value + q))
        value += q
        queue.push(torch.tensor(values, dtype=torch.float32).reshape(q, 1), torch.tensor(values, dtype=torch.long))
        oracle.push(values)
        visible = queue.visible()
        assert sorted(queue.labels[visible].tolist()) == oracle.rows
        assert torch.equal(queue.embeddings[visible].squeeze(1).long(), queue.labels[visible])
        assert queue.filled == len(oracle.rows)
        assert (queue.labels[~visible] == -1).all()


def filled(pushes, seed=0):
    queue = SummedMemoryQueue(SIZE, WIDTH, CLASSES)
    generator = torch.Generator().manual_seed(seed)
    for labels in pushes:
        queue.push(torch.randn(len(labels), WIDTH, generator=generator), torch.tensor(labels, dtype=torch.long))
    return queue


def assert_sums_of_visible_rows(queue):
    sums, numbers = queue.class_sums(torch.arange(CLASSES))
    for c in range(CLASSES):
        rows = queue.embeddings[queue.visible() & (queue.labels == c)].double()
        assert numbers[c] == len(rows)
        torch.testing.assert_close(sums[c], rows.sum(0), rtol=0, atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(pushes=PUSHES, seed=st.integers(0, 9))
def test_sums_after_any_pushes(pushes, seed):
    assert_sums_of_visible_rows(filled(pushes, seed))
