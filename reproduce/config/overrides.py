"""Settings of an experiment that the command line replaces, by options and by `--set key=value`."""

from collections.abc import Mapping
from typing import Any

from reproduce.errors import InputError
from results.spec.data_choice import AUGMENTATION

_WITHOUT_WEIGHTS = frozenset({"small_conv"})
"""Trunks that nobody published weights for; they start at random."""


def with_overrides(settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an experiment with other values.

    Args:
        settings: The settings as nested mappings, complete with their defaults.
        overrides: New values by dotted key. A text for a list is split at its commas; behind a
            plus sign, as in `+my_loss.yaml`, it comes behind what the list has. A text for `trunk` is the name of
            another trunk, with its own weights. A trunk that becomes frozen takes back the settings that have no effect
            then.
    """
    changed = dict(settings)
    for key, value in overrides.items():
        changed = _replaced(changed, key, key.split("."), value)
    if overrides.get("trunk.frozen"):
        changed = _without_trunk(changed)
    return changed


def _replaced(settings: Mapping[str, Any], key: str, parts: list[str], value: object) -> dict[str, Any]:
    first, *others = parts
    old = settings.get(first)
    if others:
        if not isinstance(old or {}, Mapping):
            raise InputError(f"--set {key}: {first!r} has no parts; give {first!r} as a whole")
        value = _replaced(old or {}, key, others, value)
    elif isinstance(old, list | tuple) and isinstance(value, str):
        added = [name.strip().removeprefix("+") for name in value.split(",") if name.strip()]
        value = list(dict.fromkeys([*old, *added])) if value.startswith("+") else added
    elif key == "trunk" and isinstance(value, str):
        value = {"name": value, "frozen": (old or {}).get("frozen", False)}
        if value["name"] in _WITHOUT_WEIGHTS:
            value["weights"] = "random"
    return {**settings, first: value}


def _without_trunk(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Take back the settings that have no effect on a frozen trunk."""
    trunk = {key: value for key, value in settings["trunk"].items() if not key.startswith("batch_norm")}
    images = {key: value for key, value in settings["images"].items() if key not in AUGMENTATION}
    training = {key: value for key, value in settings["training"].items() if key != "gradient_cache"}
    training["optimizer"] = {key: value for key, value in training["optimizer"].items() if key != "layer_decay"}
    return {**settings, "trunk": trunk, "images": images, "training": training}
