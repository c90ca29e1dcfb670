"""A method with some of its hyperparameters open, and how a setting closes them."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, JsonValue

from protocols.search.space import SearchParameter
from results.training_spec import MethodSpec
from results.values import Record

_SCALARS = {
    "loss_optimizer.lr": "loss_lr",
    "loss_optimizer.weight_decay": "loss_weight_decay",
    "batch.samples_per_class": "samples_per_class",
}
_COMPONENTS = ("loss", "miner", "embedding_regularizer")


class HyperparameterError(ValueError):
    """A hyperparameter's target is not a place in the method."""


class OpenMethod(Record):
    """A method at its defaults and the ranges of what is searched.

    given: hyperparameters, by target, that an experiment sets or takes from a publication; they are in `method`.
    """

    method: MethodSpec
    space: tuple[SearchParameter, ...] = ()
    given: dict[str, JsonValue] = Field(default={})

    def at(self, hyperparameters: Mapping[str, JsonValue]) -> MethodSpec:
        """The method with `hyperparameters` (by target) in place of its defaults; raises HyperparameterError."""
        whole = self.method.model_dump(mode="json")
        for target, value in hyperparameters.items():
            _place(whole, target, value)
        return MethodSpec.model_validate(whole)


def _place(whole: dict[str, Any], target: str, value: JsonValue) -> None:
    """Puts a value where its target says, e.g. `loss.margin`, `embedding_regularizer.weight`, `loss_optimizer.lr`."""
    if target in _SCALARS:
        whole[_SCALARS[target]] = value
        return
    part, _, key = target.partition(".")
    if part not in _COMPONENTS or not key or whole[part] is None:
        raise HyperparameterError(f"hyperparameter {target!r} has no place in method {whole['name']!r}")
    if part == "embedding_regularizer" and key == "weight":
        whole[part]["weight"] = value
        return
    *outer, last = key.split(".")
    arguments = whole[part]["arguments"]
    for name in outer:
        # A wrapped loss: loss.base_loss.alpha is argument alpha of the component given as base_loss.
        nested = arguments.get(name)
        if not isinstance(nested, dict) or "component" not in nested:
            raise HyperparameterError(f"hyperparameter {target!r} has no place in method {whole['name']!r}")
        arguments = nested["component"].setdefault("arguments", {})
    arguments[last] = value
