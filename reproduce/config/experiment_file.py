"""Reads experiment files (reproduce/experiments/*.yaml): the methods, the dataset and the settings of a comparison.

Files are read without torch, so that tables can compare a stored experiment with its file. `execution.open_sessions`
checks that the dataset, the trunk and the metrics exist.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from reproduce.config.method_card import card_file, card_names, read_card
from reproduce.config.overrides import with_overrides
from reproduce.config.strict_yaml import (
    EXPERIMENTS,
    checked_name,
    describe,
    merged,
    named_file,
    names_in,
    read_mapping,
    validated,
)
from reproduce.errors import InputError
from results.names import MOST_CHARACTERS_OF_A_ROW
from results.spec.experiment_spec import CARD_FILES, Experiment
from results.spec.source_names import relative_name
from results.spec.trunk_spec import WEIGHT_FILES
from results.values import Record


def _with_folder(text: str, folder: Path) -> str:
    return str(folder / os.path.expanduser(text))


def _card(text: str, folder: Path) -> str:
    return _with_folder(text, folder) if text.endswith(CARD_FILES) else text


def _weights(text: str, folder: Path) -> str:
    return _with_folder(text, folder) if Path(text).suffix in WEIGHT_FILES else text


def _source(text: str, folder: Path) -> str:
    return relative_name(os.path.expanduser(text), folder)


_PATHS: dict[str, Callable[[str, Path], str]] = {
    "methods.*": _card,
    "variants.*.of": _card,
    "sweeps.*.of": _card,
    "metrics.*": _source,
    "dataset.root": _with_folder,
    "dataset.split": _with_folder,
    "trunk.name": _source,
    "trunk.weights": _weights,
}
"""Places of paths in an experiment file; `*` stands for every entry of a list."""


def with_paths(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the keys and values of an experiment file with its paths joined to the file's folder.

    Values of a wrong type stay as they are; the validation refuses them.
    """
    for place, join in _PATHS.items():
        content = _joined_at(content, place.split("."), join, folder)
    return content


def _joined_at(value: Any, place: list[str], join: Callable[[str, Path], str], folder: Path) -> Any:
    if not place:
        return join(value, folder) if isinstance(value, str) else value
    key, *rest = place
    if key == "*" and isinstance(value, list):
        return [_joined_at(entry, rest, join, folder) for entry in value]
    if isinstance(value, dict) and key in value:
        return {**value, key: _joined_at(value[key], rest, join, folder)}
    return value


class Sweep(Record):
    """Rows for all combinations of some values.

    Attributes:
        of: Key of the method card.
        set: Hyperparameters that all rows share, by target.
        grid: Values of the hyperparameters that vary, by target.
        conditions: Values of the settings that vary, by dotted key; files call it `with`.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    of: str
    set: dict[str, JsonValue] = Field(default={})
    grid: dict[str, list[JsonValue]] = Field(default={})
    conditions: dict[str, list[JsonValue]] = Field(default={}, validation_alias="with")


def with_sweeps(path: Path, where: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment's keys and values with variants in place of its sweeps.

    The variant of one combination has a key such as `proxy_anchor__loss.alpha_4`. Values of the `grid` become
    hyperparameters of the variant, values of `with` become conditions of its row.
    """
    content = dict(content)
    sweeps = content.pop("sweeps", None) or []
    if not isinstance(sweeps, list):
        raise InputError(f"{path}: {where}sweeps must be a list of sweeps, each with `of` and `grid` or `with`")
    variants = list(content.get("variants") or [])
    conditions = dict(content.get("with") or {})
    for number, raw in enumerate(sweeps):
        sweep = validated(Sweep, raw, f"{path}: {where}sweeps.{number}")
        if not sweep.grid and not sweep.conditions:
            raise InputError(f"{path}: {where}sweeps.{number}: varies nothing; give values in `grid` or `with`")
        for variant, changes in _rows(sweep):
            variants.append(variant)
            if changes:
                conditions[variant["key"]] = changes
    if sweeps:
        content |= {"variants": variants, "with": conditions}
    return content


def _rows(sweep: Sweep) -> Iterator[tuple[dict[str, Any], dict[str, JsonValue]]]:
    """Yield a variant and its conditions for each combination, the last value varying fastest."""
    title = read_card(card_file(sweep.of)).title
    names = [*sweep.grid, *sweep.conditions]
    for values in product(*sweep.grid.values(), *sweep.conditions.values()):
        chosen = dict(zip(names, values, strict=True))
        variant = {
            "of": sweep.of,
            "key": "__".join([Path(sweep.of).stem, *(f"{name}_{value}" for name, value in chosen.items())]),
            "title": ", ".join([title, *(f"{name} {value}" for name, value in chosen.items())]),
            "set": {**sweep.set, **{name: chosen[name] for name in sweep.grid}},
        }
        yield variant, {name: chosen[name] for name in sweep.conditions}


PANEL_BY_SIZE = "panel_by_image_size"
"""Key of an experiment file: for each panel, up to which median shorter side of the images in pixels it is run."""


