"""Steps of losses against PML's losses: same batch, forward and backward, results checked before the clock starts."""

import torch
from pytorch_metric_learning import losses as pml_losses
from torch import Tensor, nn
from torch.nn.functional import normalize

from losses import CCPLoss, ProxyAnchorLoss, ProxyGMLLoss, ProxyISALoss, ProxyNCALoss, SoftTripleLoss
from losses.ccp import ball
from tests.benchmarks.bench_record import BenchRow, Work, seconds_in_turn

B, D = 32, 128
SOP = 11_318
"""Number of training classes of Stanford Online Products."""


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


def proxy_anchor() -> tuple[Work, Work]:
    """Proxy-Anchor and PML's; 100 classes."""
    return _same_value(ProxyAnchorLoss(100, D), pml_losses.ProxyAnchorLoss(100, D))


def proxy_nca() -> tuple[Work, Work]:
    """ProxyNCA and PML's, with PML's scale; 100 classes."""
    return _same_value(ProxyNCALoss(100, D, softmax_scale=1), pml_losses.ProxyNCALoss(100, D))


def _same_value(ours: nn.Module, usual: nn.Module) -> tuple[Work, Work]:
    embeddings, labels = batch(100)
    ours.load_state_dict(usual.state_dict())
    torch.testing.assert_close(ours(embeddings, labels), usual(embeddings, labels))
    return step(ours, embeddings, labels), step(usual, embeddings, labels)


def proxy_isa() -> tuple[Work, Work]:
    """Proxy-ISA with a full memory of 55,000 and its filter on, and PML's Proxy-Anchor; 100 classes."""
    embeddings, labels = batch(100)
    ours, usual = ProxyISALoss(100, D), pml_losses.ProxyAnchorLoss(100, D)
    ours.start_memory()
    ours.start_filter()
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
    embeddings, labels = batch(SOP)
    ours, usual = CCPLoss.from_card(num_classes=SOP, embedding_size=D), pml_losses.ProxyAnchorLoss(SOP, D)
    centers = normalize(torch.randn(SOP, D))
    ours.proxies.data.copy_(centers.repeat(8, 1) + 0.02 * torch.randn(8 * SOP, D))
    embeddings = centers[labels] + 0.02 * embeddings
    samples = ball(embeddings)
    pairs = ours.base_loss(samples, labels, None, ball(ours.proxies), ours.proxy_labels)
    expected = pairs + ours.w_sample * ours.base_loss(samples, labels)
    torch.testing.assert_close(ours(embeddings, labels), expected)
    return step(ours, embeddings, labels), step(usual, embeddings, labels)


def proxy_gml() -> tuple[Work, Work]:
    """ProxyGML with one proxy for each of 11,318 classes, and PML's Proxy-Anchor.

    ProxyGML needs C x C x d operations. Its loss of the proxies is checked against the whole matrix of 2,000 classes.
    """
    embeddings, labels = batch(2_000)
    ours = ProxyGMLLoss(2_000, D, proxies_per_class=1, reg_weight=1.0)
    without = ProxyGMLLoss(2_000, D, proxies_per_class=1, reg_weight=0.0)
    without.load_state_dict(ours.state_dict())
    unit = normalize(ours.proxies.detach())
    whole = nn.functional.cross_entropy(unit @ unit.T, torch.arange(2_000))
    torch.testing.assert_close(ours(embeddings, labels) - without(embeddings, labels), whole)
    many = batch(SOP)
    return step(ProxyGMLLoss(SOP, D, proxies_per_class=1), *many), step(pml_losses.ProxyAnchorLoss(SOP, D), *many)


STEPS = {
    "step of Proxy-Anchor / PML's Proxy-Anchor, 100 classes": (proxy_anchor, 50),
    "step of ProxyNCA / PML's ProxyNCA, 100 classes": (proxy_nca, 50),
    "step of SoftTriple / PML's SoftTriple without regulariser": (soft_triple, 50),
    "step of Proxy-ISA, memory 55,000 / PML's Proxy-Anchor, 100 classes": (proxy_isa, 20),
    "step of CCP, 11,318 classes / PML's Proxy-Anchor": (ccp, 1),
    "step of ProxyGML, 11,318 classes / PML's Proxy-Anchor": (proxy_gml, 1),
}
"""What is measured, by its line in the table, and the number of calls in a measurement."""


def measure(rounds: int) -> list[BenchRow]:
    """Measure all steps."""
    rows = []
    for name, (make, repeats) in STEPS.items():
        ours, peer = seconds_in_turn(*make(), rounds, repeats)
        rows.append(BenchRow(name=name, ours=tuple(ours), peer=tuple(peer)))
    return rows
