"""MemVir against numbers of the authors' code, and what its queue does."""

import pytest
import torch
from torch.nn.functional import normalize

from losses import Clock, MemVirLoss, ProxyAnchorLoss, ProxyNCALoss

# The authors' code (navervision/MemVir) on the inputs below: `MemVir` with 3 classes, 2 steps, a gap of 1, around their
# `NormSoftmax(6, 3, scale=23)` without warm-up, and their `ProxyNCA(6, 3, scale=3)` with 2 epochs of warm-up, in
# float64. Two steps are an epoch; plain gradient descent with the rate 0.5.
AUTHORS = {
    (11.5, 0): [
        0.9034407016245815,
        11.374616363870222,
        9.639746341376162,
        10.847079406596581,
        9.131146794730808,
        10.397830806502364,
        8.164023952780516,
        6.063771643749424,
    ],
    (3.0, 2): [
        0.6740561619858979,
        1.9050108087013418,
        1.367007645096193,
        1.1023078658403866,
        1.3059383071106345,
        1.1329908266355933,
        1.9593181110681264,
        1.950340244220822,
    ],
}


def rows(count, size, step):
    """Return sines of shape (count, size), which are the same on every machine."""
    return torch.sin(step * torch.arange(1, count * size + 1, dtype=torch.float64)).view(count, size)


def batch(step):
    return rows(8, 6, 1.7 + 0.1 * step), (torch.arange(8) + step) % 3


def made(scale=11.5, warmup_passes=0, steps=2, gap=1):
    loss = MemVirLoss(ProxyNCALoss(3, 6, softmax_scale=scale), 6, 8, steps, gap, warmup_passes).double()
    loss.base_loss.proxies.data = rows(3, 6, 0.9)
    return loss


def trained(loss, start, end):
    optimizer, values = torch.optim.SGD(loss.parameters(), lr=0.5), []
    for step in range(start, end):
        loss.on_step_start(Clock(epoch=0, step=step, steps_per_epoch=100, passes=step // 2))
        value = loss(*batch(step))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(value.item())
    return values


@pytest.mark.parametrize(("scale", "warmup_passes"), AUTHORS)
def test_a_training_has_the_values_of_the_authors_code(scale, warmup_passes):
    values = trained(made(scale, warmup_passes), 0, 8)
    assert values == pytest.approx(AUTHORS[scale, warmup_passes], rel=1e-12)


def test_smaller_batches_are_kept_as_they_are():
    loss, base = made(steps=1, gap=0), ProxyNCALoss(3, 6, softmax_scale=11.5).double()
    base.proxies.data = rows(3, 6, 0.9)
    first, labels = batch(0)
    loss(first[:5], labels[:5])
    second, other = batch(1)
    wide = ProxyNCALoss(6, 6, softmax_scale=11.5).double()
    wide.proxies.data = base.proxies.data.repeat(2, 1)
    expected = wide(torch.cat([second, first[:5]]), torch.cat([other, labels[:5] + 3]))
    torch.testing.assert_close(loss(second, other), expected)


def test_proxy_anchor_counts_the_virtual_classes():
    loss = MemVirLoss(ProxyAnchorLoss(3, 6), 6, 8, 1, 0).double()
    past = loss.base_loss.proxies.detach().clone()
    loss(*batch(0))
    loss.base_loss.proxies.data = rows(3, 6, 0.3)
    wide = ProxyAnchorLoss(6, 6).double()
    wide.proxies.data = torch.cat([rows(3, 6, 0.3), past])
    (first, labels), (second, other) = batch(0), batch(1)
    both = normalize(torch.cat([second, first]), dim=1), torch.cat([other, labels + 3])
    torch.testing.assert_close(loss(second, other), wide(*both))
    assert loss.base_loss.num_classes == 3
