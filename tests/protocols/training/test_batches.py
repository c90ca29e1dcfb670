"""The stream of batches (specification, section 5 and 11.18)."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.training import batches as module
from protocols.training.batches import batches


def _take(labels, batch_size, m, count, seed=0):
    return list(islice(batches(labels, batch_size, m, seed), count))


@settings(deadline=None, max_examples=50)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=2, max_size=9),
    m=st.integers(1, 4),
    groups=st.integers(1, 5),
    seed=st.integers(0, 2**63 - 1),
)
def test_every_batch_holds_groups_of_m(sizes, m, groups, seed):
    labels = np.arange(len(sizes)).repeat(sizes)
    for rows in _take(labels, m * groups, m, 30, seed):
        assert rows.shape == (m * groups,)
        drawn = rows.reshape(groups, m)
        assert (labels[drawn] == labels[drawn][:, :1]).all()
        for group in drawn:
            if sizes[labels[group[0]]] >= m:
                assert len(set(group.tolist())) == m, "drawn with replacement though the class has enough images"


@settings(deadline=None, max_examples=30)
@given(classes=st.integers(2, 9), m=st.integers(1, 3), groups=st.integers(1, 5), seed=st.integers(0, 999))
def test_every_pass_holds_every_class_once(classes, m, groups, seed):
    labels = np.arange(classes).repeat(4)
    stream = np.concatenate(_take(labels, m * groups, m, 40, seed))
    whole = len(stream) // (m * classes)
    for one_pass in stream[: whole * m * classes].reshape(whole, classes, m):
        assert sorted(labels[one_pass][:, 0].tolist()) == list(range(classes))


def test_passes_are_shuffled_and_all_images_are_drawn():
    labels = np.arange(6).repeat(5)
    taken = _take(labels, 12, 2, 30)
    assert len({tuple(labels[rows].tolist()) for rows in taken}) > 25
    assert set(np.concatenate(taken).tolist()) == set(range(30))


@pytest.mark.parametrize(("m", "length"), [(2, 96), (3, 90), (0, 96)])
def test_the_stream_is_cut_at_its_length_and_starts_anew(monkeypatch, m, length):
    # Six classes of four: passes of 12, 18 and (m = 0) 24 entries, as many whole ones as fit into 100.
    monkeypatch.setattr(module, "STREAM_LENGTH", 100)
    labels = np.arange(6).repeat(4)
    batch = 21 if m == 3 else 20
    per_stream = length // batch
    taken = _take(labels, batch, m, 3 * per_stream)
    one_pass = m * 6 or 24
    for first in range(0, 3 * per_stream, per_stream):
        # After the dropped rest of a stream, the next one begins with a whole pass.
        start = np.concatenate(taken[first : first + per_stream])[:one_pass]
        if m:
            assert sorted(labels[start[::m]].tolist()) == list(range(6))
        else:
            assert sorted(start.tolist()) == list(range(24))
    after = labels[np.concatenate(taken)[per_stream * batch - (per_stream * batch) % one_pass :][:one_pass]]
    assert Counter(after.tolist()) != Counter(dict.fromkeys(range(6), one_pass // 6)), "no rest was dropped"


def test_without_groups_images_come_in_shuffled_passes():
    labels = np.array([0] * 7 + [1] * 3)
    stream = np.concatenate(_take(labels, 4, 0, 25)).reshape(10, 10)
    assert (np.sort(stream, axis=1) == np.arange(10)).all()
    assert len({tuple(one_pass.tolist()) for one_pass in stream}) == 10


@pytest.mark.parametrize("m", [0, 1, 4])
def test_the_seed_decides(m):
    labels = np.arange(10).repeat(5)
    first, again, other = (np.stack(_take(labels, 8, m, 20, seed)) for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


@settings(deadline=None, max_examples=50)
@given(images=st.integers(4, 60), batch=st.integers(1, 60), seed=st.integers(0, 999))
def test_whole_passes_of_shuffled_images_drop_their_rest(images, batch, seed):
    labels = np.arange(images)
    if batch > images:
        with pytest.raises(ValueError, match=f"batch size {batch} is above {images}, the largest"):
            next(batches(labels, batch, 0, seed, whole_passes=True))
        return
    per_pass = images // batch
    stream = batches(labels, batch, 0, seed, whole_passes=True)
    for _ in range(3):
        # As torch's DataLoader with shuffle and drop_last: no image comes twice within a pass.
        one_pass = np.concatenate(list(islice(stream, per_pass)))
        assert len(set(one_pass.tolist())) == per_pass * batch


@settings(deadline=None, max_examples=30)
@given(classes=st.integers(2, 9), m=st.integers(1, 3), groups=st.integers(1, 9), seed=st.integers(0, 999))
def test_no_class_comes_twice_in_a_batch_of_whole_passes(classes, m, groups, seed):
    labels = np.arange(classes).repeat(4)
    if groups > classes:
        with pytest.raises(ValueError, match="the largest of these"):
            next(batches(labels, m * groups, m, seed, whole_passes=True))
        return
    for rows in islice(batches(labels, m * groups, m, seed, whole_passes=True), 30):
        assert set(Counter(labels[rows].tolist()).values()) == {m}
