"""A value that the host knows is read again exactly when the buffer has changed."""

import copy
import pickle

import pytest
import torch

from losses.without_waiting import KnownOnHost
from tests.support.pretended_device import DEVICE, pretended_device


def test_a_buffer_is_read_once_until_it_changes() -> None:
    with pretended_device() as mode:
        known, buffer = KnownOnHost(), torch.zeros((), device=DEVICE)
        reads = []
        for change in (lambda: None, lambda: None, lambda: buffer.add_(2), lambda: None):
            change()
            reads.append((known.read("x", buffer), mode.waits.total()))
    assert reads == [(0, 1), (0, 1), (2, 2), (2, 2)]


def test_a_written_value_needs_no_reading() -> None:
    with pretended_device() as mode:
        known, buffer = KnownOnHost(), torch.tensor(False).to(DEVICE)
        mode.waits.clear()
        known.write("x", buffer, True)
        assert known.read("x", buffer) is True
        version = buffer._version
        known.write("x", buffer, True)
        assert buffer._version == version
        assert mode.waits.total() == 0
        assert buffer.item() is True


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_copy_begins_without_known_values(copied) -> None:
    pair = KnownOnHost(), torch.tensor(1)
    pair[0].read("x", pair[1])
    known, buffer = copied(pair)
    # As many changes as the original had before it was read.
    for _ in range(pair[1]._version + 1):
        buffer.add_(1)
    assert known.read("x", buffer) == buffer.item()
    assert known.read("x", torch.tensor(7)) == 7


def test_a_value_can_be_computed_from_a_buffer() -> None:
    known, buffer = KnownOnHost(), torch.tensor([3, 4])
    assert known.read("first", buffer, lambda values: values[0]) == 3
    buffer[0] = 5
    assert known.read("first", buffer, lambda values: values[0]) == 5
