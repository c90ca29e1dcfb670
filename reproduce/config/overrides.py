"""Options of a command over the settings of an experiment file."""

from collections.abc import Mapping
from typing import Any

from results.spec.data_choice import AUGMENTATION

_WITHOUT_WEIGHTS = frozenset({"small_conv"})
"""Trunks that nobody published weights for; they start at random."""


def with_overrides(settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an experiment with the values of some options.

    Args:
        settings: The settings as nested mappings, complete with their defaults.
        overrides: New values by dotted key; None changes nothing. `image_size` sets the crop and scales the resize
            before it, so that the crop shows the same part of an image. `trunk` is the name of another trunk, with its
            own weights. `frozen` freezes the trunk, and takes back the settings that have no effect then. `compare` is
            that of the primary score. `metrics` come behind those of the settings, `methods` only if the first begins
            with a plus sign.
    """
    changed = dict(settings)
    given = {key: value for key, value in overrides.items() if value is not None}
    if (size := given.pop("image_size", None)) is not None:
        changed["images"] = _resized(changed["images"], size)
    if (trunk := given.pop("trunk", None)) is not None:
        weights = {"weights": "random"} if trunk in _WITHOUT_WEIGHTS else {}
        frozen = {"frozen": True} if changed["trunk"].get("frozen") else {}
        changed["trunk"] = {"name": trunk, **weights, **frozen}
    if given.pop("frozen", None):
        kept = {key: value for key, value in changed["trunk"].items() if not key.startswith("batch_norm")}
        changed["trunk"] = {**kept, "frozen": True}
        changed["images"] = {key: value for key, value in changed["images"].items() if key not in AUGMENTATION}
        changed["training"] = _without_trunk(changed["training"])
    if (compare := given.pop("compare", None)) is not None:
        changed["primary"] = {**(changed.get("primary") or {}), "compare": compare}
    if (metrics := given.pop("metrics", None)) is not None:
        changed["metrics"] = list(dict.fromkeys([*changed.get("metrics", []), *metrics]))
    if (methods := given.get("methods")) and methods[0].startswith("+"):
        given["methods"] = list(dict.fromkeys([*changed["methods"], *(name.removeprefix("+") for name in methods)]))
    for key, value in given.items():
        changed = _replaced(changed, key.split("."), value)
    return changed


def _without_trunk(training: Mapping[str, Any]) -> dict[str, Any]:
    """Take back the settings of a training that have no effect on a frozen trunk."""
    optimizer = {key: value for key, value in training["optimizer"].items() if key != "layer_decay"}
    return {**{key: value for key, value in training.items() if key != "gradient_cache"}, "optimizer": optimizer}


def _replaced(settings: Mapping[str, Any], keys: list[str], value: object) -> dict[str, Any]:
    first, *others = keys
    return {**settings, first: _replaced(settings[first], others, value) if others else value}


def _resized(images: Mapping[str, Any], crop: int) -> dict[str, Any]:
    resizes = {key: images.get(key) for key in ("resize", "evaluation_resize")}
    scaled = {key: round(side * crop / images["crop"]) for key, side in resizes.items() if side is not None}
    return {**images, **scaled, "crop": crop}
