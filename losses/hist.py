"""HIST: classes as normal distributions, and a hypergraph network over the batch that they span."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .base import ProxyLoss, at_least_float32, checked_labels, of_samples, require_cosine
from .plugin import Needs


class HISTLoss(ProxyLoss):
    """Distances scaled by learned variances, plus a classification of samples by their relations in the batch.

    With unit embeddings u_i, unit means mu_c and variances `v_c = exp(min(max(V_c, 0), 6))` per dimension::

        D_ic = sum over dimensions of (u_i - mu_c)^2 / v_c
        L_D  = mean_i -log softmax_c(-tau D_ic)[y_i]

    The classes of the batch are the edges of a hypergraph, the samples its nodes, and a network classifies them::

        H_ic = 1 if y_i = c, else exp(-alpha D_ic),    c in the batch
        G    = S^(-1/2) H E^(-1) H' S^(-1/2),          S, E: row and column sums of H, as diagonal matrices
        Z    = G (LeakyReLU(BN(G (X W1' + b1))) W2' + b2)
        L_C  = mean_i cross entropy(Z_i over all classes, y_i)
        L    = L_D + lam L_C

    As in the authors' code the network gets the embeddings X as they are, not the unit vectors. The code takes the
    logarithm of probabilities and drops those that are 0 in float32, that is, its worst samples. Here it is of the
    softmax itself, and every sample counts. Above a probability of e^-103 both are equal.

    A variance never falls below 1. At the start half of V is below 0, where the loss has no gradient for it. Only an
    optimizer that adds weight decay to the gradient (Adam, RMSprop) and divides by its size brings these entries back;
    with AdamW, or without decay, they stay at 1.

    The network normalises over the batch in training mode, with running statistics in evaluation and for a batch of
    one sample. It serves the loss only: embeddings are compared by their cosines.

    Shapes: embeddings (B, d) of any norm, labels (B,) in 0..C-1; sub-losses `distribution_loss` and `network_loss`
    (B,). The means are `proxies` (C, d), V is `log_variances` (C, d).

    Args:
        num_classes: C.
        embedding_size: d.
        tau: sharpness of the distances, without unit; default 32 (the authors: SOP 16).
        alpha: fall of the relations with distance, without unit; default 0.9 (the authors: CUB 1.1, SOP 2).
        lam: weight of the network's loss; default 1.
        hidden: width of the network; default 512.
        network_lr_factor: learning rate of the network divided by that of means and variances; default 0.01 (the
            authors: CUB 0.006, SOP 0.1).
        **kwargs: PML's `reducer` (default `MeanReducer`), `weight_init_func` of the means (default normal with variance
            2/C per entry, as that of V), `weight_regularizer` of the means, `embedding_regularizer` and their weights.

    Raises:
        ValueError: for tau, alpha or hidden that is not positive, and for every batch that `checked_labels` refuses.

    Source: Lim et al., Hypergraph-Induced Semantic Tuplet Loss for Deep Metric Learning, CVPR 2022, and the settings of
    the authors' code (ljin0429/HIST).
    """

    sub_losses = ("distribution_loss", "network_loss")
    needs = Needs(warmup_epochs=1)

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        tau: float = 32.0,
        alpha: float = 0.9,
        lam: float = 1.0,
        *,
        hidden: int = 512,
        network_lr_factor: float = 0.01,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, embedding_size, **kwargs)
        require_cosine(self)
        if min(tau, alpha, hidden) <= 0:
            raise ValueError(f"tau, alpha and hidden must be positive, got {tau}, {alpha} and {hidden}")
        self.tau, self.alpha, self.lam, self.network_lr_factor = tau, alpha, lam, network_lr_factor
        self.log_variances = nn.Parameter(torch.empty(num_classes, embedding_size))
        nn.init.kaiming_normal_(self.log_variances, mode="fan_out")
        self.network = _HypergraphNetwork(embedding_size, hidden, num_classes)

    def param_groups(self, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """Optimizer groups: means and variances at `lr`, the network at `network_lr_factor lr`."""
        return [
            {"params": [self.proxies, self.log_variances], "lr": lr, "weight_decay": weight_decay},
            {
                "params": list(self.network.parameters()),
                "lr": self.network_lr_factor * lr,
                "weight_decay": weight_decay,
            },
        ]

    def compute_loss(self, embeddings: Tensor, labels: Tensor, indices_tuple: Any, *_: Any) -> dict[str, Any]:
        """PML's hook: the sub-losses (B,) for embeddings (B, d) and labels (B,)."""
        labels = checked_labels(embeddings, labels, self.num_classes, self.embedding_size)
        distances = self.class_distances(embeddings)
        distribution = functional.cross_entropy(-self.tau * distances, labels, reduction="none")
        dtype = self.network.first.weight.dtype
        logits = self.network(embeddings.to(dtype), self.hypergraph(distances, labels).to(dtype))
        network = functional.cross_entropy(logits.to(embeddings.dtype), labels, reduction="none")
        return {
            "distribution_loss": of_samples(distribution, labels, indices_tuple),
            "network_loss": of_samples(self.lam * network, labels, indices_tuple),
        }

    def class_distances(self, embeddings: Tensor) -> Tensor:
        """D (B, C) of embeddings (B, d) of any norm."""
        unit, means = (functional.normalize(x, dim=1) for x in (embeddings, self.proxies.to(embeddings.dtype)))
        inverse = (-functional.relu6(self.log_variances.to(embeddings.dtype))).exp()
        # Without the differences, (B, C, d), which are 742 MB for 32 samples of SOP's 11,318 classes and d = 512.
        return unit.square() @ inverse.T - 2 * unit @ (means * inverse).T + (means.square() * inverse).sum(1)

    def hypergraph(self, distances: Tensor, labels: Tensor) -> Tensor:
        """H (B, C) of distances (B, C) and labels (B,); the columns of classes outside the batch are 0."""
        own = labels.unsqueeze(1) == torch.arange(self.num_classes, device=labels.device)
        return torch.where(own, 1.0, (-self.alpha * distances).exp()) * own.any(0)

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """Logits (B, C) of the distributions, `-tau D`."""
        return -self.tau * self.class_distances(at_least_float32(embeddings))


class _HypergraphNetwork(nn.Module):
    """Two layers, each of which mixes the samples of a batch by G."""

    def __init__(self, size: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(size, hidden), nn.BatchNorm1d(hidden), nn.Linear(hidden, classes)

    def forward(self, rows: Tensor, hypergraph: Tensor) -> Tensor:
        """Logits (B, C) from samples (B, d) and H (B, C), of which every row has a 1."""
        nodes, edges = hypergraph.sum(1, keepdim=True), hypergraph.sum(0)
        spread = hypergraph * nodes.rsqrt()
        mix = (spread / torch.where(edges > 0, edges, 1.0)) @ spread.T
        inner = functional.leaky_relu(self._normalised(mix @ self.first(rows)), 0.1)
        logits: Tensor = mix @ self.second(inner)
        return logits

    def _normalised(self, rows: Tensor) -> Tensor:
        norm = self.norm
        if len(rows) > 1 and (torch.is_grad_enabled() or not self.training):
            normalised: Tensor = norm(rows)
            return normalised
        # One sample has no variance, and torch refuses it. In training mode without gradients the running statistics,
        # which a validation must not move, are left out.
        of_batch = len(rows) > 1
        running = (None, None) if of_batch else (norm.running_mean, norm.running_var)
        return functional.batch_norm(rows, *running, norm.weight, norm.bias, training=of_batch, eps=norm.eps)
