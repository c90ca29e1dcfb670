"""Steps of losses against PML's losses: same batch, forward and backward, results checked before the clock starts."""

from collections.abc import Callable

import torch
from pytorch_metric_learning import losses as pml_losses
from torch import Tensor, nn
from torch.nn.functional import normalize

from losses import CCPLoss, ProxyISALoss, SoftTripleLoss
from losses.ccp import ball

Work = Callable[[], object]

B, D = 32, 128


def step(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> Work:
    """Forward and backward of one batch."""

    def run() -> None:
        loss.zero_grad()
        loss(embeddings.detach().requires_grad_(), labels).backward()

    return run


def batch(num_classes: int) -> tuple[Tensor, Tensor]:
    """B embeddings in pairs of a class."""
    torch.manual_seed(0)
    return torch.randn(B, D), torch.randint(num_classes, (B // 2,)).repeat(2)


def proxy_isa() -> tuple[Work, Work]:
    """Proxy-ISA with a full memory of 55,000, and PML's Proxy-Anchor; 100 classes."""
    embeddings, labels = batch(100)
    ours, usual = ProxyISALoss(100, D, memory_start_step=0), pml_losses.ProxyAnchorLoss(100, D)
    ours.queue.push(normalize(torch.randn(55_000, D)), torch.randint(100, (55_000,)))
    ours(embeddings, labels)
    stored, unit = ours.queue, normalize(ours.proxies.detach())
    for c in labels.unique().tolist():
        mean = (stored.embeddings[stored.labels == c] @ unit[c]).mean()
        torch.testing.assert_close(ours.learned_sim[c], ours.h * mean, rtol=1e-4, atol=1e-6)
    return step(ours, embeddings, labels), step(usual, embeddings, labels)


def soft_triple() -> tuple[Work, Work]:
    """SoftTriple with its regulariser, and PML's without one; 100 classes with 10 centres."""
    embeddings, labels = batch(100)
    ours, bare = SoftTripleLoss(100, D), SoftTripleLoss(100, D, tau=0.0)
    usual = pml_losses.SoftTripleLoss(100, D)
    for loss in (ours, bare):
        loss.load_state_dict(usual.state_dict())
    torch.testing.assert_close(bare(embeddings, labels), usual(embeddings, labels))
    return step(ours, embeddings, labels), step(usual, embeddings, labels)


def ccp() -> tuple[Work, Work]:
    """CCP with C2 and 8 proxies for each of 11,318 classes, and PML's Proxy-Anchor; proxies near their class."""
    embeddings, labels = batch(11_318)
    ours, usual = CCPLoss.from_card(num_classes=11_318, embedding_size=D), pml_losses.ProxyAnchorLoss(11_318, D)
    centers = normalize(torch.randn(11_318, D))
    ours.proxies.data.copy_(centers.repeat(8, 1) + 0.02 * torch.randn(8 * 11_318, D))
    embeddings = centers[labels] + 0.02 * embeddings
    samples = ball(embeddings)
    pairs = ours.base_loss(samples, labels, None, ball(ours.proxies), ours.proxy_labels)
    expected = ours.w_proxy * pairs + ours.w_sample * ours.base_loss(samples, labels)
    torch.testing.assert_close(ours(embeddings, labels), expected)
    return step(ours, embeddings, labels), step(usual, embeddings, labels)


STEPS: dict[str, Callable[[], tuple[Work, Work]]] = {
    "step of Proxy-ISA, memory 55,000 / PML's Proxy-Anchor": proxy_isa,
    "step of SoftTriple / PML's SoftTriple without regulariser": soft_triple,
    "step of CCP, 11,318 classes / PML's Proxy-Anchor": ccp,
}
"""What is measured, by its line in the table."""
