import copy
import math

import pytest
import torch
from pytorch_metric_learning.distances import BaseDistance
from torch.nn.functional import one_hot

from losses import Clock, ProxyAnchorLoss, ProxyISALoss
from losses.memory_queue import MemoryQueue
from tests.support.proxy_golden import Golden, names


def made_from(golden):
    return ProxyISALoss(**golden.hyperparameters, queue=golden.sidecar["queue"]).to(golden.dtype)


def check_step(golden, loss, step):
    loss.proxies.data.copy_(golden.tensor("proxies", step))
    loss.zero_grad()
    embeddings = golden.tensor("embeddings", step).requires_grad_()
    labels = golden.tensor("labels", step)
    similarity = loss.get_logits(embeddings).detach()
    own = one_hot(labels, loss.num_classes).bool()
    assert loss.switches() == (golden.tensor("memory_on", step), golden.tensor("filter_on", step))
    golden.check("omega", loss.pair_weights(similarity, own), "state_rtol", step)
    golden.check_exact("filtered", loss.filtered(similarity, labels), step)

    value = loss(embeddings, labels)
    value.backward()

    golden.check("loss", value, "loss_rtol", step)
    golden.check("grad_embeddings", embeddings.grad, "grad_rel_to_max", step)
    golden.check("grad_proxies", loss.proxies.grad, "grad_rel_to_max", step)
    golden.check("similarity", similarity, "state_rtol", step)


def check_state(golden, loss, step):
    golden.check_exact("state_counter", loss.counts, step)
    golden.check("state_effective_num", loss.class_status(golden.dtype).effective_number, "state_rtol", step)
    golden.check("state_learned_sim", loss.learned_sim, "state_rtol", step)
    golden.check("memory_embeddings", loss.queue.embeddings, "state_rtol", step)
    golden.check_exact("memory_labels", loss.queue.labels.clamp(min=0), step)
    golden.check_exact("memory_ptr", loss.queue.position, step)
    visible = loss.queue.visible()
    golden.check_exact("memory_len", visible.sum(), step)
    in_memory = torch.bincount(loss.queue.labels[visible].clamp(min=0), minlength=loss.num_classes)
    golden.check_exact("memory_class_count", in_memory, step)


@pytest.mark.parametrize("name", names("proxy_isa"))
def test_agrees_with_the_authors_code(name):
    golden = Golden.load(name)
    loss = made_from(golden)
    for step in range(golden.sidecar["steps"]):
        check_step(golden, loss, step)
        check_state(golden, loss, step)


def trained(steps=6, seed=0, **kwargs):
    """A loss with a past: random batches of all classes, memory and filter on from the start unless told otherwise."""
    settings = {"num_classes": 4, "embedding_size": 6, "memory_size": 40, "V": 10, "h": 0.5}
    settings |= {"memory_start_step": 0, "filter_start_step": steps} | kwargs
    torch.manual_seed(seed)
    loss = ProxyISALoss(**settings).double()
    for _ in range(steps):
        labels = torch.arange(12) % settings["num_classes"]
        embeddings = loss.proxies.detach()[labels] + 0.5 * torch.randn(12, 6, dtype=torch.float64)
        loss(embeddings, labels)
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
    weights = loss.pair_weights(similarity, own)
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


def test_negatives_can_wait_for_the_memory():
    similarity, _, own = batch()
    early, late = (
        trained(memory_start_step=None, filter_start_step=None, negatives_wait_for_memory=wait)
        for wait in (False, True)
    )
    assert (early.pair_weights(similarity, own) < 1).any()
    assert (late.pair_weights(similarity, own) == 1).all()
    late.start_memory()
    torch.testing.assert_close(late.pair_weights(similarity, own), early.pair_weights(similarity, own))


