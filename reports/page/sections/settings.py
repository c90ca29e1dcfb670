"""The settings of an experiment as named values."""

from collections.abc import Mapping
from typing import Any

from reports.page.content import Facts


def protocol_facts(settings: Mapping[str, Any]) -> tuple[Facts, ...]:
    """Group an experiment's settings: first the plain values, then one group for each nested part."""
    plain = {name: value for name, value in settings.items() if not isinstance(value, Mapping)}
    parts = {name: value for name, value in settings.items() if isinstance(value, Mapping)}
    groups = [Facts("Experiment", tuple(_shown(plain).items()))]
    groups += [Facts(_words(name).capitalize(), tuple(_shown(_flat(value)).items())) for name, value in parts.items()]
    return tuple(group for group in groups if group.items)


def _flat(part: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested settings. The name of a value is its path, such as `optimizer lr`."""
    flat: dict[str, Any] = {}
    for name, value in part.items():
        path = f"{prefix}{name}"
        flat.update(_flat(value, path + " ") if isinstance(value, Mapping) else {path: value})
    return flat


def _shown(values: Mapping[str, Any]) -> dict[str, str]:
    return {_words(name): _text(value) for name, value in values.items() if value != []}


def _words(name: str) -> str:
    return name.replace("_", " ")


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_text(item)}" for name, item in value.items())
    return str(value)
