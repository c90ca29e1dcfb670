import copy
import math

import pytest
import torch
from torch.nn.functional import one_hot

from losses import Clock, ProxyAnchorLoss, ProxyISALoss
from losses.memory_queue import SummedMemoryQueue
from tests.support.golden_files import case_name, golden


class AuthorsQueue(SummedMemoryQueue):
    """The memory of the authors' code, in which some reference files were made.

    Rows that do not fit behind the write position go to the last slots instead, and writing restarts at slot 0. While
    the last slot holds a label above 0, all slots are visible; otherwise only those before the write position are.
    """

    def push(self, rows, labels):
        start = int(self.position)
        if overflow := start + len(rows) > self.memory_size:
            start = self.memory_size - len(rows)
        self.embeddings[start : start + len(rows)] = rows
        self.labels[start : start + len(rows)] = labels
        self.position.fill_(0 if overflow else start + len(rows))

    def visible(self):
        return (torch.arange(self.memory_size) < self.position) | (self.labels[-1] > 0)

    def class_sums(self, classes):
        stored = one_hot(self.labels.clamp(min=0), len(self.numbers)).double() * self.visible().unsqueeze(1)
        return (stored.t() @ self.embeddings.double())[classes], stored.sum(0)[classes]


def made_from(case):
    settings = case.params
    starts = settings.pop("memory_start_step"), settings.pop("filter_start_step")
    loss = ProxyISALoss(**settings)
    if case.sidecar["queue"] == "authors":
        loss.queue = AuthorsQueue(settings["memory_size"], settings["embedding_size"], settings["num_classes"])
    return loss.to(case.dtype), starts


def check_step(case, loss, step):
    loss.proxies.data.copy_(case.tensor("proxies", step))
    loss.zero_grad()
    embeddings = case.tensor("embeddings", step).requires_grad_()
    labels = case.tensor("labels", step)
    similarity = loss.get_logits(embeddings).detach()
    own = one_hot(labels, loss.num_classes).bool()
    assert loss.switches() == (case.tensor("memory_on", step), case.tensor("filter_on", step))
    status = loss.class_status(similarity.dtype)
    case.agree("omega", loss.pair_weights(similarity, own, status), "state_rtol", step)
    case.agree("filtered", loss.filtered(similarity, labels, status), None, step)

    value = loss(embeddings, labels)
    value.backward()

    case.agree("loss", value, "loss_rtol", step)
    case.agree("grad_embeddings", embeddings.grad, "grad_rel_to_max", step)
    case.agree("grad_proxies", loss.proxies.grad, "grad_rel_to_max", step)
    case.agree("similarity", similarity, "state_rtol", step)


def check_state(case, loss, step):
    case.agree("state_counter", loss.counts, None, step)
    case.agree("state_effective_num", loss.class_status(case.dtype).effective_number, "state_rtol", step)
    case.agree("state_learned_sim", loss.learned_sim, "state_rtol", step)
    case.agree("memory_embeddings", loss.queue.embeddings, "state_rtol", step)
    case.agree("memory_labels", loss.queue.labels.clamp(min=0), None, step)
    case.agree("memory_ptr", loss.queue.position, None, step)
    visible = loss.queue.visible()
    case.agree("memory_len", visible.sum(), None, step)
    in_memory = torch.bincount(loss.queue.labels[visible].clamp(min=0), minlength=loss.num_classes)
    case.agree("memory_class_count", in_memory, None, step)


@pytest.mark.parametrize("case", golden("proxy_isa"), ids=case_name)
def test_agrees_with_the_authors_code(case):
    loss, (memory_start, filter_start) = made_from(case)
    for step in range(case.sidecar["steps"]):
        if step == memory_start:
            loss.start_memory()
        if step == filter_start:
            loss.start_filter()
        check_step(case, loss, step)
        check_state(case, loss, step)


