"""In what an experiment was run otherwise than the suite's file of its name says: options and files of one's own."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from reproduce.experiment import Experiment, experiment_names, load_experiments

# These change how sure a number is or how fast it came, not what it is; a trunk's weights are named as they were found.
_FREE = ("title", "methods", "variants", "reproductions", "seed", "metrics", "test_curves", "dataset.root")
_FREE_PARTS = ("dataset.subset", "dataset.skip_broken_images", "trunk.weights", "images.augmentation")
_IGNORED = {*_FREE, *_FREE_PARTS, "training.precision"}


def departures(name: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Phrases, empty if there is nothing to say.

    name: as in the store, NAME or NAME/PANEL. settings: as the store keeps them. A subset of the dataset is not told
    here: who reads the settings sees it.
    """
    file, _, panel = name.partition("/")
    if file not in experiment_names():
        return ("the suite has no experiment file of this name",)
    written = load_experiments(file, {}).get(name)
    if written is None:
        return (f"the suite's file has no panel {panel!r}" if panel else "the suite's file has panels",)
    try:
        run = Experiment.model_validate(dict(settings))
    except ValidationError:
        return ("settings of another version of the suite",)
    return (*_settings_apart(run, written), *_variants_apart(run, written))


def _settings_apart(run: Experiment, written: Experiment) -> Iterator[str]:
    ours, file = (_flat(each.model_dump(mode="json")) for each in (run, written))
    for key in sorted(ours.keys() | file.keys()):
        free = key in _IGNORED or key.partition(".")[0] in _IGNORED
        if not free and ours.get(key) != file.get(key):
            yield f"{key} {ours.get(key)} where the suite's file has {file.get(key)}"


def _variants_apart(run: Experiment, written: Experiment) -> Iterator[str]:
    for variant in run.variants:
        if variant not in written.variants:
            yield f"variant {variant.key} is not that of the suite's file"


def _flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in content.items():
        path = f"{prefix}{key}"
        flat.update(_flat(value, f"{path}.") if isinstance(value, Mapping) and value else {path: value})
    return flat
