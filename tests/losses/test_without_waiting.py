"""What a GPU must not wait for: values of buffers, reducers, and pair losses on whole matrices."""

import copy
import pickle

import pytest
import torch
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning.distances import DotProductSimilarity
from pytorch_metric_learning.reducers import AvgNonZeroReducer, DivisorReducer, MeanReducer
from pytorch_metric_learning.regularizers import ZeroMeanRegularizer

from losses.pair_losses import (
    BatchSumReducer,
    CosineContrastiveLoss,
    EuclideanDistance,
    SignalToNoiseRatioContrastiveLoss,
)
from losses.without_waiting import BufferValues, MeanAboveZero, SumOverDivisor, pair_loss, replace_reducers
from tests.support.pretended_device import DEVICE, pretended_device

# --- values of buffers: read again exactly when the buffer has changed ---


def test_a_buffer_is_read_once_until_it_changes() -> None:
    with pretended_device() as mode:
        known, buffer = BufferValues(), torch.zeros((), device=DEVICE)
        reads = []
        for change in (lambda: None, lambda: None, lambda: buffer.add_(2), lambda: None):
            change()
            reads.append((known.read("x", buffer), mode.waits.total()))
    assert reads == [(0, 1), (0, 1), (2, 2), (2, 2)]


def test_a_written_value_needs_no_reading() -> None:
    with pretended_device() as mode:
        known, buffer = BufferValues(), torch.tensor(False).to(DEVICE)
        mode.waits.clear()
        known.write("x", buffer, True)
        assert known.read("x", buffer) is True
        version = buffer._version
        known.write("x", buffer, True)
        assert buffer._version == version
        assert mode.waits.total() == 0
        assert buffer.item() is True


def test_a_copy_begins_without_known_values() -> None:
    for copied in (copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))):
        pair = BufferValues(), torch.tensor(1)
        pair[0].read("x", pair[1])
        known, buffer = copied(pair)
        # As many changes as the original had before it was read.
        for _ in range(pair[1]._version + 1):
            buffer.add_(1)
        assert known.read("x", buffer) == buffer.item()
        assert known.read("x", torch.tensor(7)) == 7


def test_a_buffer_of_several_elements_is_a_list() -> None:
    known, buffer = BufferValues(), torch.tensor([3, 4])
    assert known.read("all", buffer) == [3, 4]
    buffer[0] = 5
    assert known.read("all", buffer) == [5, 4]


# --- reducers: what pytorch-metric-learning's give ---

EMBEDDINGS = torch.ones(3, 2)
SOME = torch.tensor([0.5, 0.0, -1.0, 2.0, 0.25])


def reduced(reducer, losses, divisor=None):
    losses = losses.detach().clone().requires_grad_()
    indices = torch.arange(len(losses), device=losses.device)
    term = {"losses": losses, "indices": indices, "reduction_type": "element", "divisor": divisor}
    embeddings = EMBEDDINGS.to(losses.device).requires_grad_()
    value = reducer({"loss": term}, embeddings, None)
    value.backward()
    gradient = torch.zeros_like(losses) if losses.grad is None else losses.grad
    return value.detach().cpu(), gradient.cpu()


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("losses", [SOME, -SOME.abs()], ids=["some above 0", "none above 0"])
def test_mean_above_zero(losses):
    expected = reduced(AvgNonZeroReducer(), losses)
    assert same(reduced(MeanAboveZero(), losses), expected)
    with pretended_device() as mode:
        there = losses.to(DEVICE)
        mode.waits.clear()
        losses_there = there.requires_grad_()
        value = MeanAboveZero().element_reduction_helper(losses_there, None)
        value.backward()
        assert mode.waits.total() == 0
        torch.testing.assert_close((value.detach().cpu(), there.grad.cpu()), expected)


@pytest.mark.parametrize("divisor", [0, 3, 2.5])
def test_divisor(divisor):
    expected = reduced(DivisorReducer(), SOME, divisor)
    assert same(reduced(SumOverDivisor(), SOME, divisor), expected)
    assert same(reduced(SumOverDivisor(), SOME, torch.tensor(divisor)), expected)


def test_usual_reducers_without_statistics_are_replaced_inside_a_loss():
    loss, other = pml.ContrastiveLoss(), pml.ContrastiveLoss(reducer=MeanReducer())
    watched = pml.TripletMarginLoss(reducer=AvgNonZeroReducer(collect_stats=True))
    for each in (loss, other, watched):
        replace_reducers(each)
    assert {type(reducer) for reducer in loss.reducer.reducers.values()} == {MeanAboveZero}
    assert {type(reducer) for reducer in other.reducer.reducers.values()} == {MeanReducer}
    assert type(watched.reducer) is AvgNonZeroReducer


# --- pair losses on whole matrices: those of pytorch-metric-learning on lists, in value and gradient ---

