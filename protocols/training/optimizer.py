"""The optimizer of a training, its parameter groups, and the schedule of its learning rates."""

import inspect
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

import torch
from pydantic import JsonValue
from torch import Tensor, nn
from torch.optim import lr_scheduler

from losses.plugin import TrainingPlugin
from protocols.training.build_method import BuiltMethod, MethodError
from protocols.trunks.trunk_registry import trunk_entry
from results.spec.conditions import OptimizerSettings, RateSchedule, TrainingSettings
from results.spec.method import Method
from results.spec.trunk_spec import TrunkSpec

_NUMBERED = re.compile(r"(?:[^.]*\.)*?(?:\d+(?=\.)|[^.]*_\d+(?=\.[^.]+\.))")
"""A parameter's name up to its first number: `blocks.3` of `blocks.3.mlp.fc1.weight`.

torchvision's transformers name their blocks `encoder_layer_3`. A single layer such as `conv3x3_1` is no block.
"""


def build_optimizer(
    settings: OptimizerSettings, network: nn.Module, method: BuiltMethod, spec: Method
) -> torch.optim.Optimizer:
    """Build the optimizer of a training.

    Args:
        spec: The method's learning rates, and its weight decay for the loss's own parameters; None takes the
            protocol's, and the network's rate for the loss's own parameters.

    Raises:
        MethodError: The optimizer refuses its arguments, or there are no layers for its `layer_decay`.
    """
    lr = settings.lr if spec.optimizer.lr is None else spec.optimizer.lr
    return _optimizer(settings, parameter_groups(settings, network, method, spec), lr)


def parameter_groups(
    settings: OptimizerSettings, network: nn.Module, method: BuiltMethod, spec: Method
) -> list[dict[str, Any]]:
    """Return the groups of `build_optimizer`, as torch takes them."""
    lr = settings.lr if spec.optimizer.lr is None else spec.optimizer.lr
    loss_lr = lr if spec.loss_optimizer.lr is None else spec.loss_optimizer.lr
    own_decay = spec.loss_optimizer.weight_decay
    loss_decay = settings.weight_decay if own_decay is None else own_decay
    groups = _network_groups(settings, network, lr)
    if isinstance(method.loss, TrainingPlugin):
        groups += method.plugin.param_groups(loss_lr, loss_decay)
    elif parameters := [p for p in method.loss.parameters() if p.requires_grad]:
        groups.append({"params": parameters, "lr": loss_lr, "weight_decay": loss_decay})
    return groups


def has_usual_arguments(settings: OptimizerSettings) -> bool:
    """Whether torch is known to take an optimizer's arguments, so that none has to be built to check them.

    The first optimizer of a process imports torch's compiler: 3 seconds and 80 MB.
    """
    return not settings.arguments or (settings.name, settings.arguments) == ("RMSprop", {"momentum": 0.9})


def _optimizer(settings: OptimizerSettings, groups: list[dict[str, Any]], lr: float) -> torch.optim.Optimizer:
    cls: Any = getattr(torch.optim, settings.name)
    arguments: dict[str, Any] = {**_fused(cls, settings.arguments, groups), **settings.arguments}
    try:
        optimizer: torch.optim.Optimizer = cls(groups, lr=lr, weight_decay=settings.weight_decay, **arguments)
    except (TypeError, ValueError) as error:
        raise MethodError(f"training.optimizer: {settings.name} with {settings.arguments}: {error}") from error
    return optimizer


def _network_groups(settings: OptimizerSettings, network: nn.Module, lr: float) -> list[dict[str, Any]]:
    trainable = [(name, parameter) for name, parameter in network.named_parameters() if parameter.requires_grad]
    if settings.layer_decay is None and settings.weight_decay_of == "all":
        return [{"params": [parameter for _, parameter in trainable], "lr": lr}]
    factors = {}
    if settings.layer_decay is not None:
        names = [name for name, _ in network.get_submodule("trunk").named_parameters(prefix="trunk")]
        factors = layer_factors(names, settings.layer_decay)
    groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for name, parameter in trainable:
        decayed = settings.weight_decay_of == "all" or parameter.ndim > 1
        groups.setdefault((factors.get(name, 1.0), decayed), []).append(parameter)
    return [
        {"params": parameters, "lr": lr * factor, "weight_decay": settings.weight_decay if decayed else 0.0}
        for (factor, decayed), parameters in groups.items()
    ]


