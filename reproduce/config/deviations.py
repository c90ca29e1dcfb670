"""In what an experiment was run otherwise than the suite's file of its name says: options and files of one's own.

Read without torch, since a table that is drawn from a store needs none.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from reproduce.config import yaml_files as reading
from results.training_spec import ImageSettings, TrainingSettings, TrunkSpec
from results.values import Record

DEFAULTS: dict[str, Any] = {
    "protocol": "mlrc",
    "embedding_size": 128,
    "images": {},
    "training": {},
    "folds": 4,
    "split": None,
    "embedder_bias": True,
    "proxies": None,
    "settings": {},
}
"""What an experiment file means by leaving a key out, of those that decide what a number is."""

SEARCH_DEFAULTS: dict[str, Any] = {"trials": 50, "bounds": "widened", "ranges": {}}

# These change how fast a number came, not what it is; a trunk's weights are named as they were found.
_FREE = {"images.augmentation", "training.precision", "trunk.weights"}


def departures(name: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Phrases, empty if there is nothing to say.

    name: as in the store, NAME or NAME/PANEL. settings: as the store keeps them. Not told here: a subset of the
    dataset, which who reads the settings sees; how many runs there are and from which seed; and the search's sampler.
    """
    file = written(name)
    if isinstance(file, str):
        return (file,)
    try:
        apart = _apart(_flat(_whole(settings)), _flat(_whole(file)))
    except (ValidationError, KeyError, TypeError):
        return ("settings of another version of the suite",)
    own = [each for each in settings.get("variants", ()) if each not in file.get("variants", ())]
    return (*apart, *(f"variant {each['key']} is not that of the suite's file" for each in own))


def written(name: str) -> dict[str, Any] | str:
    """What the suite's file says, for NAME/PANEL with the panel's own keys on top; a phrase where it says nothing."""
    file, _, panel = name.partition("/")
    path = reading.EXPERIMENTS / f"{file}.yaml"
    if not path.is_file():
        return "the suite has no experiment file of this name"
    content = reading.read_mapping(path)
    panels = content.pop("panels", None) or {}
    if panel not in panels and (panel or panels):
        return f"the suite's file has no panel {panel!r}" if panel else "the suite's file has panels"
    return reading.merged(content, panels.get(panel, {}))


def _whole(content: Mapping[str, Any]) -> dict[str, Any]:
    """What decides a number, with every default filled in."""
    whole = {key: content.get(key, default) for key, default in DEFAULTS.items()}
    whole["dataset"] = content["dataset"]["name"]
    for key, model in (("images", ImageSettings), ("training", TrainingSettings)):
        whole[key] = _complete(model, whole[key])
    whole["trunk"] = _complete(TrunkSpec, content["trunk"])
    search = content.get("search", {})
    whole["search"] = {key: search.get(key, default) for key, default in SEARCH_DEFAULTS.items()}
    if whole["proxies"] is not None:
        whole["proxies"] = {"warmup_passes": 0, **whole["proxies"]}
    return whole


def _complete(model: type[ImageSettings | TrainingSettings | TrunkSpec], content: Mapping[str, Any]) -> dict[str, Any]:
    """All fields, whether or not they are at their default."""
    settled = model.model_validate(content)
    values = {name: getattr(settled, name) for name in model.model_fields}
    return {name: dict(value) if isinstance(value, Record) else value for name, value in values.items()}


def _apart(ours: Mapping[str, Any], written: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(ours.keys() | written.keys()):
        if key not in _FREE and ours.get(key) != written.get(key):
            yield f"{key} {ours.get(key)} where the suite's file has {written.get(key)}"


def _flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in content.items():
        path = f"{prefix}{key}"
        flat.update(_flat(value, f"{path}.") if isinstance(value, Mapping) and value else {path: value})
    return flat