DOT = DotProductSimilarity(normalize_embeddings=False)
LOSSES = {
    "contrastive": lambda: pml.ContrastiveLoss(0.1, 0.9),
    "contrastive without active pairs": lambda: pml.ContrastiveLoss(9.0, -9.0),
    "sum over the batch": lambda: pml.ContrastiveLoss(1, 0.2, distance=DOT, reducer=BatchSumReducer()),
    "cosine contrastive": lambda: CosineContrastiveLoss(0.1),
    "euclidean": lambda: pml.ContrastiveLoss(0.0, 0.7, distance=EuclideanDistance()),
    "signal to noise": lambda: SignalToNoiseRatioContrastiveLoss(
        pos_margin=0.1, neg_margin=2.0, embedding_regularizer=ZeroMeanRegularizer(), embedding_reg_weight=0.1
    ),
    "triplet": lambda: pml.TripletMarginLoss(0.3),
    "triplet without active triplets": lambda: pml.TripletMarginLoss(-9.0),
    "multi-similarity": lambda: pml.MultiSimilarityLoss(2, 10, 0.5),
    "margin": lambda: pml.MarginLoss(beta=0.9, learn_beta=True, nu=0.2),
    "margin without active triplets": lambda: pml.MarginLoss(margin=-9.0, learn_beta=True, nu=0.2, num_classes=9),
    "margin per class": lambda: pml.MarginLoss(beta=0.9, learn_beta=True, nu=0.2, num_classes=9),
    "ntxent": lambda: pml.NTXentLoss(0.2),
}
LABELS = {
    "pairs of classes": torch.tensor([0, 1, 2, 0, 1, 2, 3, 3]),
    "a sample alone": torch.tensor([0, 1, 1, 1, 2, 2, 0, 8]),
    "one class": torch.zeros(8, dtype=torch.long),
    "all different": torch.arange(8),
}


def value_and_gradients(loss, rows, others, compute):
    rows = rows.detach().clone().requires_grad_()
    others = None if others is None else others.detach().clone().requires_grad_()
    value = compute(loss, rows, others)
    value.sum().backward()
    leaves = [rows, *([] if others is None else [others]), *loss.parameters()]
    return value.detach().sum(), [torch.zeros_like(x) if x.grad is None else x.grad for x in leaves]


def compare(make, labels, others=None, other_labels=None):
    torch.manual_seed(0)
    rows = torch.randn(len(labels), 6)
    loss = make()
    expected, gradients = value_and_gradients(
        copy.deepcopy(loss), rows, others, lambda loss, x, y: loss(x, labels, None, y, other_labels)
    )
    with pretended_device() as mode:
        there = copy.deepcopy(loss).to(DEVICE)
        on_device = [None if x is None else x.to(DEVICE) for x in (rows, labels, others, other_labels)]
        mode.waits.clear()
        value, device_gradients = value_and_gradients(
            there, on_device[0], on_device[2], lambda loss, x, y: pair_loss(loss, x, on_device[1], y, on_device[3])
        )
        assert mode.waits.total() == 0, mode.waits
        torch.testing.assert_close(value.cpu(), expected.reshape(()))
        for ours, theirs in zip(device_gradients, gradients, strict=True):
            torch.testing.assert_close(ours.cpu(), theirs)


@pytest.mark.parametrize("name", LOSSES)
def test_within_a_batch(name):
    for labels in LABELS.values():
        compare(LOSSES[name], labels)


@pytest.mark.parametrize("name", sorted(LOSSES.keys() - {"signal to noise"}))
def test_against_other_rows(name):
    generator = torch.Generator().manual_seed(1)
    compare(LOSSES[name], LABELS["a sample alone"], torch.randn(11, 6, generator=generator), torch.arange(11) % 5)


def test_ignored_pairs_add_nothing():
    torch.manual_seed(0)
    rows, others = torch.randn(6, 4), torch.randn(5, 4)
    labels, other_labels = torch.arange(6) % 2, torch.arange(5) % 2
    ignored = torch.zeros(6, 5, dtype=torch.bool)
    ignored[:, 3:] = True
    loss = pml.ContrastiveLoss(0.1, 0.9)
    expected = loss(rows, labels, None, others[:3], other_labels[:3])
    with pretended_device():
        arguments = [x.to(DEVICE) for x in (rows, labels, others, other_labels, ignored)]
        torch.testing.assert_close(pair_loss(loss, *arguments).cpu(), expected)


def test_a_cpu_keeps_the_lists():
    assert pair_loss(pml.ContrastiveLoss(), torch.randn(8, 4), LABELS["all different"]) is None


def test_other_losses_have_no_dense_form():
    others = (
        pml.ContrastiveLoss(reducer=MeanReducer()),
        pml.TripletMarginLoss(swap=True),
        pml.TripletMarginLoss(smooth_loss=True),
        pml.TripletMarginLoss(triplets_per_anchor=3),
        pml.MarginLoss(beta=0.9),
        pml.FastAPLoss(),
        pml.SupConLoss(),
    )
    with pretended_device():
        for loss in others:
            assert pair_loss(loss, torch.randn(8, 4, device=DEVICE), LABELS["one class"].to(DEVICE)) is None, loss


def test_too_many_triplets_are_listed(monkeypatch):
    monkeypatch.setattr("losses.without_waiting._TRIPLETS", 8**3 - 1)
    with pretended_device():
        rows, labels = torch.randn(8, 4, device=DEVICE), LABELS["one class"].to(DEVICE)
        assert pair_loss(pml.TripletMarginLoss(), rows, labels) is None
        assert pair_loss(pml.TripletMarginLoss(), rows[:7], labels[:7]) is not None
