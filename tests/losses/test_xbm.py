"""Cross-batch memory against the authors' code (with a true queue), and how it starts, stops and resumes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning import losses as pml_losses
from torch.nn import functional

from losses import Needs, XBMLoss
from losses.memory_queue import MemoryQueue, SummedMemoryQueue
from losses.pair_losses import COPY
from losses.plugin import Clock, TrainingPlugin
from tests.support.golden_files import case_name, golden


class Listening(TrainingPlugin):
    """Stands before the class of a loss. heard: the names of the hooks in the order of their calls."""

    heard = ()

    def bind(self, context):
        self.heard += ("bind",)

    def on_epoch_start(self, clock):
        self.heard += ("epoch",)

    def on_step_start(self, clock):
        self.heard += ("step",)

    def on_gradients(self, clock):
        self.heard += ("gradients",)
        return False

    def on_evaluation(self, clock, metrics):
        self.heard += ("evaluation",)


CASES = golden("xbm")


def clock(step):
    return Clock(epoch=0, step=step, steps_per_epoch=100, passes=0)


def batches(steps, size=6, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(size) % classes
    return [(torch.randn(size, 4, generator=generator), labels) for _ in range(steps)]


def stored_labels(loss):
    """Labels in the queue, oldest first."""
    queue = loss.queue
    in_slots = queue.labels.roll(-int(queue.position)) if queue.filled == loss.memory_size else queue.labels
    return in_slots[: int(queue.filled)]


def loss_of(case):
    params = case.params
    assert params.pop("epsilon") == COPY
    return XBMLoss.from_card(**params).to(case.dtype)


@pytest.mark.parametrize("hooks", [True, False], ids=["clock", "counting"])
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_steps(case, hooks):
    loss = loss_of(case)
    for step, (rows, labels) in enumerate(zip(case.arrays["embeddings"], case.arrays["labels"], strict=True)):
        embeddings = torch.from_numpy(rows).requires_grad_()
        if hooks:
            loss.on_step_start(clock(step))
        total = loss(embeddings, torch.from_numpy(labels))
        total.backward()
        case.check(total, case.arrays["total_fifo"][step], f"total {step}")
        case.check(embeddings.grad, case.arrays["grad_fifo"][step], f"grad {step}", scaled=True)
        # The sidecar counts the rows compared, which is none before the memory starts.
        assert loss.queue.filled == case.arrays["n_valid_fifo"][step]
    np.testing.assert_array_equal(stored_labels(loss), case.arrays["mem_targets_fifo"])


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_two_terms(case):
    loss = loss_of(case)
    for step in range(case.sidecar["steps"]):
        embeddings, labels = case.tensor("embeddings")[step], case.tensor("labels")[step]
        terms = loss.compute_loss(embeddings, labels, None, embeddings, labels)
        case.check(terms["batch_loss"]["losses"], case.arrays["batch_loss"][step], "batch_loss")
        memory = torch.as_tensor(terms["memory_loss"]["losses"]) / loss.weight
        case.check(memory, case.arrays["xbm_loss_fifo"][step], "xbm_loss")


def test_memory_gives_no_gradient_to_the_past():
    loss = XBMLoss.from_card(embedding_size=4, memory_size=12, start_iteration=0)
    (first, labels), (second, _) = batches(2)
    past = first.clone().requires_grad_()
    loss(past, labels)
    loss(second.requires_grad_(), labels).backward()
    assert past.grad is None
    assert second.grad is not None


def test_a_sample_does_not_meet_its_own_copy():
    """With nothing but the batch in the memory both terms are one; multi-similarity would see a copy at cosine 1."""
    (earlier, labels), (embeddings, _) = batches(2)
    loss = XBMLoss(pml_losses.MultiSimilarityLoss(), 4, 6, start_iteration=0, weight=0.5)
    plain = pml_losses.MultiSimilarityLoss()
    loss(earlier[:4], labels[:4])  # so that the batch wraps round the end of the ring
    torch.testing.assert_close(loss(embeddings, labels), 1.5 * plain(embeddings, labels))


def test_a_library_loss_can_be_wrapped_and_its_pairs_chosen():
    (embeddings, labels), (other, _) = batches(2)
    loss = XBMLoss(pml_losses.MultiSimilarityLoss(), 4, 12, start_iteration=1)
    assert loss(embeddings, labels) == pml_losses.MultiSimilarityLoss()(functional.normalize(embeddings, dim=1), labels)
    nothing = tuple(torch.tensor([], dtype=torch.long) for _ in range(4))
    chosen = XBMLoss.from_card(embedding_size=4, memory_size=12, start_iteration=5)
    assert chosen(other, labels, nothing) == 0
    assert chosen(other, labels) > 0


class ListeningLoss(Listening, pml_losses.ContrastiveLoss):
    needs = Needs(warmup_epochs=2)


def test_hooks_reach_the_wrapped_loss():
    inner = ListeningLoss()
    loss = XBMLoss(inner, 4, 12)
    loss.bind(None)
    loss.on_epoch_start(clock(0))
    loss.on_step_start(clock(3))
    assert loss.on_gradients(clock(3)) is False
    loss.on_evaluation(clock(3), {})
    assert inner.heard == ("bind", "epoch", "step", "gradients", "evaluation")
    assert loss.iteration == 3
    assert loss.needs.warmup_epochs == 2


def test_parameters_of_the_wrapped_loss_are_grouped_once():
    inner = pml_losses.MarginLoss(learn_beta=True)
    groups = XBMLoss(inner, 4, 12).param_groups(0.5, 0.1)
    assert [id(p) for group in groups for p in group["params"]] == [id(inner.beta)]
    assert (groups[0]["lr"], groups[0]["weight_decay"]) == (0.5, 0.1)


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
