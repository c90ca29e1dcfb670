"""Experiments: which methods are compared on what, and how (reproduce/experiments/*.yaml).

Files are parsed here without torch, so that tables can compare a stored experiment with its file; whether there are a
dataset, a trunk and metrics of the names in them is checked by `check_names`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reproduce.config.yaml_files import EXPERIMENTS, describe, merged, named_file, names_in, read_mapping
from reproduce.errors import InputError
from results.experiment_names import current_name
from results.experiment_spec import Experiment


def load_experiments(name: str, overrides: Mapping[str, Any]) -> dict[str, Experiment]:
    """The experiments of a file, by the names they have in the store; raises InputError.

    name: of a file that comes with the suite (an old name is understood too), a path, or either with `/panel` behind
    it. overrides: dotted, such as {"search.trials": 2}. `image_size` overrides the crop and scales the resize before
    it, so that a crop shows the same part of an image. A file with `panels` makes one experiment of each: what all
    share, with the panel's own keys on top.
    """
    path, wanted = _file_and_panel(name)
    content = read_mapping(path)
    panels = content.pop("panels", None)
    if panels is None:
        if wanted is not None:
            raise InputError(f"{path} has no panels; leave out {wanted!r}")
        return {path.stem: _validated(path, "", content, overrides)}
    if not isinstance(panels, dict) or not all(isinstance(panel, dict) for panel in panels.values()):
        raise InputError(f"{path}: panels must be keys and values, a name and what is its own for each panel")
    if wanted is not None and wanted not in panels:
        raise InputError(f"{path}: no panel {wanted!r}; it has {', '.join(panels)}")
    return {
        f"{path.stem}/{key}": _validated(path, f"panels.{key}: ", merged(content, panel), overrides)
        for key, panel in panels.items()
        if wanted in (None, key)
    }


def _file_and_panel(name: str) -> tuple[Path, str | None]:
    if name.endswith((".yaml", ".yml")):
        return named_file(name, [EXPERIMENTS], "experiment"), None
    file, slash, panel = current_name(name).rpartition("/")
    if not slash:
        return named_file(panel, [EXPERIMENTS], "experiment"), None
    return named_file(file, [EXPERIMENTS], "experiment"), panel


def _validated(path: Path, where: str, content: dict[str, Any], overrides: Mapping[str, Any]) -> Experiment:
    try:
        experiment = Experiment.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{path}: {where}{describe(error)}") from error
    whole = experiment.model_dump(mode="json")
    size = overrides.get("image_size")
    if size is not None:
        images = whole["images"]
        for key in ("resize", "evaluation_resize"):
            if images.get(key) is not None:
                images[key] = round(images[key] * size / images["crop"])
        images["crop"] = size
    for key, value in overrides.items():
        if value is not None and key != "image_size":
            *outer, last = key.split(".")
            settings = whole
            for part in outer:
                settings = settings[part]
            settings[last] = value
    try:
        return Experiment.model_validate(whole)
    except ValidationError as error:
        raise InputError(f"options on top of {path.name}: {describe(error)}") from error


def experiment_names() -> list[str]:
    """The experiment files that come with the suite."""
    return names_in(EXPERIMENTS)
