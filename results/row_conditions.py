"""Conditions of single rows: settings of an experiment that are replaced for one method or variant."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import JsonValue

ROW_CONDITIONS = (
    *("trunk", "embedding_size", "images", "training", "embedder_bias", "embedder"),
    *("proxies", "normalization"),
)
"""The settings of an experiment that a row may replace."""

_OF_ALL_ROWS = ("trunk.name", "trunk.weights", "trunk.frozen")


def with_conditions(settings: Mapping[str, Any], changes: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Return an experiment's settings with the conditions of one row.

    Args:
        settings: The settings as nested mappings.
        changes: New values by dotted key, such as `training.batch_size`.

    Raises:
        ValueError: A row cannot replace this setting.
    """
    changed = deepcopy(dict(settings))
    for key, value in changes.items():
        *outer, last = key.split(".")
        if (outer or [last])[0] not in ROW_CONDITIONS:
            raise ValueError(f"a row cannot have its own {key!r}; it can have {', '.join(ROW_CONDITIONS)}")
        if key in _OF_ALL_ROWS or key == "trunk":
            raise ValueError(f"a row cannot have its own {key!r}; make a panel for another network")
        part = changed
        for depth, name in enumerate(outer):
            if not isinstance(part.get(name), dict):
                whole = ".".join(outer[: depth + 1])
                raise ValueError(f"{key!r} cannot be set: {whole!r} has no parts here; give {whole!r} as a whole")
            part = part[name]
        part[last] = value
    return changed
