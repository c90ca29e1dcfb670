"""What the suite's own experiment file of a name says, and in what a run departed from it; no torch is needed."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from protocols.search import SamplerSettings
from reproduce.reading import EXPERIMENTS, merged, read_mapping
from results.specs import ImageSettings, TrainingSettings, TrunkSpec

# These change how sure a number is or how fast it came, not what it is; a trunk's weights are named as they were found.
_FREE = {"title", "methods", "variants", "reproductions", "seed", "metrics", "test_curves", "dataset"}
_FREE |= {"trunk.weights", "images.augmentation", "training.precision"}

_PLAIN: dict[str, Any] = {
    **{"protocol": "mlrc", "embedding_size": 128, "folds": 4},
    **{"split": None, "embedder_bias": True, "proxies": None, "settings": {}},
}
"""Values of an experiment where its file says nothing."""

_SEARCH: dict[str, Any] = {"trials": 50, "bounds": "widened", "ranges": {}}


def written(name: str) -> dict[str, Any] | None:
    """The file's keys and values, for NAME/PANEL with the panel's on top; None if the suite has none of that name."""
    found = _written(name)
    return None if isinstance(found, str) else found


def departures(name: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Phrases on what was run otherwise than the suite's file says, empty if nothing was.

    name: as in the store, NAME or NAME/PANEL. settings: as the store keeps them. A subset of the dataset is not told
    here: who reads the settings sees it.
    """
    file = _written(name)
    if isinstance(file, str):
        return (file,)
    try:
        ours = _whole(settings)
    except (KeyError, TypeError, ValidationError):
        return ("settings of another version of the suite",)
    return (*_apart(ours, _whole(file)), *_variants_apart(settings, file))


def _written(name: str) -> dict[str, Any] | str:
    """What the file says, or why it says nothing."""
    file, _, panel = name.partition("/")
    path = EXPERIMENTS / f"{file}.yaml"
    if not path.is_file():
        return "the suite has no experiment file of this name"
    content = read_mapping(path)
    panels = content.pop("panels", {})
    if panel not in panels:
        if panel:
            return f"the suite's file has no panel {panel!r}"
        return "the suite's file has panels" if panels else content
    return merged(content, panels[panel])


def _whole(content: Mapping[str, Any]) -> dict[str, Any]:
    """All settings that matter, with the values of those that are not said."""
    search = {**_SEARCH, "sampler": SamplerSettings().model_dump(mode="json"), **content.get("search", {})}
    proxies = content.get("proxies")
    whole: dict[str, Any] = {
        **_PLAIN,
        **content,
        "dataset_name": content["dataset"]["name"],
        "images": ImageSettings.model_validate(content.get("images", {})).model_dump(mode="json"),
        "training": TrainingSettings.model_validate(content.get("training", {})).model_dump(mode="json"),
        "trunk": TrunkSpec.model_validate(content["trunk"]).model_dump(mode="json"),
        "search": search,
        "proxies": {"warmup_passes": 0, **proxies} if proxies else None,
    }
    return whole


def _apart(ours: Mapping[str, Any], file: Mapping[str, Any]) -> Iterator[str]:
    flat_ours, flat_file = dict(_flat(ours)), dict(_flat(file))
    for key in sorted(flat_ours.keys() | flat_file.keys()):
        free = key in _FREE or key.partition(".")[0] in _FREE
        if not free and flat_ours.get(key) != flat_file.get(key):
            yield f"{key} {flat_ours.get(key)} where the suite's file has {flat_file.get(key)}"


def _variants_apart(ours: Mapping[str, Any], file: Mapping[str, Any]) -> Iterator[str]:
    known = {variant["key"]: variant for variant in file.get("variants", ())}
    for variant in ours.get("variants", ()):
        said = known.get(variant["key"])
        if said is None or any(variant.get(key) != value for key, value in said.items()):
            yield f"variant {variant['key']} is not that of the suite's file"


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
