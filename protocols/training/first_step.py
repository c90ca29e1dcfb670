"""Tries a method on one batch of random embeddings, before anything is trained, to see whether its code takes it.

Constructors, optimizer, hooks, forward and backward are those of the training; only the network is a small linear layer
on random numbers. Labels, sizes and the composition of the batch are the training's own.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, chdir, contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from losses.plugin import Clock, TrainingContext, TrainingPlugin
from losses.schedule import SamplePool
from protocols.machine.torch_state import isolated_random_numbers
from protocols.training.batches import batches
from protocols.training.build_method import RefusedError, build_method, refusals
from protocols.training.optimizer import build_optimizer, has_usual_arguments, parameter_groups
from protocols.users_code.sources import explained
from results.spec.conditions import OptimizerSettings, TrainingSettings
from results.spec.method import Method, NetworkOptimizer, sources_of
from results.values import derive_seed
from results.wording import counted

LARGEST_BATCH = 256
"""With larger batches a method is only built, since some losses need memory in proportion to the cube of the batch."""

_WIDTH = 8
_DRAWS = 3
"""Batches of random embeddings of which one must have a gradient. A margin can leave a single one without."""

_STEPS, _RATE, _FALL = 50, 0.05, 1e-3
"""Steps and learning rate of a trial training of free embeddings, and by which part of itself the loss must fall. The
losses of the suite's 58 cards with one, at their defaults and in the middle of their ranges, fall by 7e-3 or more."""


class NothingLearnedError(RefusedError):
    """A user's loss gives random embeddings no finite value or no gradient, as it may at an end of a range."""


@contextmanager
def _on_trial() -> Iterator[None]:
    with isolated_random_numbers("cpu"), warnings.catch_warnings(), chdir(os.getcwd()):
        warnings.simplefilter("ignore")  # The training warns too.
        torch.manual_seed(0)
        yield


@_on_trial()
def try_first_step(
    method: Method, training: TrainingSettings, embedding_size: int, targets: NDArray[np.int64]
) -> tuple[str, ...]:
    """Build a method as for a training, and compute its loss and gradients on the training's first batch.

    Args:
        targets: Class of every training image as 0..C-1, (n,).

    Returns:
        What the user should know although the method can be trained.

    Raises:
        RefusedError: The method's own code does not take its settings, the sizes or the batch, or cannot be trained.
        NothingLearnedError: A user's loss gives random embeddings no finite value or no gradient.
        ValueError: There is no batch of this size; see `batches`.
    """
    step = _FirstStep(method, training, embedding_size, targets)
    return tuple(step.run()) if len(step.rows) <= LARGEST_BATCH else ()


@_on_trial()
def loss_falls(method: Method, training: TrainingSettings, embedding_size: int, targets: NDArray[np.int64]) -> bool:
    """Train random embeddings of the training's first batch, each a parameter of its own; tell if the loss falls.

    Args and errors are those of `try_first_step`. The parameters of the loss have the method's learning rate, or that
    of the embeddings.
    """
    return _FirstStep(method, training, embedding_size, targets).falls(embedding_size)


