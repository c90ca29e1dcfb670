"""Build a method's modules from its specification: loss, miner and regularizer."""

import inspect
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from pydantic import JsonValue
from pytorch_metric_learning import distances, miners, reducers, regularizers
from pytorch_metric_learning import losses as pml_losses
from torch import Tensor, nn

import losses
from losses.base import at_least_float32, without_autocast
from losses.plugin import Normalization, PluginWrapper, TrainingPlugin
from protocols.images.packing import BrokenImageError
from protocols.training.library_versions import other_number
from protocols.training.monitor import NotFiniteError
from protocols.users_code.sources import SourceError, load_source, place_of, words_of
from results import InputError
from results.spec.component import Component, SourceName
from results.spec.method import Method, all_components
from results.spec.training_spec import FoldSpec

SMALL: dict[str, Any] = {
    "num_classes": 17,
    "embedding_size": 4,
    "training_images": 68,
    "batch_size": 32,
    "class_counts": [4] * 17,
}
"""The sizes with which a component is built on trial. By the odd number of classes, parameters of classes are known."""

_OWN_MINERS = SimpleNamespace(MultiSimilarityMiner=losses.MultiSimilarityMiner)
_NAMESPACES = {"loss": (losses, pml_losses), "miner": (_OWN_MINERS, miners), "regularizer": (regularizers,)}

_CALLS = {
    "loss": ("embeddings, labels, indices_tuple", 3),
    "miner": ("embeddings, labels", 2),
    "regularizer": ("embeddings", 1),
}
"""How a training calls a component of each kind: the arguments, and their number."""


class MethodError(InputError, ValueError):
    """A component of a method cannot be built: unknown class, unknown argument or bad value."""


class RefusedError(MethodError):
    """The method's own code does not take a setting, a batch or the classes. The same training would fail again."""


_NOT_THE_METHODS = (
    *(MemoryError, OSError, EOFError, torch.OutOfMemoryError, torch.AcceleratorError),
    *(NotFiniteError, BrokenImageError, SourceError, MethodError),
)
_MACHINE_WORDS = ("cuda", "cudnn", "cublas", "nccl", "memory", "alloc", "thread", "primitive")
"""Words in the messages of torch's RuntimeError about the machine. One about shapes or types has none of them."""


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Turn an error of the method's own code into a RefusedError that begins with `what`.

    Errors of the machine (memory, disk, GPU) and of the data stay as they are: the same training may succeed later.
    """
    try:
        yield
    except _NOT_THE_METHODS:
        raise
    except Exception as error:  # pytorch-metric-learning raises plain Exception for unsupported combinations
        machine = isinstance(error, RuntimeError) and any(word in str(error).lower() for word in _MACHINE_WORDS)
        if machine and not isinstance(error, NotImplementedError):
            raise
        kind = "" if type(error) in (ValueError, Exception) else f"{type(error).__name__}: "
        raise RefusedError(f"{what}: {kind}{words_of(error, 1)}{place_of(error)}") from error


@dataclass(frozen=True)
class BuiltMethod:
    """The modules of a method, built for one training."""

    loss: nn.Module
    miner: nn.Module | None

    @property
    def plugin(self) -> TrainingPlugin:
        """The loss's hooks, or hooks that do nothing if the loss has none."""
        return self.loss if isinstance(self.loss, TrainingPlugin) else TrainingPlugin()

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss of a batch: raw embeddings (n, d) and classes (n,) as 0..C-1 of all C training classes."""
        embeddings = at_least_float32(embeddings)
        pairs = self.miner(embeddings, labels) if self.miner is not None else None
        with without_autocast(embeddings):
            value: Any = self.loss(embeddings, labels, pairs)
        if isinstance(value, Tensor) and value.numel() == 1 and value.requires_grad >= embeddings.requires_grad:
            return value
        what = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        without = ", without a gradient" if isinstance(value, Tensor) and value.numel() == 1 else ""
        raise RefusedError(
            f"{type(self.loss).__name__}: forward must return one number with a gradient, got {what}{without}; for a "
            "batch without pairs return embeddings.sum() * 0"
        )


def build_method(spec: Method, class_counts: Sequence[int], embedding_size: int, batch_size: int) -> BuiltMethod:
    """Build the modules of a method; raise RefusedError if a class does not take its arguments.

    Args:
        class_counts: Number of training images of each class.
    """
    assert spec.loss is not None, "the untrained trunk has no loss to build"
    refuse_other_numbers(spec)
    sizes = {
        "num_classes": len(class_counts),
        "embedding_size": embedding_size,
        "training_images": sum(class_counts),
        "batch_size": batch_size,
        "class_counts": list(class_counts),
    }
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
    kind: str, component: Component, sizes: dict[str, Any], extra: dict[str, Any] | None = None
) -> nn.Module:
    """Build a component."""
    cls = component_class(kind, component.name)
    arguments: dict[str, Any] = {key: _value(value, sizes) for key, value in component.arguments.items()}
    for key, parameter in accepted_arguments(cls).items():
        if key in sizes and key not in arguments and parameter.default is inspect.Parameter.empty:
            arguments[key] = sizes[key]
    if cls is pml_losses.MultipleLosses:  # Version 3 takes names only; version 2.9 computes the same with both.
        arguments = {key: _named(value) for key, value in arguments.items()}
    with refusals(f"{component.name}({arguments})"):
        # A card can give a wrapper the name of its base loss, and the base loss's settings beside the wrapper's own.
        module: nn.Module = (cls.from_card if issubclass(cls, PluginWrapper) else cls)(**arguments, **(extra or {}))
    return module


def _named(value: Any) -> Any:
    """The elements of a list by their places; other values as they are."""
    return {str(place): one for place, one in enumerate(value)} if isinstance(value, list) else value


def _value(value: JsonValue, sizes: dict[str, Any]) -> Any:
    """Replace a placeholder by its size and a nested {"component": {kind, name, arguments}} by its instance."""
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in sizes:
            raise MethodError(f"there is no placeholder {value}; known are {', '.join(f'${name}' for name in sizes)}")
        return sizes[value[1:]]
    if isinstance(value, list):
        return [_value(one, sizes) for one in value]
    if isinstance(value, dict) and set(value) == {"component"}:
        nested = value["component"]
        assert isinstance(nested, dict)
        return build_component(
            str(nested.get("kind", "loss")),
            Component(name=str(nested["name"]), arguments=nested.get("arguments", {})),  # type: ignore[arg-type]
            sizes,
        )
    if isinstance(value, dict):
        return {key: _value(one, sizes) for key, one in value.items()}
    return value


def component_class(kind: str, name: str) -> type[nn.Module]:
    """Find a component's class by name.

    A plain name is looked up in this suite, then in pytorch-metric-learning. A name with a colon is a class in a file
    or module of a user or of another package.
    """
    if (source := SourceName.parse(name)) is not None:
        try:
            return _class_of_source(kind, source)
        except SourceError as error:
            raise MethodError(str(error)) from error
    for namespace in {**_NAMESPACES, "distance": (distances,), "reducer": (reducers,)}[kind]:
        cls = getattr(namespace, name, None)
        if inspect.isclass(cls) and issubclass(cls, nn.Module):
            return cls
    example = name if name.isidentifier() else "MyClass"
    raise MethodError(
        f"no {kind} class {name!r} in this suite or in pytorch-metric-learning; a class of "
        f"your own is ./my_file.py:{example}, with the path relative to the card, or "
        f"my_package.module:{example}; `reproduce new method my_loss` writes an example"
    )


def _class_of_source(kind: str, name: SourceName) -> type[nn.Module]:
    """Import a class from a user's file or module and check that a training can call it."""
    cls = load_source(name)
    if not (inspect.isclass(cls) and issubclass(cls, nn.Module)):
        raise SourceError(f"{name}: a {kind} must be a class derived from torch.nn.Module")
    arguments, count = _CALLS.get(kind, ("", 0))
    if cls.forward is nn.Module.forward:
        raise SourceError(f"{name}: the class has no forward({arguments or '...'})")
    if count:
        try:
            inspect.signature(cls.forward).bind(*range(count + 1))
        except TypeError as error:
            raise SourceError(f"{name}: forward is called with ({arguments}), but {error}") from error
    return cls


