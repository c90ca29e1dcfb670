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
    *outer, last = key.split(".")
    arguments = method[part]["arguments"]
    for name in outer:
        # A wrapped loss: loss.base_loss.alpha is the argument alpha of the component in the argument base_loss.
        nested = arguments.get(name)
        if not isinstance(nested, dict) or "component" not in nested:
            raise HyperparameterError(f"method {method['name']!r} has no hyperparameter {target!r}")
        arguments = nested["component"].setdefault("arguments", {})
    arguments[last] = value
