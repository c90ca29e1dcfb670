"""The other ways of docs/deviations.md: they do what they say."""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch.nn import functional

from losses import HISTLoss, SoftTripleLoss, XBMLoss
from losses.pair_losses import COPY
from losses.plugin import Clock
from tests.benchmarks import deviation_ways as ways
from tests.benchmarks.deviations import compared
from tests.support.golden_files import case_name, golden

# In the fourth case a label 0 makes the authors' full memory look empty.
CASES = [case for case in golden("xbm") if "label 0" not in case.sidecar["note"]]


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_the_queue_of_xbm_is_that_of_the_authors(case):
    params = case.params
    assert params.pop("epsilon") == COPY
    with patch("losses.xbm.MemoryQueue", ways.NewestRows):
        loss = XBMLoss.from_card(**params).to(case.dtype)
    for step, (rows, labels) in enumerate(zip(case.arrays["embeddings"], case.arrays["labels"], strict=True)):
        embeddings = torch.from_numpy(rows).requires_grad_()
        total = loss(embeddings, torch.from_numpy(labels))
        total.backward()
        case.check(total, case.arrays["total"][step], f"total {step}")
        case.check(embeddings.grad, case.arrays["grad"][step], f"grad {step}", scaled=True)


def test_the_summed_memory_holds_the_rows_that_were_kept_and_not_overwritten():
    queue = ways.NewestSummed(5, 1, 2)
    rows = torch.arange(1.0, 5.0).unsqueeze(1)
    queue.push(rows, torch.tensor([0, 0, 1, 1]), torch.tensor([True, True, True, False]))
    queue.push(10 * rows[:3], torch.tensor([0, 1, 1]))
    assert queue.embeddings.squeeze(1).tolist() == [1, 2, 10, 20, 30]
    assert queue.class_sums(torch.arange(2))[0].squeeze(1).tolist() == [13, 50]
    assert (int(queue.position), int(queue.filled)) == (0, 5)


def test_hist_drops_the_samples_of_probability_zero_only():
    embeddings, labels = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 3
    counts = []
    for tau in (1.0, 300.0):
        torch.manual_seed(0)
        loss, dropping = HISTLoss(3, 4, tau=tau), ways.DroppingHIST(3, 4, tau=tau)
        dropping.load_state_dict(loss.state_dict())
        all_of, left = (one.compute_loss(embeddings, labels, None, embeddings, labels) for one in (loss, dropping))
        values, kept = (terms["distribution_loss"]["losses"] for terms in (all_of, left))
        assert torch.equal(kept, values[values < 103.9])
        counts.append(len(kept))
    assert counts[0] == 6 > counts[1]


def test_the_last_batch_is_kept_and_a_pass_has_every_image_once():
    batches = ways.batches_with_the_rest(np.zeros(7, dtype=np.int64), 3, 0, 0, whole_passes=True)
    one_pass = [next(batches) for _ in range(3)]
    assert [len(rows) for rows in one_pass] == [3, 3, 1]
    assert sorted(np.concatenate(one_pass)) == list(range(7))


def test_ccp_sees_the_evaluation_before():
    seen = []
    with patch("losses.ccp.CCPLoss.on_evaluation", lambda self, clock, metrics: seen.append(metrics["map_at_r"])):
        loss = ways.LateCCP.from_card(num_classes=2, embedding_size=2)
        for score in (0.1, 0.3, 0.2):
            loss.on_evaluation(Clock(0, 0, 1, 0), {"map_at_r": score})
    assert seen == [0.0, 0.1, 0.3]


def test_nearest_centers_are_centres_of_the_class():
    loss = SoftTripleLoss(3, 4, centers_per_class=2)
    centers = loss.centers()
    found = ways.nearest_centers(loss, functional.normalize(centers[:, 1] + 0.01), torch.arange(3))
    assert torch.equal(found, centers[:, 1])


def test_a_difference_has_the_paired_interval():
    found = compared([0.1, 0.2, 0.3], [0.2, 0.3, 0.4 + 1e-9])
    assert found["difference"] == pytest.approx(0.1)
    assert found["interval"] == pytest.approx([0.1, 0.1], abs=1e-8)
    assert compared([0.5, 0.6], [0.5, 0.6])["interval"] == [0.0, 0.0]
