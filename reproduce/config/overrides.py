"""Puts the options of the command line on top of the settings of an experiment file."""

from collections.abc import Mapping
from typing import Any

from results.feature_settings import AUGMENTATION

_WITHOUT_WEIGHTS = frozenset({"small_conv"})
"""Trunks that nobody published weights for; they start at random."""


def with_overrides(settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an experiment with the values of some options.

    Args:
        settings: The settings as nested mappings, complete with their defaults.
        overrides: New values by dotted key; None changes nothing. `image_size` sets the crop and scales the resize
            before it, so that the crop shows the same part of an image. `trunk` is the name of another trunk, with its
            own weights. `frozen` freezes the trunk, and takes back the settings that have no effect then.
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
    for key, value in given.items():
        changed = _replaced(changed, key.split("."), value)
    return changed


def _replaced(settings: Mapping[str, Any], keys: list[str], value: object) -> dict[str, Any]:
    """Replace one value in nested mappings, without changing them."""
    first, *others = keys
    return {**settings, first: _replaced(settings[first], others, value) if others else value}


def _resized(images: Mapping[str, Any], crop: int) -> dict[str, Any]:
    """Set the crop, and scale the resizes before it."""
    resizes = {key: images.get(key) for key in ("resize", "evaluation_resize")}
    scaled = {key: round(side * crop / images["crop"]) for key, side in resizes.items() if side is not None}
    return {**images, **scaled, "crop": crop}