def layer_factors(names: Iterable[str], decay: float) -> dict[str, float]:
    """Return the factors of the learning rate for the parameters of a trunk, by name.

    For a vision transformer these are the factors of BEiT (Bao et al., ICLR 2022): decay^(l + 1) for the embedding of
    patches and positions before l blocks, decay^l for the first block, decay for the last, and 1 for the norm behind.

    Args:
        names: Names of the parameters in the order of the layers.
        decay: Factor from a layer to the one before it.
    """
    layers = [(key, list(layer)) for key, layer in groupby(names, _numbered_part)]
    if not any(key for key, _ in layers):
        raise MethodError(
            "training.optimizer: layer_decay needs a trunk with numbered layers, such as blocks.3, and this trunk has "
            "none; remove it"
        )
    last = len(layers) if layers[-1][0] else len(layers) - 1
    return {name: decay ** (last - depth) for depth, (_, layer) in enumerate(layers) for name in layer}


def _numbered_part(name: str) -> str:
    return match.group() if (match := _NUMBERED.match(name)) else ""


def _fused(
    cls: type[torch.optim.Optimizer], arguments: Mapping[str, JsonValue], groups: Sequence[Mapping[str, Any]]
) -> dict[str, bool]:
    """The argument for an update in one pass over the memory, where torch has one and `arguments` asks for no other."""
    devices = {parameter.device.type for group in groups for parameter in group["params"]}
    offered = "fused" in inspect.signature(cls).parameters and devices <= {"cpu", "cuda"}
    return {"fused": True} if offered and not {"foreach", "differentiable"} & arguments.keys() else {}


_ELEMENTWISE = ("ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")
"""Optimizers of torch that compute each number of a parameter from that number, its gradient and its state alone."""