def trained(steps=6, seed=0, **kwargs):
    """A loss with a past: random batches of all classes, with the memory on; then the filter is on too."""
    settings = {"num_classes": 4, "embedding_size": 6, "memory_size": 40, "V": 10, "h": 0.5} | kwargs
    torch.manual_seed(seed)
    loss = ProxyISALoss(**settings).double()
    loss.start_memory()
    for _ in range(steps):
        labels = torch.arange(12) % settings["num_classes"]
        embeddings = loss.proxies.detach()[labels] + 0.5 * torch.randn(12, 6, dtype=torch.float64)
        loss(embeddings, labels)
    loss.start_filter()
    return loss


def test_is_proxy_anchor_while_nothing_is_known():
    torch.manual_seed(0)
    ours, anchor = ProxyISALoss(5, 8, memory_size=16), ProxyAnchorLoss(5, 8)
    anchor.load_state_dict({"proxies": ours.proxies})
    embeddings, labels = torch.randn(6, 8), torch.tensor([0, 1, 2, 3, 4, 0])
    torch.testing.assert_close(ours(embeddings, labels), anchor(embeddings, labels))


def batch(seed=1):
    torch.manual_seed(seed)
    labels = torch.arange(20) % 4
    similarity = 2 * torch.rand(20, 4, dtype=torch.float64) - 1
    return similarity, labels, one_hot(labels, 4).bool()


@pytest.mark.parametrize("penalty", ["sigma", "v", "inverse_effective_number", "none"])
def test_positive_penalties_of_table_3(penalty):
    loss = trained(positive_penalty=penalty)
    similarity, labels, own = batch()
    weights = loss.pair_weights(similarity, own, loss.class_status(torch.float64))
    for i, c in enumerate(labels.tolist()):
        E = 10 * (1 - 0.9 ** int(loss.counts[c]))
        v = 1 / (1 + math.log(1 + E))
        learned = float(loss.learned_sim[c])
        outlier = learned - ((1 + 0.9 * (1 - learned)) * v + 0.1)
        sigma = 1 + (1 + math.exp(-1.5)) * (v - 1) / (1 + math.exp(10 - 1.5 - E))
        expected = {"sigma": sigma, "v": v, "inverse_effective_number": 1 / E, "none": 1.0}[penalty]
        if penalty != "none" and outlier <= similarity[i, c] <= learned:
            expected += 1
        assert weights[i, c].item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("mined", [None, ([0, 1, 1], [4, 5, 5], [0, 1], [2, 3])])
def test_table_3_without_weights_is_proxy_anchor(mined):
    loss = trained(positive_penalty="none", negative_penalty=False)
    anchor = ProxyAnchorLoss(4, 6).double()
    anchor.load_state_dict({"proxies": loss.proxies})
    embeddings, labels = torch.randn(8, 6, dtype=torch.float64), torch.arange(8) % 4
    mined = mined and tuple(torch.tensor(indices) for indices in mined)
    torch.testing.assert_close(loss(embeddings, labels, mined), anchor(embeddings, labels, mined))


def test_a_bound_of_one_sample_is_reached_by_the_first():
    loss = ProxyISALoss(3, 4, memory_size=8, V=1)
    loss.counts.copy_(torch.tensor([0, 1, 5]))
    assert loss.class_status(torch.float64).effective_number.tolist() == [0, 1, 1]


def test_all_filtered_still_measures_from_older_entries():
    loss = trained()
    before = copy.deepcopy(loss)
    labels = torch.arange(4)
    loss(-loss.proxies.detach(), labels)
    assert torch.equal(loss.counts, before.counts)
    assert torch.equal(loss.queue.embeddings, before.queue.embeddings)
    assert torch.equal(loss.queue.position, before.queue.position)
    torch.testing.assert_close(loss.learned_sim, before.learned_sim)


def test_switches_follow_the_passes_over_the_images():
    loss = ProxyISALoss(3, 4, memory_size=8)
    seen = []
    for passes in (0, 1, 2, 3):
        loss.on_step_start(Clock(epoch=9, step=900, steps_per_epoch=100, passes=passes))
        seen.append(loss.switches())
    assert seen == [(False, False), (False, False), (True, False), (True, True)]
