"""Steps of losses against PML's losses: same batch, forward and backward, results checked before the clock starts."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import torch
from pytorch_metric_learning import losses as pml_losses
from torch import Tensor, nn
from torch.nn.functional import normalize

from losses import CCPLoss, ProxyAnchorLoss, ProxyGMLLoss, ProxyISALoss, ProxyNCALoss, SoftTripleLoss
from losses.ccp import ball
from tests.benchmarks.bench_rows import BenchRow, Work, seconds_in_turn
from tests.support.process_memory import process_memory

B, D = 32, 128
SOP = 11_318
"""Number of training classes of Stanford Online Products."""


@dataclass(frozen=True)
class StepPair:
    """A step of ours and its peer, the bar, and the number of calls in a measurement of some tens of milliseconds."""

    make: Callable[[], tuple[Work, Work]]
    bar: str
    equal: str
    repeats: int


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


def check_proxy_gml(num_classes: int = 2_000) -> None:
    """Check ProxyGML's loss of the proxies, which is computed in blocks, against the whole matrix."""
    embeddings, labels = batch(num_classes)
    ours = ProxyGMLLoss(num_classes, D, proxies_per_class=1, reg_weight=1.0)
    without = ProxyGMLLoss(num_classes, D, proxies_per_class=1, reg_weight=0.0)
    without.load_state_dict(ours.state_dict())
    unit = normalize(ours.proxies.detach())
    whole = nn.functional.cross_entropy(unit @ unit.T, torch.arange(num_classes))
    torch.testing.assert_close(ours(embeddings, labels) - without(embeddings, labels), whole)


def proxy_gml_step() -> Work:
    """ProxyGML with one proxy for each of 11,318 classes."""
    return step(ProxyGMLLoss(SOP, D, proxies_per_class=1), *batch(SOP))


def proxy_anchor_step() -> Work:
    """PML's Proxy-Anchor with 11,318 classes."""
    return step(pml_losses.ProxyAnchorLoss(SOP, D), *batch(SOP))


def grown_memory(make: Callable[[], Work]) -> float:
    """Return by how many MiB a new process grows when it makes a loss and does two steps."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_growth, make).result()


def _growth(make: Callable[[], Work]) -> float:
    torch.set_num_threads(1)
    before = process_memory("VmRSS")
    work = make()
    work()
    work()
    return process_memory("VmHWM") - before


def proxy_gml_rows(rounds: int) -> list[BenchRow]:
    """Time and memory of ProxyGML at SOP's number of classes; its loss needs C x C x d operations."""
    check_proxy_gml()
    equal = "the loss of 2,000 proxies in blocks equals the one by the whole matrix"
    seconds = seconds_in_turn(proxy_gml_step(), proxy_anchor_step(), min(rounds, 2))
    memory = [[grown_memory(make) for _ in range(min(rounds, 2))] for make in (proxy_gml_step, proxy_anchor_step)]
    return [
        BenchRow("step of ProxyGML, 11,318 classes / PML's Proxy-Anchor", *seconds, "at most 71", equal),
        BenchRow("memory of ProxyGML, 11,318 classes / PML's Proxy-Anchor", *memory, "at most 2", equal, unit="MiB"),
    ]


STEPS = {
    "step of Proxy-Anchor / PML's Proxy-Anchor, 100 classes": StepPair(
        proxy_anchor, "at most 1.1", "equal losses with equal proxies", 50
    ),
    "step of ProxyNCA / PML's ProxyNCA, 100 classes": StepPair(
        proxy_nca, "at most 1.1", "equal losses with equal proxies", 50
    ),
    "step of SoftTriple / PML's SoftTriple without regulariser": StepPair(
        soft_triple, "at most 1.1", "equal losses with equal centres, where ours has no regulariser either", 50
    ),
    "step of Proxy-ISA, memory 55,000 / PML's Proxy-Anchor, 100 classes": StepPair(
        proxy_isa, "at most 2", "the similarities to the memory equal those of a loop over classes", 20
    ),
    "step of CCP, 11,318 classes / PML's Proxy-Anchor": StepPair(
        ccp, "at most 3", "the loss equals the one by lists of all pairs", 1
    ),
}
"""What is measured, by its line in the table."""


def measure(rounds: int) -> list[BenchRow]:
    """Measure all steps, and the memory of ProxyGML.

    Args:
        rounds: Number of rounds.
    """
    torch.set_num_threads(1)
    rows = []
    for name, pair in STEPS.items():
        ours, usual = pair.make()
        rows.append(BenchRow(name, *seconds_in_turn(ours, usual, rounds, pair.repeats), pair.bar, pair.equal))
    return [*rows, *proxy_gml_rows(rounds)]
