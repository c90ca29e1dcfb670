"""Hyperparameters by target: where a value such as `loss.margin` goes in a method."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue, ValidationError

from results.spec.training_spec import MethodSpec

_SCALARS = {
    "optimizer.lr": "lr",
    "loss_optimizer.lr": "loss_lr",
    "loss_optimizer.weight_decay": "loss_weight_decay",
    "batch.samples_per_class": "samples_per_class",
    "warmup.passes": "warmup_passes",
    "warmup.steps": "warmup_steps",
}
_COMPONENTS = ("loss", "miner", "embedding_regularizer")


class HyperparameterError(ValueError):
    """A hyperparameter's target does not exist in the method, or it cannot have the value."""


def method_at(method: MethodSpec, hyperparameters: Mapping[str, JsonValue]) -> MethodSpec:
    """Set hyperparameters of a method.

    Args:
        method: The method with other values.
        hyperparameters: Values by target.

    Raises:
        HyperparameterError: A target does not exist in the method, or it cannot have the value.
    """
    changed = method.model_dump(mode="json")
    for target, value in hyperparameters.items():
        _set_value(changed, target, value)
    # A loader of shuffled images drops the rest of a pass; only m-per-class sampling of MLRC carries it over.
    if changed["samples_per_class"] == 0:
        changed["whole_passes"] = True
    try:
        return MethodSpec.model_validate(changed)
    except ValidationError as error:
        first = error.errors()[0]
        part, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise HyperparameterError(f"method {method.name!r}: {part}: {reason}") from error


def _set_value(method: dict[str, Any], target: str, value: JsonValue) -> None:
    """Set the value at a target, e.g. `loss.margin`, `embedding_regularizer.weight`, `loss_optimizer.lr`."""
    if target in _SCALARS:
        method[_SCALARS[target]] = value
        return
    part, _, key = target.partition(".")
    if part not in _COMPONENTS or not key or method[part] is None:
        raise HyperparameterError(f"method {method['name']!r} has no hyperparameter {target!r}")
    if part == "embedding_regularizer" and key == "weight":
        method[part]["weight"] = value
        return
    # loss.base_loss.alpha is the argument alpha of the component in the argument base_loss, loss.losses.0.alpha that of
    # the first component in the list losses.
    *outer, last = key.split(".")
    arguments = method[part]["arguments"]
    for name in outer:
        arguments = _inside(arguments, name)
    if isinstance(arguments, dict):
        arguments[last] = value
    elif isinstance(arguments, list) and last.isdigit() and int(last) < len(arguments):
        arguments[int(last)] = value
    else:
        raise HyperparameterError(f"method {method['name']!r} has no hyperparameter {target!r}")


def _inside(arguments: Any, name: str) -> Any:
    """The arguments of the component, or the list, at a name or at a place of a list; None if there is neither."""
    if isinstance(arguments, list):
        inner = arguments[int(name)] if name.isdigit() and int(name) < len(arguments) else None
    else:
        inner = arguments.get(name) if isinstance(arguments, dict) else None
    if isinstance(inner, dict):
        return inner["component"].setdefault("arguments", {}) if "component" in inner else None
    return inner if isinstance(inner, list) else None
