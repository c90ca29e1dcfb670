"""Expands the sweeps of an experiment file: one variant of a method for each combination of values."""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from reproduce.config.method_card import card_file, read_card
from reproduce.config.yaml_files import describe
from reproduce.errors import InputError
from results.values import Record


class Sweep(Record):
    """Rows for all combinations of some values.

    Attributes:
        of: Key of the method card.
        set: Hyperparameters that all rows share, by target.
        grid: Values of the hyperparameters that vary, by target.
        conditions: Values of the settings that vary, by dotted key; files call it `with`.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    of: str
    set: dict[str, JsonValue] = Field(default={})
    grid: dict[str, list[JsonValue]] = Field(default={})
    conditions: dict[str, list[JsonValue]] = Field(default={}, validation_alias="with")


def with_sweeps(path: Path, where: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment's keys and values with variants in place of its sweeps.

    The variant of one combination has a key such as `proxy_anchor__loss.alpha_4`. Values of the `grid` become
    hyperparameters of the variant, values of `with` become conditions of its row.

    Args:
        path: The experiment file, for messages.
        where: Prefix of the panel in messages.
        content: Keys and values of the experiment.

    Raises:
        InputError: A sweep is wrong, or it varies nothing.
    """
    content = dict(content)
    sweeps = content.pop("sweeps", None) or []
    if not isinstance(sweeps, list):
        raise InputError(f"{path}: {where}sweeps must be a list of sweeps, each with `of` and `grid` or `with`")
    variants = list(content.get("variants") or [])
    conditions = dict(content.get("with") or {})
    for number, raw in enumerate(sweeps):
        try:
            sweep = Sweep.model_validate(raw)
        except ValidationError as error:
            raise InputError(f"{path}: {where}sweeps.{number}: {describe(error)}") from error
        if not sweep.grid and not sweep.conditions:
            raise InputError(f"{path}: {where}sweeps.{number}: varies nothing; give values in `grid` or `with`")
        for variant, changes in _rows(sweep):
            variants.append(variant)
            if changes:
                conditions[variant["key"]] = changes
    if sweeps:
        content |= {"variants": variants, "with": conditions}
    return content


def _rows(sweep: Sweep) -> Iterator[tuple[dict[str, Any], dict[str, JsonValue]]]:
    """Yield a variant and its conditions for each combination, the last value varying fastest."""
    title = read_card(card_file(sweep.of)).title
    names = [*sweep.grid, *sweep.conditions]
    for values in product(*sweep.grid.values(), *sweep.conditions.values()):
        chosen = dict(zip(names, values, strict=True))
        variant = {
            "of": sweep.of,
            "key": "__".join([Path(sweep.of).stem, *(f"{name}_{value}" for name, value in chosen.items())]),
            "title": ", ".join([title, *(f"{name} {value}" for name, value in chosen.items())]),
            "set": {**sweep.set, **{name: chosen[name] for name in sweep.grid}},
        }
        yield variant, {name: chosen[name] for name in sweep.conditions}