class _FirstStep:
    def __init__(
        self, method: Method, training: TrainingSettings, embedding_size: int, targets: NDArray[np.int64]
    ) -> None:
        assert method.loss is not None
        self.spec, self.training, self.targets, self.name = method, training, targets, method.loss.name
        seed, m = derive_seed("first step"), method.batch.samples_per_class
        self.rows = next(batches(targets, training.batch_size, m, seed, whole_passes=method.batch.whole_passes))
        self.is_foreign = bool(sources_of(method))
        self.network = nn.Linear(_WIDTH, embedding_size)
        counts = np.bincount(targets).tolist()
        self.built = build_method(method, counts, embedding_size, training.batch_size)
        self.parameters = [p for p in self.built.loss.parameters() if p.requires_grad]
        self._check_parameters()
        self._check_optimizer()
        pool = SamplePool(self.network, lambda rows: torch.randn(len(rows), _WIDTH), targets, 0)
        context = TrainingContext(list(self.network.parameters()), len(counts), torch.Generator().manual_seed(0), pool)
        with self._refusals():
            self.built.plugin.bind(context)

    def _refusals(self) -> AbstractContextManager[None]:
        if self.is_foreign:
            start = f"{self.name}: the loss fails on a batch of random embeddings"
            return explained(type(self.built.loss), start, RefusedError)
        return refusals(self.name)

    def _check_optimizer(self) -> None:
        if self.spec.loss_optimizer.lr is not None and not self.parameters:
            raise RefusedError(f"{self.name} has no parameters of its own to train; leave out loss_optimizer.lr")
        # The small network has no layers of a trunk; `check_training` looks at those of the real one.
        settings = self.training.optimizer.model_copy(update={"layer_decay": None})
        with refusals(settings.name):
            groups = parameter_groups(settings, self.network, self.built, self.spec)
            if self.is_foreign or not has_usual_arguments(settings):
                build_optimizer(settings, self.network, self.built, self.spec)
        for group, key in ((group, key) for group in groups for key in ("lr", "weight_decay") if key in group):
            if not group[key] >= 0:  # NaN is not below 0 either.
                raise RefusedError(f"a {key} of {group[key]:g} is no rate; give 0 or more")

    def run(self) -> list[str]:
        """Make the first step of a training; return what the user of a loss of their own should know."""
        steps = self.training.steps_per_epoch(len(self.targets))
        clock = Clock(0, 0, steps, 0, total_steps=steps * self.training.max_epochs)
        labels = torch.from_numpy(self.targets[self.rows])
        has_gradient = self._first_step(labels, clock)
        if not self.is_foreign:
            return []
        if not (has_gradient or any(self._step(labels) for _ in range(_DRAWS - 1))):
            return [self._without_gradient()]
        self._try_different_classes(labels)
        return self._parameters_without_gradient()

    def _first_step(self, labels: Tensor, clock: Clock) -> bool:
        """Make a step with the hooks of the loss, as a training does; tell if the embeddings have a gradient."""
        plugin: Any = self.built.plugin
        with self._refusals():
            self.built.loss.train()
            plugin.on_epoch_start(clock)
            plugin.on_step_start(clock)
        has_gradient = self._step(labels)
        with self._refusals():
            plugin.on_gradients(clock)
        return has_gradient

    def _without_gradient(self) -> str:
        """Say that the network would learn nothing; refuse it, unless the loss has hooks and may begin otherwise."""
        reason = (
            f"{self.name}: the loss gives the embeddings no gradient, so the network would learn nothing; compute "
            "it from `embeddings` without detach(), .data or torch.no_grad()"
        )
        if isinstance(self.built.loss, TrainingPlugin):  # It may begin with another part of its training.
            return reason
        raise NothingLearnedError(reason)

    def _try_different_classes(self, labels: Tensor) -> None:
        """Make a step with a batch in which all classes differ, where images drawn at random can make one."""
        is_random = self.spec.batch.samples_per_class == 0 and self.spec.miner is None
        if is_random and len(np.unique(self.targets)) >= len(labels):
            self._step(torch.arange(len(labels)))

    def _parameters_without_gradient(self) -> list[str]:
        return [
            f"{self.name}: its parameter {name} gets no gradient in a first step; if it is no part of the loss, make "
            "it a buffer"
            for name, parameter in self.built.loss.named_parameters()
            if parameter.requires_grad and parameter.grad is None
        ]

    def falls(self, embedding_size: int) -> bool:
        embeddings, plugin = nn.Parameter(torch.randn(len(self.rows), embedding_size)), self.built.plugin
        settings = OptimizerSettings(name="Adam", lr=_RATE, weight_decay=0.0, arguments={})
        spec = self.spec.model_copy(update={"optimizer": NetworkOptimizer()})
        optimizer = build_optimizer(settings, nn.ParameterList([embeddings]), self.built, spec)
        labels, values = torch.from_numpy(self.targets[self.rows]), []
        self.built.loss.train()
        plugin.on_epoch_start(Clock(0, 0, _STEPS, 0))
        for number in range(_STEPS):
            clock = Clock(0, number, _STEPS, 0, total_steps=_STEPS)
            plugin.on_step_start(clock)
            optimizer.zero_grad()
            value = self.built(embeddings, labels)
            value.sum().backward()
            if plugin.on_gradients(clock):
                optimizer.step()
            values.append(float(value))
        first, last = np.mean(values[:5]), np.mean(values[-5:])
        return bool(first - last > _FALL * abs(first))

    def _step(self, labels: Tensor) -> bool:
        """Compute loss and gradients of random embeddings with these classes; tell if the embeddings have a gradient.

        A miner may find nothing in random embeddings. Then a gradient of zeros counts too.
        """
        embeddings: Tensor = self.network(torch.randn(len(labels), _WIDTH))
        embeddings.retain_grad()
        with self._refusals():
            value = self.built(embeddings, labels)
            value.sum().backward()
        self._check_parameters()
        if self.is_foreign and not value.isfinite().all():
            raise NothingLearnedError(
                f"{self.name}: on {counted(len(labels), 'random embedding')} of "
                f"{counted(len(labels.unique()), 'class')} the loss is {value.item()}; for a batch without pairs "
                "return embeddings.sum() * 0"
            )
        return embeddings.grad is not None and (self.spec.miner is not None or bool(embeddings.grad.any()))

    def _check_parameters(self) -> None:
        """Refuse a loss with tensors that get a gradient and are not known to the optimizer."""
        # A loss with hooks may keep the parameters of the network.
        known = set(map(id, [*self.parameters, *self.network.parameters()]))
        for module in self.built.loss.modules():
            for key, value in (*vars(module).items(), *module.named_parameters(recurse=False)):
                values = value if isinstance(value, list | tuple) else [value]
                leaves = [one for one in values if isinstance(one, Tensor) and one.is_leaf and one.requires_grad]
                if any(id(one) not in known for one in leaves):
                    raise RefusedError(
                        f"{self.name}: its {key} was no parameter when the optimizer was built, so it would never be "
                        "trained; make it an nn.Parameter in __init__ (num_classes and embedding_size are filled in "
                        "there), or several of them an nn.ParameterList"
                    )
