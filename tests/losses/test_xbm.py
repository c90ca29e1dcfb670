"""Cross-batch memory against the authors' code (with a true queue), and how it starts, stops and resumes."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from pytorch_metric_learning import losses as pml_losses
from torch import Tensor
from torch.nn import functional

from losses import Needs, XBMLoss
from losses.pair_losses import COPY
from losses.plugin import Clock, TrainingContext, TrainingPlugin
from tests.support.golden_files import Case, case_name, golden


class Listening(TrainingPlugin):
    """Stands before the class of a loss. heard: the names of the hooks in the order of their calls."""

    heard: tuple[str, ...] = ()

    def bind(self, context: TrainingContext) -> None:
        self.heard += ("bind",)

    def on_epoch_start(self, clock: Clock) -> None:
        self.heard += ("epoch",)

    def on_step_start(self, clock: Clock) -> None:
        self.heard += ("step",)

    def on_gradients(self, clock: Clock) -> bool:
        self.heard += ("gradients",)
        return False

    def on_evaluation(self, clock: Clock, metrics: Mapping[str, float]) -> None:
        self.heard += ("evaluation",)


CASES = golden("xbm")


def clock(step: int) -> Clock:
    return Clock(epoch=0, step=step, steps_per_epoch=100, passes=0)


def batches(steps: int, size: int = 6, classes: int = 3, seed: int = 0) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(size) % classes
    return [(torch.randn(size, 4, generator=generator), labels) for _ in range(steps)]


def stored_labels(loss: XBMLoss) -> Tensor:
    """Labels in the queue, oldest first."""
    queue = loss.queue
    in_slots = queue.labels.roll(-int(queue.position)) if queue.filled == loss.memory_size else queue.labels
    return in_slots[: int(queue.filled)]


def loss_of(case: Case) -> XBMLoss:
    params = case.params
    assert params.pop("epsilon") == COPY
    return XBMLoss.from_card(**params).to(case.dtype)


@pytest.mark.parametrize("hooks", [True, False], ids=["clock", "counting"])
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_authors_steps(case: Case, hooks: bool) -> None:
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
def test_authors_two_terms(case: Case) -> None:
    loss = loss_of(case)
    for step in range(case.sidecar["steps"]):
        embeddings, labels = case.tensor("embeddings")[step], case.tensor("labels")[step]
        terms = loss.compute_loss(embeddings, labels, None, embeddings, labels)
        case.check(terms["batch_loss"]["losses"], case.arrays["batch_loss"][step], "batch_loss")
        memory = torch.as_tensor(terms["memory_loss"]["losses"]) / loss.weight
        case.check(memory, case.arrays["xbm_loss_fifo"][step], "xbm_loss")


def test_memory_gives_no_gradient_to_the_past() -> None:
    loss = XBMLoss.from_card(embedding_size=4, memory_size=12, start_iteration=0)
    (first, labels), (second, _) = batches(2)
    past = first.clone().requires_grad_()
    loss(past, labels)
    loss(second.requires_grad_(), labels).backward()
    assert past.grad is None
    assert second.grad is not None


def test_a_sample_does_not_meet_its_own_copy() -> None:
    """With nothing but the batch in the memory both terms are one; multi-similarity would see a copy at cosine 1."""
    (earlier, labels), (embeddings, _) = batches(2)
    loss = XBMLoss(pml_losses.MultiSimilarityLoss(), 4, 6, start_iteration=0, weight=0.5)
    plain = pml_losses.MultiSimilarityLoss()
    loss(earlier[:4], labels[:4])  # so that the batch wraps round the end of the ring
    torch.testing.assert_close(loss(embeddings, labels), 1.5 * plain(embeddings, labels))


def test_a_library_loss_can_be_wrapped_and_its_pairs_chosen() -> None:
    (embeddings, labels), (other, _) = batches(2)
    loss = XBMLoss(pml_losses.MultiSimilarityLoss(), 4, 12, start_iteration=1)
    assert loss(embeddings, labels) == pml_losses.MultiSimilarityLoss()(functional.normalize(embeddings, dim=1), labels)
    nothing = tuple(torch.tensor([], dtype=torch.long) for _ in range(4))
    chosen = XBMLoss.from_card(embedding_size=4, memory_size=12, start_iteration=5)
    assert chosen(other, labels, nothing) == 0
    assert chosen(other, labels) > 0


class ListeningLoss(Listening, pml_losses.ContrastiveLoss):
    needs = Needs(warmup_epochs=2)


def test_hooks_reach_the_wrapped_loss() -> None:
    inner = ListeningLoss()
    loss = XBMLoss(inner, 4, 12)
    loss.bind(None)  # type: ignore[arg-type]
    loss.on_epoch_start(clock(0))
    loss.on_step_start(clock(3))
    assert loss.on_gradients(clock(3)) is False
    loss.on_evaluation(clock(3), {})
    assert inner.heard == ("bind", "epoch", "step", "gradients", "evaluation")
    assert loss.iteration == 3
    assert loss.needs.warmup_epochs == 2


def test_parameters_of_the_wrapped_loss_are_grouped_once() -> None:
    inner = pml_losses.MarginLoss(learn_beta=True)
    groups = XBMLoss(inner, 4, 12).param_groups(0.5, 0.1)
    assert [id(p) for group in groups for p in group["params"]] == [id(inner.beta)]
    assert (groups[0]["lr"], groups[0]["weight_decay"]) == (0.5, 0.1)
