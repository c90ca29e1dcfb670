"""For an unusual batch, every loss gives the right number or a clear error."""

import copy

import pytest
import torch

from tests.support.loss_contract import (
    B,
    C,
    D,
    assert_same_state,
    batch,
    every_case,
    made,
    value_of,
    with_finite_gradients,
)


@every_case
def test_order_of_the_batch_does_not_matter(case):
    embeddings, labels = batch(dtype=torch.float64)
    loss = made(case, dtype=torch.float64)
    order = torch.randperm(B, generator=torch.Generator().manual_seed(1))
    shuffled = value_of(loss, embeddings[order], labels[order])
    torch.testing.assert_close(shuffled, value_of(loss, embeddings, labels))


@every_case
def test_any_integer_labels(case):
    embeddings, labels = batch()
    loss = made(case)
    for dtype in (torch.int32, torch.uint8):
        assert value_of(loss, embeddings, labels.to(dtype)) == value_of(loss, embeddings, labels)


@every_case
def test_batch_of_one_class_and_of_one_sample(case):
    embeddings, labels = batch()
    several = with_finite_gradients(made(case), embeddings, torch.full_like(labels, 2))
    single = with_finite_gradients(made(case), embeddings[:1], labels[:1])
    assert several >= 0
    assert (several > 0 and single > 0) or not case.alone


@every_case
def test_two_classes(case):
    loss = made(case, num_classes=2, seed=2, dtype=torch.float64).eval()
    embeddings, labels = batch(num_classes=2, dtype=torch.float64)
    right = with_finite_gradients(loss, embeddings, labels)
    if case.proxies is not None:
        rows = case.proxies(loss)
        own = rows.reshape(2, -1, D).mean(1)
        assert loss(own[labels], labels) < loss(own[1 - labels], labels)
    assert right > 0 or not case.positive


def wrong_batches():
    embeddings, labels = batch()
    poisoned, infinite = embeddings.clone(), embeddings.clone()
    poisoned[3, 2], infinite[0, 0] = torch.nan, torch.inf
    return {
        "label too large": (embeddings, labels.clone().fill_(C), "labels must be in"),
        "label negative": (embeddings, labels - C, "labels must be in"),
        "labels not whole": (embeddings, labels.float(), "integers"),
        "no labels": (embeddings, None, "labels are required"),
        "NaN": (poisoned, labels, "NaN"),
        "infinite": (infinite, labels, "NaN or infinite"),
        "too few labels": (embeddings, labels[:-1], "must equal number of labels"),
        "labels in two dimensions": (embeddings, labels.reshape(B, 1), "1D"),
        "embeddings in three dimensions": (embeddings.reshape(B, 2, 4), labels, r"embeddings \(B, d\)"),
        "embeddings too narrow": (embeddings[:, :-1], labels, "dimensions"),
        "nothing": (embeddings[:0], labels[:0], "empty"),
    }


@every_case
def test_a_wrong_batch_is_refused_and_changes_no_state(case):
    loss = made(case)
    before = copy.deepcopy(loss)
    for fault, (embeddings, labels, message) in wrong_batches().items():
        if fault in ("label too large", "label negative") and not case.classes:
            continue
        if fault == "embeddings too narrow" and not case.sized:
            continue
        with pytest.raises(ValueError, match=message):
            loss(embeddings, labels)
        assert_same_state(loss, before)
