"""The network of a training's steps. A GPU replays it as two CUDA graphs, one for the forward, one for the backward.

A step of BN-Inception starts about 1,000 kernels, and starting them takes the host two to three times as long as the
GPU needs for the work. A graph starts all of them at once. Loss, hooks and optimizer stay eager, so any loss works.
"""

import gc
import logging
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from protocols.machine.torch_state import embed_in_chunks
from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.conditions import Precision, TrainingSettings

_LOG = logging.getLogger(__name__)

_TOLERANCE: dict[Precision, float] = {"float32": 1e-3, "ieee": 1e-5, "amp": 1e-3}
"""Largest difference between gradients of the graphs and of the eager network, as a part of their length."""


class StepNetwork:
    """Embeds the batches of a training's steps, with graphs from the second step on where that is possible.

    Eager stay: a CPU, steps that freeze the trunk, chunks of the gradient cache, features, a loss that computes the
    network's gradients several times a step, and networks whose graphs have other gradients, as with dropout.
    """

    def __init__(self, model: EmbeddingModel, settings: TrainingSettings, device: torch.device) -> None:
        self._model, self._settings, self._device = model, settings, device
        self._eager = device.type != "cuda" or settings.gradient_cache is not None or model.on_features
        self._graphs: _Graphs | None = None
        self._backwards: int | None = None

    @property
    def uses_graphs(self) -> bool:
        """Whether the steps are replayed."""
        return self._graphs is not None

    @property
    def records_next(self) -> bool:
        """Whether the next step is recorded, unless it freezes the trunk."""
        return not self._eager and self._graphs is None and self._backwards == 1

    def __call__(self, images: Tensor, *, warmup: bool) -> Tensor:
        """Embed a batch in training mode.

        Args:
            images: The batch (n, ...).
            warmup: Whether the trunk is frozen in this step.

        Returns:
            Raw embeddings (n, d).
        """
        if not (self._eager or warmup) and self._graphs is None and self._backwards is not None:
            self._capture(images)
        if self._eager or warmup:
            return embed_in_chunks(self._model, images, self._settings.gradient_cache)
        self._backwards = 0
        replays = self._graphs is not None and self._graphs.shape == images.shape
        embeddings: Tensor = self._graphs(images) if replays and self._graphs is not None else self._model(images)
        if embeddings.requires_grad:
            embeddings.register_hook(self._count_backward)
        # A copy, since the next step writes to the memory of the graphs, and a loss may keep embeddings.
        return embeddings.clone()

    def _count_backward(self, gradient: Tensor) -> None:
        assert self._backwards is not None
        self._backwards += 1
        if self._backwards > 1 and self.uses_graphs:
            raise RuntimeError("the loss goes back through the network twice in a step, but did not in the first one")

    def _capture(self, images: Tensor) -> None:
        if self._backwards != 1:
            self._eager = True
            return
        reason = None
        # torch's function leaves autograd's nodes on the stream of the capture, and autograd warns of that.
        warnings.filterwarnings("ignore", message="The AccumulateGrad node's stream does not match")
        # Capturing runs the network, which draws numbers and moves running statistics.
        kept = [(buffer, buffer.clone()) for buffer in self._model.buffers()]
        with torch.random.fork_rng([self._device]):
            try:
                graphs = _Graphs(self._model, images)
                difference, most = graphs.difference(images), _TOLERANCE[self._settings.precision]
                if not difference <= most:
                    reason = f"their gradients differ by {difference:.1g} of their length, more than {most:g}"
            except RuntimeError as error:
                reason = str(error).partition("\n")[0]
        with torch.no_grad():
            for buffer, value in kept:
                buffer.copy_(value)
        if reason is None:
            self._graphs = graphs
        else:
            self._eager = True
            _LOG.warning("CUDA graphs do not take this network, so its steps are slower: %s", reason)

    def release(self) -> None:
        """Give back the memory of the graphs."""
        if self._graphs is not None:
            self._graphs = None
            # torch's wrapper refers to itself.
            gc.collect()


class _Step(nn.Module):
    """The model in a module of its own, since torch replaces the `forward` of what it captures."""

    def __init__(self, model: EmbeddingModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        embeddings: Tensor = self.model(images)
        return embeddings


class _Graphs:
    def __init__(self, model: EmbeddingModel, images: Tensor) -> None:
        self._model, self.shape = model, images.shape
        step: Any = _Step(model).train()
        self._replay: Any = torch.cuda.make_graphed_callables(step, (images.clone(),), allow_unused_input=True)

    def __call__(self, images: Tensor) -> Tensor:
        embeddings: Tensor = self._replay(images)
        return embeddings

    def difference(self, images: Tensor) -> float:
        """Compare gradients with the eager network's, for half the squared length of the embeddings."""
        parameters = [parameter for parameter in self._model.parameters() if parameter.requires_grad]
        found = []
        for network in (self._model, self):
            embeddings = network(images)
            gradients = torch.autograd.grad(embeddings, parameters, embeddings.detach(), allow_unused=True)
            found.append(torch.cat([gradient.flatten() for gradient in gradients if gradient is not None]))
        eager, replayed = found
        return float((replayed - eager).norm() / eager.norm())