def load_experiments(name: str, overrides: Mapping[str, Any]) -> dict[str, Experiment]:
    """Load the experiments of a file.

    A file with `panels` gives one experiment per panel: the common keys of the file, replaced by the panel's keys.
    Paths of cards and metrics in a file are relative to the file.

    Args:
        name: Name of a file that comes with the suite (former names work too), or a path; `/panel` behind it selects
            one panel.
        overrides: New values by dotted key, such as {"search.trials": 2}, as `with_overrides` takes them.

    Returns:
        The experiments, by their names in the store.

    Raises:
        InputError: There is no such file or panel, or a key or value is wrong.
    """
    path, selected = _file_and_panel(name)
    content = with_paths(read_mapping(path), path.parent)
    content.pop(PANEL_BY_SIZE, None)
    panels = content.pop("panels", None)
    if panels is None:
        if selected is not None:
            raise InputError(f"{path} has no panels; leave out {selected!r}")
        return {checked_name(path.stem): _validated(path, "", content, overrides, _methods_named(content))}
    if not isinstance(panels, dict) or not all(isinstance(panel, dict) for panel in panels.values()):
        raise InputError(f"{path}: panels must be a mapping from each panel's name to its keys and values")
    if selected is not None and selected not in panels:
        raise InputError(f"{path}: there is no panel {selected!r}; the panels are {', '.join(panels)}")
    named = _methods_named(content).union(*(_methods_named(panel) for panel in panels.values()))
    return {
        checked_name(f"{path.stem}/{key}"): _validated(
            path, f"panels.{key}: ", merged(content, with_paths(panel, path.parent)), overrides, named
        )
        for key, panel in panels.items()
        if selected in (None, key)
    }


def panels_by_size(name: str) -> dict[str, int | None]:
    """Return the panels of a file that are run for images up to a size, smaller sizes first.

    The size is the largest median of the images' shorter sides in pixels; None is for images of any size. The result is
    empty if the file does not choose by size, or if `name` selects a panel.
    """
    path, selected = _file_and_panel(name)
    content = read_mapping(path)
    limits = content.get(PANEL_BY_SIZE)
    if selected is not None or limits is None:
        return {}
    if not isinstance(limits, dict) or not set(limits) <= set(content.get("panels") or {}):
        raise InputError(f"{path}: {PANEL_BY_SIZE} must give a size, or null, for panels of the file")
    return {f"{path.stem}/{panel}": limit for panel, limit in limits.items()}


def _file_and_panel(name: str) -> tuple[Path, str | None]:
    if name.endswith(CARD_FILES):
        return named_file(name, [EXPERIMENTS], "experiment"), None
    file, slash, panel = name.rpartition("/")
    if not slash:
        return named_file(panel, [EXPERIMENTS], "experiment"), None
    return named_file(file, [EXPERIMENTS], "experiment"), panel


def _methods_named(content: Any) -> set[str]:
    if not isinstance(content, dict):
        return set()
    methods, variants = content.get("methods"), content.get("variants")
    keys = {Path(name).stem for name in methods if isinstance(name, str)} if isinstance(methods, list) else set()
    rows = variants if isinstance(variants, list) else []
    return keys | {str(row["key"]) for row in rows if isinstance(row, dict) and "key" in row}


def _validated(
    path: Path, where: str, content: dict[str, Any], overrides: Mapping[str, Any], named: set[str]
) -> Experiment:
    content = with_sweeps(path, where, content)
    experiment = validated(Experiment, content, f"{path}: {where}".removesuffix(": "))
    _check_rows(f"{path}: {where}", experiment, named)
    settings = with_overrides(experiment.model_dump(mode="json"), overrides)
    changed = validated(Experiment, settings, f"options on top of {path.name}")
    if (primary := changed.primary) is None:
        return changed
    if primary.compare in changed.changes and primary.compare not in changed.comparable_rows():
        raise InputError(
            f"{path}: {where}primary: compare: {primary.compare} has conditions of its own, so it is compared with no "
            "other row"
        )
    if "embeddings" in (content.get("primary") or {}):
        return changed
    primary = primary.model_copy(update={"embeddings": changed.planned_embeddings})
    return changed.model_copy(update={"primary": primary})


def _check_rows(where: str, experiment: Experiment, named: set[str]) -> None:
    rows = set(experiment.rows)
    # Panels share the settings of their file, so these may name methods of another panel.
    known = rows | named | set(card_names())
    named_rows = {
        "settings": set(experiment.settings) - known,
        "search.ranges": set(experiment.search.ranges) - known,
        "with": set(experiment.changes) - rows,
    }
    for key, unknown in named_rows.items():
        if unknown:
            names = ", ".join(experiment.rows)
            raise InputError(f"{where}{key}: there is no row {min(unknown)!r}; the rows are {names}")
    if too_long := [row for row in experiment.rows if len(row) > MOST_CHARACTERS_OF_A_ROW]:
        raise InputError(
            f"{where}the key {too_long[0]!r} is too long: it has {len(too_long[0])} characters, and stores keep "
            f"{MOST_CHARACTERS_OF_A_ROW}; choose a shorter one"
        )
    for row in experiment.changes:
        try:
            experiment.for_row(row)
        except ValidationError as error:
            raise InputError(f"{where}with.{row}: {describe(error)}") from error
        except ValueError as error:
            raise InputError(f"{where}with.{row}: {error}") from error


def experiment_names() -> list[str]:
    """Return the names of the experiment files that come with the suite."""
    return names_in(EXPERIMENTS)