def test_a_class_never_measured_is_locked_out_unless_the_filter_waits():
    learned_sims = []
    for wait in (False, True):
        loss = trained(steps=20, memory_start_step=20, filter_start_step=20, filter_needs_memory=wait)
        labels = torch.arange(8) % 4
        similarity, _, own = batch()
        assert (loss.pair_weights(similarity, own)[own] == 1).all() == wait
        # Cosine 0.3 to the own proxy: below o = 1 - v - lam of a class seen 60 times.
        unit = torch.nn.functional.normalize(loss.proxies.detach())
        away = torch.randn_like(unit)
        away = torch.nn.functional.normalize(away - (away * unit).sum(1, keepdim=True) * unit)
        loss((0.3 * unit + math.sqrt(1 - 0.09) * away)[labels], labels)
        learned_sims.append(loss.learned_sim)
        assert (loss.learned == wait).all()
    torch.testing.assert_close(learned_sims[0], torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(learned_sims[1], torch.full((4,), 0.5 * 0.3, dtype=torch.float64))


def test_all_filtered_still_measures_from_older_entries():
    loss = trained()
    before = copy.deepcopy(loss)
    labels = torch.arange(4)
    loss(-loss.proxies.detach(), labels)
    assert torch.equal(loss.counts, before.counts)
    assert torch.equal(loss.queue.embeddings, before.queue.embeddings)
    assert torch.equal(loss.queue.position, before.queue.position)
    assert loss.calls == before.calls + 1
    torch.testing.assert_close(loss.learned_sim, before.learned_sim)


@pytest.mark.parametrize("freeze", ["eval", "no_grad"])
def test_state_moves_only_in_training(freeze):
    loss = trained()
    state = copy.deepcopy(loss.state_dict())
    with torch.set_grad_enabled(freeze != "no_grad"):
        (loss.eval() if freeze == "eval" else loss)(torch.randn(8, 6, dtype=torch.float64), torch.arange(8) % 4)
    for key, value in loss.state_dict().items():
        assert torch.equal(value, state[key]), key


def test_switches_follow_the_passes_over_the_images():
    loss = ProxyISALoss(3, 4, memory_size=8)
    seen = []
    for passes in (0, 1, 2, 3):
        loss.on_step_start(Clock(epoch=9, step=900, steps_per_epoch=100, passes=passes))
        seen.append(loss.switches())
    assert seen == [(False, False), (False, False), (True, False), (True, True)]


def test_starts_in_steps_take_the_place_of_passes():
    loss = ProxyISALoss(2, 4, memory_size=8, memory_start_step=1, filter_start_step=2)
    seen = []
    for step in range(3):
        loss.on_step_start(Clock(epoch=9, step=step, steps_per_epoch=100, passes=9))
        seen.append(loss.switches())
        loss(torch.randn(2, 4), torch.tensor([0, 1]))
    assert seen == [(False, False), (True, False), (True, True)]


def test_effective_number_of_one_sample_bound():
    loss = trained(steps=2, V=1)
    torch.testing.assert_close(loss.class_status(torch.float64).effective_number, torch.ones(4, dtype=torch.float64))


def test_two_classes_by_hand():
    loss = ProxyISALoss(2, 2, alpha=4.0, margin=0.1, memory_size=4)
    loss.proxies.data.copy_(torch.eye(2))
    value = loss(torch.tensor([[3.0, 0.0]]), torch.tensor([0]))
    # Only class 1 has a negative, so its term is divided by 1 where Proxy-Anchor divides by 2.
    assert value.item() == pytest.approx(math.log1p(math.exp(-4 * 0.9)) + math.log1p(math.exp(4 * 0.1)), rel=1e-6)


@pytest.mark.parametrize("bad", [{"V": 0.5}, {"tau": 0.0}, {"positive_penalty": "w"}, {"queue": "lifo"}])
def test_refuses_what_has_no_meaning(bad):
    with pytest.raises(ValueError, match=r"V must|positive_penalty|order must"):
        ProxyISALoss(3, 4, **bad)


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


def test_authors_order_overwrites_the_latest_rows_and_hides_behind_class_0():
    queue = MemoryQueue(5, 1, order="authors")
    push = lambda *labels: queue.push(torch.zeros(len(labels), 1), torch.tensor(labels))  # noqa: E731
    push(1, 2, 3)
    push(4, 5, 6)  # 3 + 3 > 5: over the last three slots
    assert queue.labels.tolist() == [1, 2, 4, 5, 6]
    assert queue.position == 0
    assert queue.visible().all()
    push(7)
    assert queue.labels.tolist() == [7, 2, 4, 5, 6]
    push(8, 8, 8, 8)
    push(9, 0)  # 5 + 2 > 5: class 0 in the last slot, nothing is visible until slots are written again
    assert queue.labels.tolist() == [7, 8, 8, 9, 0]
    assert not queue.visible().any()


def test_a_similarity_that_is_not_linear_is_refused():
    class Other(BaseDistance):
        def __init__(self):
            super().__init__(is_inverted=True)

    with pytest.raises(ValueError, match="linear in the stored embeddings"):
        ProxyISALoss(3, 4, memory_size=8, distance=Other())
