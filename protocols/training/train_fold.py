"""The training of one fold, as a pure function of specification and images (specification, sections 5 and 6)."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from losses.plugin import Clock, TrainingContext
from losses.schedule import SamplePool
from protocols.datasets.dataset import FoldData
from protocols.images.crops import to_device
from protocols.images.samples import evaluation_batches_of, training_batches_of
from protocols.machine.torch_state import isolated_random_numbers, seed_generators, torch_provenance, use_precision
from protocols.metrics.retrieval import normalized, query_scores
from protocols.training.batches import batches
from protocols.training.build_method import BuiltMethod, build_method, normalization_of, refusals
from protocols.training.closed_forms import set_to_closed_form
from protocols.training.monitor import BestCheckpoint, NotFiniteError, StepMonitor, weights_on_cpu
from protocols.training.optimizer import JoinedParameters, LearningRates, build_optimizer
from protocols.training.step_network import StepNetwork
from protocols.trunks.embedding_model import EmbeddingModel, embed_crops, in_parts, model_of
from results.records.records import CurvePoint, FoldResult, Scores, StoppedBy
from results.spec.conditions import TrainingSettings
from results.spec.training_spec import FoldSpec
from results.values import derive_seed


def clip_gradients(optimizer: torch.optim.Optimizer, settings: TrainingSettings) -> None:
    """Clip the norm of all gradients together, then each value (CCP's code does both, in this order)."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if settings.clip_norm is not None:
        nn.utils.clip_grad_norm_(parameters, settings.clip_norm)
    if settings.clip_value is not None:
        nn.utils.clip_grad_value_(parameters, settings.clip_value)


ModelObserver = Callable[[EmbeddingModel, int], None]
"""Receives the model and the number of iterations done, at every validation. It returns nothing to the training."""


@dataclass(frozen=True)
class TrainedFold:
    """What a training makes.

    Attributes:
        result: The record of the training.
        weights: State dict of the best checkpoint, on the CPU. A training that failed before its first validation has
            its initial weights.
        last_weights: State dict after the last epoch, for a specification with a `checkpoint_epoch` before it. None for
            other trainings and for those that diverged.
        early_weights: State dict of the best checkpoint up to the specification's `early_epoch`; None where it is the
            best one, or where there is no such epoch.
    """

    result: FoldResult
    weights: dict[str, Tensor]
    last_weights: dict[str, Tensor] | None = None
    early_weights: dict[str, Tensor] | None = None


def train_fold(
    spec: FoldSpec,
    data: FoldData,
    *,
    device: str = "cpu",
    observe: ModelObserver | None = None,
) -> TrainedFold:
    """Train a model on one fold and score it on the fold's validation classes.

    All random numbers come from the spec's seed. So the same spec gives bit-equal results on the same machine, device
    and number of threads.

    Args:
        spec: All that decides the outcome.
        data: Images of the spec's training and validation classes, and no others.
        device: `cpu`, `cuda` or `cuda:N`.
        observe: Called with the model and the number of iterations done, at every validation.

    Returns:
        The record of the training, and the weights of the best checkpoint.

    Raises:
        SplitError: The classes of the images differ from those in the spec.
        MethodError: The loss or the miner cannot be built, or the training images have too few principal components.
            Its kind RefusedError: the method's own code does not take the setting or a batch.
        TrunkError: The trunk or its weights are not on this machine.
    """
    started = time.perf_counter()
    data.check(spec)
    # The CPU's bfloat16 kernels leave some gradients unset. Filled memory makes them NaN, which ends the training.
    fill_memory = device == "cpu" and spec.conditions.training.precision == "amp"
    use_precision(spec.conditions.training.precision)
    with isolated_random_numbers(device, fill_memory=fill_memory):
        training = _Training(spec, data, torch.device(device), observe)
        stopped_by, reason = training.run()
        result = training.result(stopped_by, reason, time.perf_counter() - started)
        training.network.release()
    chosen_earlier = spec.checkpoint_epoch is not None and spec.checkpoint_epoch < spec.conditions.training.max_epochs
    last_weights = weights_on_cpu(training.model) if stopped_by == "max_epochs" and chosen_earlier else None
    early = training.early_weights if training.early_weights is not training.checkpoint.weights else None
    return TrainedFold(result, training.checkpoint.weights, last_weights, early)


class _Training:
    def __init__(
        self,
        spec: FoldSpec,
        data: FoldData,
        device: torch.device,
        observe: ModelObserver | None,
    ) -> None:
        self.spec, self.data, self.device = spec, data, device
        self.settings = spec.conditions.training
        self.epoch_is_fixed = spec.checkpoint_epoch is not None  # An earlier training has chosen it.
        self.observe = observe
        self.checkpoint, self.early_weights = BestCheckpoint(), cast(dict[str, Tensor] | None, None)
        self.curve: list[CurvePoint] = []
        self.iterations, self.batches_without_pairs = 0, 0
        self.monitor = StepMonitor(device)
        # The network is made before the loss, so that all methods start from the same network under one seed.
        torch.manual_seed(derive_seed("network", spec.seed))
        self.model = model_of(spec).place(device)
        self.trunk_is_frozen = False
        self.trunk_parameters = [p for p in self.model.trunk.parameters() if p.requires_grad]
        self.network = StepNetwork(self.model, self.settings, device)
        self.checkpoint.save(0, self.model)
        self.targets = data.train_targets
        self.validation_crops = evaluation_batches_of(data.validation, spec.conditions.images, device)
        self.steps_per_epoch = self.settings.steps_per_epoch(len(self.targets))

    def run(self) -> tuple[StoppedBy, str | None]:
        """Train to the end; return what ended the training and, after a failure, the reason."""
        try:
            self._fit_embedder()
            if self.spec.method.loss is None:
                self._validate(0, eligible=True)
                return "untrained", None
            self.method = self._build_method()
            self._build_optimizer()
            self._begin_batches()
            self._bind_plugin()
            self._validate(0, eligible=False)
            for epoch in range(self.settings.max_epochs):
                self._train_epoch(epoch)
                done = epoch + 1
                last = done in (self.settings.max_epochs, self.spec.early_epoch)
                validated = done % self.settings.validate_every == 0 or last
                if validated:
                    self._validate(done, eligible=True)
                if done == self.spec.early_epoch:
                    self.early_weights = self.checkpoint.weights
                waited = done - self.checkpoint.best_epoch
                if validated and not self.epoch_is_fixed and waited > self.settings.patience:
                    return "patience", None
                if done == self.spec.checkpoint_epoch:
                    self.monitor.require_finite()
                    self.checkpoint.save(done, self.model)
        except NotFiniteError as error:
            self.iterations = error.iteration
            return "nan", str(error)
        return "max_epochs", None

    def _fit_embedder(self) -> None:
        """Set the embedder to a closed form: for a method without loss, or as the start of a training."""
        if self.spec.embedder.is_computed:
            set_to_closed_form(self.model.embedder, self.spec, self._training_features(), self.targets)
            self.checkpoint.save(0, self.model)

    def _training_features(self) -> Iterator[Tensor]:
        crops = evaluation_batches_of(self.data.train, self.spec.conditions.images, self.device, keep=False)
        parts = in_parts(self.model, self.model.features, crops)
        for part in parts if self.model.on_features else [torch.cat(list(parts))]:
            self._require_finite(part, "features of the training images")
            yield part

    def _build_method(self) -> BuiltMethod:
        seed_generators(derive_seed("loss", self.spec.seed))
        counts = torch.from_numpy(self.targets).bincount().tolist()
        method = build_method(self.spec.method, counts, self.model.dimensions, self.settings.batch_size)
        # Moved before the optimizer is built: pytorch-metric-learning replaces class weights when their type changes.
        method.loss.to(self.device)
        return method

    def _build_optimizer(self) -> None:
        with self._refusals():
            self.optimizer = build_optimizer(self.settings.optimizer, self.model, self.method, self.spec.method)
            self.learning_rates = LearningRates(self.settings.schedule, self.optimizer)
            self.joined = JoinedParameters(self.optimizer)

    def _begin_batches(self) -> None:
        seed, composition = self.spec.seed, self.spec.method.batch
        self.source = training_batches_of(self.data.train, self.spec.conditions.images, self.device)
        self.crops = torch.Generator().manual_seed(derive_seed("crops", seed))
        m, whole = composition.samples_per_class, composition.whole_passes
        with self._refusals():
            draws = derive_seed("batches", seed)
            self.rows = batches(self.targets, self.settings.batch_size, m, draws, whole_passes=whole)
        # A loss with proxies pulls images to them, and needs no two images of a class.
        self.learns_from_pairs = not any(parameter.requires_grad for parameter in self.method.loss.parameters())

    def _bind_plugin(self) -> None:
        """Give the loss's hooks what they may use, with random numbers of their own."""
        source, pool_seed = self.source, derive_seed("pool", self.spec.seed)
        pool_crops = torch.Generator().manual_seed(pool_seed)
        pool = SamplePool(self.model, lambda rows: source.training_batch(rows, pool_crops), self.targets, pool_seed)
        generator = torch.Generator().manual_seed(derive_seed("plugin", self.spec.seed))
        trainable = [p for p in self.model.parameters() if p.requires_grad]
        classes = int(self.targets.max()) + 1
        with self._refusals():
            self.method.plugin.bind(TrainingContext(trainable, classes, generator, pool))

    def _refusals(self) -> AbstractContextManager[None]:
        loss = self.spec.method.loss
        assert loss is not None
        return refusals(loss.name)

    def _clock(self, epoch: int) -> Clock:
        # Authors count epochs as passes over the data; an epoch of the protocol is a number of iterations.
        images, batch, composition = len(self.targets), self.settings.batch_size, self.spec.method.batch
        shuffled = composition.whole_passes and not composition.samples_per_class
        passes = self.iterations // max(1, images // batch) if shuffled else self.iterations * batch // images
        total = self.steps_per_epoch * self.settings.max_epochs
        return Clock(epoch, self.iterations, self.steps_per_epoch, passes, self._warming_up(passes), total)

    def _warming_up(self, passes: int) -> bool:
        warmup = self.spec.method.warmup
        if warmup.steps is not None:
            return self.iterations < warmup.steps
        if warmup.passes is not None:
            return passes < warmup.passes
        return passes < self.method.plugin.needs.warmup_epochs

    def _train_epoch(self, epoch: int) -> None:
        with self._refusals():
            self.method.plugin.on_epoch_start(self._clock(epoch))
        self.model.train()
        for _ in range(self.steps_per_epoch):
            self._step(epoch)
        self.learning_rates.after("epoch")

    def _step(self, epoch: int) -> None:
        plugin, clock = self.method.plugin, self._clock(epoch)
        if clock.warmup != self.trunk_is_frozen:
            self.trunk_is_frozen = clock.warmup
            for parameter in self.trunk_parameters:
                parameter.requires_grad_(not clock.warmup)
        with self._refusals():
            plugin.on_step_start(clock)
        rows = next(self.rows)
        if self.learns_from_pairs and len(np.unique(self.targets[rows])) == len(rows):
            self.batches_without_pairs += 1
        images, labels = self.source.training_batch(rows, self.crops), to_device(self.targets[rows], self.device)
        self.optimizer.zero_grad(set_to_none=True)
        self.joined.clear_gradients()
        embeddings = self.network(images, warmup=clock.warmup)
        self.monitor.add_embeddings(embeddings, self.iterations)
        with self._refusals(), self.monitor.explained_errors():
            loss = self.method(embeddings, labels)
            loss.backward()
            # A method can skip steps with gradients that are not finite, as the gradient scaler of its authors does.
            if plugin.on_gradients(clock):
                self.monitor.add_loss(loss, self.iterations)
                self.joined.gather_gradients()
                clip_gradients(self.optimizer, self.settings)
                self.optimizer.step()
                if self.network.records_next:
                    # Here, since graphs keep the places of parameters in memory.
                    self.joined.join(self.model.parameters())
        self.learning_rates.after("step")
        self.iterations += 1

    def _validate(self, epoch: int, *, eligible: bool) -> None:
        """Add a point to the curve, and update the checkpoint if this epoch is eligible."""
        mean_loss = self.monitor.mean_loss()
        scores = None if self.epoch_is_fixed else self._validation_scores()
        values = scores.model_dump() if scores else dict.fromkeys(Scores.model_fields)
        self.curve.append(CurvePoint(iteration=self.iterations, loss=mean_loss, **values))
        if scores is not None:
            self.checkpoint.update(epoch, scores.map_at_r, self.model, eligible=eligible)
            if self.spec.method.loss is not None:
                self.method.plugin.on_evaluation(self._clock(epoch), scores.model_dump())
        if self.observe is not None:
            self.observe(self.model, self.iterations)

    def _validation_scores(self) -> Scores:
        embeddings = embed_crops(self.model, self.validation_crops)
        self._require_finite(embeddings, "validation embeddings")
        labels = torch.from_numpy(self.data.validation.labels)
        return query_scores(normalized(embeddings, normalization_of(self.spec)), labels).mean()

    def _require_finite(self, values: Tensor, name: str) -> None:
        if not torch.isfinite(values).all():
            raise NotFiniteError(name, self.iterations)

    def result(self, stopped_by: StoppedBy, reason: str | None, wall_time: float) -> FoldResult:
        """The record of the training."""
        return FoldResult(
            spec=self.spec,
            stopped_by=stopped_by,
            reason=reason,
            iterations=self.iterations,
            best_iteration=self.checkpoint.epoch * self.steps_per_epoch,
            curve=tuple(self.curve),
            wall_time=wall_time,
            provenance=torch_provenance(self.device, graphs=self.network.uses_graphs),
            batches_without_pairs=self.batches_without_pairs,
        )
