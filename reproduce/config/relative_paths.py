"""Takes the paths of cards, data, metrics, trunks and weights in an experiment file relative to the file's folder."""

from pathlib import Path
from typing import Any

from results.source_names import relative_name
from results.trunk_spec import WEIGHT_FILES


def with_paths(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return keys and values of an experiment file with its paths joined to the file's folder.

    Args:
        content: Keys and values, as read. Values of a wrong type stay as they are; the validation refuses them.
        folder: The folder of the experiment file.
    """
    changed = dict(content)
    if isinstance(methods := content.get("methods"), list):
        changed["methods"] = [_card(method, folder) for method in methods]
    if isinstance(metrics := content.get("metrics"), list):
        changed["metrics"] = [relative_name(name, folder) if isinstance(name, str) else name for name in metrics]
    if isinstance(dataset := content.get("dataset"), dict):
        changed["dataset"] = {**dataset, **_joined(dataset, ("root", "split"), folder)}
    if isinstance(trunk := content.get("trunk"), dict):
        changed["trunk"] = _trunk(trunk, folder)
    for key in ("variants", "sweeps"):
        if isinstance(rows := content.get(key), list):
            changed[key] = [_row(row, folder) for row in rows]
    return changed


def _row(row: Any, folder: Path) -> Any:
    """Join the path of the card in `of` of a variant or sweep."""
    return {**row, "of": _card(row["of"], folder)} if isinstance(row, dict) and "of" in row else row


def _joined(values: dict[str, Any], keys: tuple[str, ...], folder: Path) -> dict[str, str]:
    """Join the paths under some keys to a folder."""
    return {key: str(folder / values[key]) for key in keys if isinstance(values.get(key), str)}


def _card(name: Any, folder: Path) -> Any:
    """Join the path of a card to a folder; the name of a card stays as it is."""
    return str(folder / name) if isinstance(name, str) and name.endswith((".yaml", ".yml")) else name


def _trunk(trunk: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Join the path of a trunk's file, and that of its weights, to a folder."""
    changed = dict(trunk)
    if isinstance(name := trunk.get("name"), str):
        changed["name"] = relative_name(name, folder)
    if isinstance(weights := trunk.get("weights"), str) and Path(weights).suffix in WEIGHT_FILES:
        changed["weights"] = str(folder / weights)
    return changed
