"""Hyperparameters by target: where a value such as `loss.margin` goes in a method."""

from collections.abc import Iterable, Mapping
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
        holder, key = _place(changed, target)
        holder[key] = value
    # A loader of shuffled images drops the rest of a pass; only m-per-class sampling of MLRC carries it over.
    if changed["samples_per_class"] == 0:
        changed["whole_passes"] = True
    try:
        return MethodSpec.model_validate(changed)
    except ValidationError as error:
        first = error.errors()[0]
        part, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise HyperparameterError(f"method {method.name!r}: {part}: {reason}") from error


def values_at(method: MethodSpec, targets: Iterable[str]) -> list[JsonValue]:
    """Return the values of hyperparameters, None where the method leaves it to its class or to other settings.

    Raises:
        HyperparameterError: A target does not exist in the method.
    """
    known = method.model_dump(mode="json")
    places = [_place(known, target) for target in targets]
    return [holder[key] if isinstance(holder, list) else holder.get(key) for holder, key in places]


def _place(method: dict[str, Any], target: str) -> tuple[Any, Any]:
    """The dict or list that has a target, and its key, e.g. of `loss.margin` or `embedding_regularizer.weight`."""
    if target in _SCALARS:
        return method, _SCALARS[target]
    part, _, key = target.partition(".")
    if part == "embedder" and key and isinstance(method[part], dict):
        return method[part], key
    if part not in _COMPONENTS or not key or method[part] is None:
        raise HyperparameterError(f"method {method['name']!r} has no hyperparameter {target!r}")
    if part == "embedding_regularizer" and key == "weight":
        return method[part], key
    # loss.base_loss.alpha is the argument alpha of the component in the argument base_loss, loss.losses.0.alpha that of
    # the first component in the list losses.
    *outer, last = key.split(".")
    arguments = method[part]["arguments"]
    for name in outer:
        arguments = _inside(arguments, name)
    if isinstance(arguments, dict):
        return arguments, last
    if isinstance(arguments, list) and last.isdigit() and int(last) < len(arguments):
        return arguments, int(last)
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