def accepted_arguments(cls: type[nn.Module]) -> dict[str, inspect.Parameter]:
    """List the keyword arguments of a class, with those of its base classes where it accepts `**kwargs`."""
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


def check_component(kind: str, component: Component) -> nn.Module:
    """Check that a component can be built, and return it as built with the sizes of `SMALL`."""
    cls = component_class(kind, component.name)
    accepted = accepted_arguments(cls)
    # The arguments of a wrapper's base loss are checked when the wrapper is built below.
    for key in () if issubclass(cls, PluginWrapper) else component.arguments:
        if key not in accepted:
            raise MethodError(f"{component.name} takes no argument {key!r}; it takes {', '.join(sorted(accepted))}")
    with torch.random.fork_rng([]), warnings.catch_warnings():
        # Some losses warn about these small sizes.
        warnings.simplefilter("ignore")
        return build_component(kind, component, SMALL)


def refuse_other_numbers(method: Method) -> None:
    """Raise RefusedError for a class of the library that may have another number in its version 3 than in 2.9."""
    for kind, component in all_components(method):
        if not component_class(kind, component.name).__module__.startswith("pytorch_metric_learning"):
            continue
        if line := other_number(kind, component.name, component.arguments, method.miner is not None):
            raise RefusedError(line)


def is_taken(method: Method) -> bool:
    """Return whether the installed pytorch-metric-learning has the classes of a method, with their numbers of 2.9."""
    try:
        refuse_other_numbers(method)
    except MethodError:
        return False
    return True


def normalization_of(spec: FoldSpec) -> Normalization:
    """The normalisation of a training's embeddings: the specification's, or else that of the loss's class."""
    if spec.conditions.normalization is not None:
        return spec.conditions.normalization
    if spec.method.loss is None:
        return "unit"
    loss = component_class("loss", spec.method.loss.name)
    return loss.needs.normalization if issubclass(loss, TrainingPlugin) else "unit"