class JoinedParameters:
    """Parameters of a network as parts of a few large ones, for which an optimizer starts much less work.

    Without it, RMSprop's step on the 278 parameters of BN-Inception took the hosts of two H100s 5 to 8 ms (mean of 60
    steps each), and a GPU needs 9 ms for a step in amp. The optimizer computes the same numbers.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._joined: list[tuple[nn.Parameter, list[nn.Parameter]]] = []

    def join(self, parameters: Iterable[nn.Parameter]) -> None:
        """Join those parameters that have a gradient, after a step. This moves them to other memory."""
        if type(self._optimizer).__name__ not in _ELEMENTWISE:
            return
        wanted = {parameter for parameter in parameters if parameter.grad is not None}
        for group in self._optimizer.param_groups:
            kinds: dict[tuple[torch.dtype, float], list[nn.Parameter]] = {}
            for parameter in group["params"]:
                if parameter in wanted:
                    steps = float(self._optimizer.state[parameter].get("step", 0))
                    kinds.setdefault((parameter.dtype, steps), []).append(parameter)
            others = [parameter for parameter in group["params"] if parameter not in wanted]
            group["params"] = [*map(self._join, kinds.values()), *others]

    def _join(self, members: list[nn.Parameter]) -> nn.Parameter:
        whole = nn.Parameter(_line(members, members))
        parts = whole.detach().split([parameter.numel() for parameter in members])
        states = [self._optimizer.state.pop(parameter) for parameter in members]
        for key, value in states[0].items():
            each = key != "step" and isinstance(value, Tensor) and value.shape == members[0].shape
            self._optimizer.state[whole][key] = _line([state[key] for state in states], members) if each else value
        for parameter, part in zip(members, parts, strict=True):
            if _channels_last(parameter):
                n, channels, *sides = parameter.shape
                parameter.data = part.view(n, *sides, channels).permute(0, 3, 1, 2)
            else:
                parameter.data = part.view(parameter.shape)
        self._joined.append((whole, members))
        return whole

    def clear_gradients(self) -> None:
        """Forget the gradients of the joined parameters, as the optimizer does with those that it knows."""
        for _, members in self._joined:
            for parameter in members:
                parameter.grad = None

    def gather_gradients(self) -> None:
        """Give the optimizer the gradients of the joined parameters, before they are clipped."""
        for whole, members in self._joined:
            gradients = [parameter.grad for parameter in members]
            if any(gradient is not None for gradient in gradients):
                found = zip(gradients, members, strict=True)
                whole.grad = _line([torch.zeros_like(p) if g is None else g for g, p in found], members)


def _line(tensors: Sequence[Tensor], parameters: Sequence[nn.Parameter]) -> Tensor:
    """The numbers of tensors one after another, in the order in which their parameters lie in memory."""
    return torch.cat(
        [
            (tensor.detach().permute(0, 2, 3, 1) if _channels_last(parameter) else tensor.detach()).reshape(-1)
            for tensor, parameter in zip(tensors, parameters, strict=True)
        ]
    )


def _channels_last(parameter: Tensor) -> bool:
    return parameter.ndim == 4 and parameter.is_contiguous(memory_format=torch.channels_last)


class LearningRates:
    """Moves the learning rates of an optimizer as the schedule of the training says; None leaves them as they are."""

    def __init__(self, schedule: RateSchedule | None, optimizer: torch.optim.Optimizer) -> None:
        self._schedule = schedule
        self._scheduler = None if schedule is None else _scheduler(schedule, optimizer)

    def after(self, what: Literal["epoch", "step"]) -> None:
        """Move the rates after an epoch or an iteration, if the schedule moves then."""
        if self._scheduler is None or self._schedule is None or self._schedule.every != what:
            return
        with warnings.catch_warnings():
            # SequentialLR calls its parts in a deprecated way, and a method may skip the optimizer's step.
            warnings.simplefilter("ignore", UserWarning)
            self._scheduler.step()


def _scheduler(schedule: RateSchedule, optimizer: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
    if schedule.name is None:
        assert schedule.milestones is not None
        assert schedule.factor is not None
        return lr_scheduler.MultiStepLR(optimizer, schedule.milestones, schedule.factor)
    cls: Any = getattr(lr_scheduler, schedule.name, None)
    if not (inspect.isclass(cls) and issubclass(cls, lr_scheduler.LRScheduler)):
        raise MethodError(
            f"training.schedule: torch has no scheduler {schedule.name!r}; for example CosineAnnealingLR, LinearLR, or "
            "SequentialLR of both"
        )
    if "metrics" in inspect.signature(cls.step).parameters:
        raise MethodError(f"training.schedule: {schedule.name} waits for a score, which not every training has")
    arguments: dict[str, Any] = dict(schedule.arguments)
    if schedule.schedulers:
        arguments["schedulers"] = [_scheduler(part, optimizer) for part in schedule.schedulers]
    try:
        built: lr_scheduler.LRScheduler = cls(optimizer=optimizer, **arguments)
    except Exception as error:  # Schedulers raise many kinds, by the argument that is wrong.
        raise MethodError(f"training.schedule: {schedule.name} with {schedule.arguments}: {error}") from error
    return built


def check_training(settings: TrainingSettings, trunk: TrunkSpec) -> None:
    """Check that optimizer and schedule of a training can be built, before anything is trained.

    Raises:
        MethodError: One of them cannot, or the schedule would replace the learning rates.
    """
    if settings.schedule is not None or not has_usual_arguments(settings.optimizer):
        groups = [{"params": [nn.Parameter(torch.zeros(1))], "lr": rate} for rate in (1.0, 10.0)]
        optimizer = _optimizer(settings.optimizer, groups, 1.0)
        LearningRates(settings.schedule, optimizer)
        first, second = (group["lr"] for group in optimizer.param_groups)
        if settings.schedule is not None and abs(second - 10 * first) > 1e-6 * abs(second):
            raise MethodError(
                f"training.schedule: {settings.schedule.name} starts all parameters at a rate of its own, so the rates "
                "of the optimizer, of the search and of proxies would have no effect; use SequentialLR of LinearLR "
                "and another scheduler"
            )
    if settings.optimizer.layer_decay is not None:
        layer_factors(trunk_entry(trunk).outline(), settings.optimizer.layer_decay)
