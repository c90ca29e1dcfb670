"""A method's plain description turned into modules: loss, miner, regularizer, optimizer groups."""

import inspect
import warnings
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import torch
from pydantic import JsonValue
from pytorch_metric_learning import distances, miners, reducers, regularizers
from pytorch_metric_learning import losses as pml_losses
from torch import Tensor, nn

import losses
from losses.plugin import TrainingPlugin
from losses.wrapper import PluginWrapper
from results.training_spec import Component, MethodSpec, OptimizerSettings

ENTRY_POINTS = "metric_learning_losses"
"""Entry-point group through which other packages bring losses: name = "module:Class"."""

_SIZES = {
    "$num_classes": "num_classes",
    "$embedding_size": "embedding_size",
    "$training_images": "training_images",
}
_NAMESPACES = {"loss": (losses, pml_losses), "miner": (miners,), "regularizer": (regularizers,)}


class MethodError(ValueError):
    """A method names a class or an argument that there is not."""


@dataclass(frozen=True)
class BuiltMethod:
    """The modules of a method, with the sizes of a training filled in."""

    loss: nn.Module
    miner: nn.Module | None

    @property
    def plugin(self) -> TrainingPlugin:
        """The loss's hooks; hooks that do nothing for a loss without any."""
        return self.loss if isinstance(self.loss, TrainingPlugin) else _Bystander()

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch: embeddings (n, d) raw, labels (n,) from 0 to the number of training classes."""
        pairs = self.miner(embeddings, labels) if self.miner is not None else None
        value: Tensor = self.loss(embeddings, labels, pairs)
        return value


class _Bystander(TrainingPlugin):
    def param_groups(self, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        return []


def build_method(
    spec: MethodSpec, num_classes: int, embedding_size: int, training_images: int | None = None
) -> BuiltMethod:
    """The modules of a method for that many training classes, dimensions and images; raises MethodError."""
    assert spec.loss is not None, "the untrained trunk has no loss to build"
    sizes = {"num_classes": num_classes, "embedding_size": embedding_size}
    if training_images is not None:
        sizes["training_images"] = training_images
    extra: dict[str, Any] = {}
    if spec.embedding_regularizer is not None:
        extra = {
            "embedding_regularizer": build_component("regularizer", spec.embedding_regularizer, sizes),
            "embedding_reg_weight": spec.embedding_regularizer.weight,
        }
    loss = build_component("loss", spec.loss, sizes, extra)
    miner = None if spec.miner is None else build_component("miner", spec.miner, sizes)
    return BuiltMethod(loss, miner)


def build_component(
    kind: str, component: Component, sizes: dict[str, int], extra: dict[str, Any] | None = None
) -> nn.Module:
    """An instance of a component; `num_classes` and `embedding_size` are filled in where the class requires them."""
    cls = component_class(kind, component.name)
    arguments: dict[str, Any] = {key: _value(value, sizes) for key, value in component.arguments.items()}
    for key, parameter in accepted_arguments(cls).items():
        if key in sizes and key not in arguments and parameter.default is inspect.Parameter.empty:
            arguments[key] = sizes[key]
    try:
        # A wrapper's card may name its base loss and give that loss's settings beside its own.
        module: nn.Module = (cls.from_card if issubclass(cls, PluginWrapper) else cls)(**arguments, **(extra or {}))
    except Exception as error:  # pytorch-metric-learning raises bare ones for combinations it does not support
        raise MethodError(f"{component.name}({arguments}): {error}") from error
    return module


def _value(value: JsonValue, sizes: dict[str, int]) -> Any:
    """Sizes for their placeholders, and an instance for a nested {"component": {kind, name, arguments}}."""
    if isinstance(value, str) and value in _SIZES:
        if _SIZES[value] not in sizes:
            raise MethodError(f"{value} is not known here")
        return sizes[_SIZES[value]]
    if isinstance(value, dict) and set(value) == {"component"}:
        nested = value["component"]
        assert isinstance(nested, dict)
        return build_component(
            str(nested.get("kind", "loss")),
            Component(name=str(nested["name"]), arguments=nested.get("arguments", {})),  # type: ignore[arg-type]
            sizes,
        )
    return value


def component_class(kind: str, name: str) -> type[nn.Module]:
    """The class of that name: ours first, then pytorch-metric-learning's, then other packages'."""
    namespaces = {**_NAMESPACES, "distance": (distances,), "reducer": (reducers,)}[kind]
    for namespace in namespaces:
        found = getattr(namespace, name, None)
        if inspect.isclass(found) and issubclass(found, nn.Module):
            return found
    for point in metadata.entry_points(group=ENTRY_POINTS, name=name) if kind == "loss" else ():
        loaded: type[nn.Module] = point.load()
        return loaded
    raise MethodError(f"no {kind} class {name!r} in this suite, in pytorch-metric-learning or in an installed package")


def accepted_arguments(cls: type[nn.Module]) -> dict[str, inspect.Parameter]:
    """Keyword arguments of a class, its bases' included as far as it passes `**kwargs` on."""
    accepted: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base) or base is nn.Module:
            continue
        parameters = inspect.signature(vars(base)["__init__"]).parameters
        for key, parameter in parameters.items():
            if key != "self" and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                accepted.setdefault(key, parameter)
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            break
    return accepted


def check_component(kind: str, component: Component) -> None:
    """Raises MethodError for an unknown class, an argument it does not take, naming those it does, or a bad value."""
    cls = component_class(kind, component.name)
    accepted = accepted_arguments(cls)
    # Which settings the base loss of a wrapper takes, only building it tells.
    for key in () if issubclass(cls, PluginWrapper) else component.arguments:
        if key not in accepted:
            raise MethodError(f"{component.name} takes no argument {key!r}; it takes {', '.join(sorted(accepted))}")
    sizes = {"num_classes": 16, "embedding_size": 4, "training_images": 64}
    with torch.random.fork_rng([]), warnings.catch_warnings():
        # Some losses warn about settings that such small sizes make degenerate.
        warnings.simplefilter("ignore")
        build_component(kind, component, sizes)


def check_method(method: MethodSpec) -> None:
    """Raises MethodError for the first component of a method that cannot be built."""
    components = {"loss": method.loss, "miner": method.miner, "regularizer": method.embedding_regularizer}
    for kind, component in components.items():
        if component is not None:
            check_component(kind, component)


def build_optimizer(
    settings: OptimizerSettings, network: nn.Module, method: BuiltMethod, spec: MethodSpec
) -> torch.optim.Optimizer:
    """One optimizer: the protocol's settings for trunk and embedder, the method's for the loss's own parameters."""
    loss_lr = settings.lr if spec.loss_lr is None else spec.loss_lr
    loss_decay = settings.weight_decay if spec.loss_weight_decay is None else spec.loss_weight_decay
    groups: list[dict[str, Any]] = [{"params": [p for p in network.parameters() if p.requires_grad]}]
    if isinstance(method.loss, TrainingPlugin):
        groups += method.plugin.param_groups(loss_lr, loss_decay)
    elif parameters := [p for p in method.loss.parameters() if p.requires_grad]:
        groups.append({"params": parameters, "lr": loss_lr, "weight_decay": loss_decay})
    cls: Any = getattr(torch.optim, settings.name)
    optimizer: torch.optim.Optimizer = cls(
        groups, lr=settings.lr, weight_decay=settings.weight_decay, **settings.arguments
    )
    return optimizer
