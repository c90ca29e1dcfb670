"""The running sums of a memory are the sums of its visible rows, whatever was pushed."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from losses import ProxyISALoss
from losses.memory_queue import SummedMemoryQueue

CLASSES, SIZE, WIDTH = 4, 7, 3
ORDERS = ("fifo", "authors")
PUSHES = st.lists(st.lists(st.integers(0, CLASSES - 1), max_size=2 * SIZE), max_size=12)


def filled(order, pushes, seed=0):
    queue = SummedMemoryQueue(SIZE, WIDTH, CLASSES, order)
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


@settings(max_examples=150, deadline=None)
@given(order=st.sampled_from(ORDERS), pushes=PUSHES, seed=st.integers(0, 9))
def test_sums_after_any_pushes(order, pushes, seed):
    assert_sums_of_visible_rows(filled(order, pushes, seed))


@settings(max_examples=50, deadline=None)
@given(order=st.sampled_from(ORDERS), pushes=PUSHES, more=PUSHES)
def test_state_of_an_older_release_gets_its_sums(order, pushes, more):
    queue, loaded = filled(order, pushes), filled(order, more)
    state = {name: value for name, value in queue.state_dict().items() if name not in ("sums", "numbers")}
    loaded.load_state_dict(state)
    assert_sums_of_visible_rows(loaded)


@pytest.mark.parametrize("order", ORDERS)
def test_state_dict_keeps_the_bits_of_the_sums(order):
    queue, loaded = filled(order, [[0, 1, 2]] * 9), SummedMemoryQueue(SIZE, WIDTH, CLASSES, order)
    loaded.load_state_dict(queue.state_dict())
    assert torch.equal(loaded.sums, queue.sums)
    assert torch.equal(loaded.numbers, queue.numbers)


@pytest.mark.parametrize("order", ORDERS)
def test_sums_stay_in_float64_and_follow_the_rows_to_another_dtype(order):
    queue = filled(order, [[0, 1, 2], [3, 3, 0]]).half()
    assert queue.sums.dtype == torch.float64
    assert_sums_of_visible_rows(queue)


@pytest.mark.parametrize("order", ORDERS)
def test_error_does_not_grow_with_the_number_of_pushes(order):
    assert_sums_of_visible_rows(filled(order, [[0, 1, 2, 3, 1]] * 5000))


@pytest.mark.parametrize("order", ORDERS)
def test_learned_similarity_is_the_mean_over_the_stored_rows(order):
    torch.manual_seed(0)
    loss = ProxyISALoss(CLASSES, WIDTH, memory_size=SIZE, h=0.5, queue=order, memory_start_step=0)
    for _ in range(6):
        labels = torch.randint(CLASSES, (5,))
        before = copy.deepcopy(loss.learned_sim)
        loss(torch.randn(5, WIDTH), labels)
        visible, unit = loss.queue.visible(), torch.nn.functional.normalize(loss.proxies.detach())
        for c in range(CLASSES):
            rows = loss.queue.embeddings[visible & (loss.queue.labels == c)]
            updated = bool((labels == c).any()) and len(rows) > 0
            expected = 0.5 * (rows @ unit[c]).mean() if updated else before[c]
            torch.testing.assert_close(loss.learned_sim[c], expected)
