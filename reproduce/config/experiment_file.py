"""Reads experiment files (reproduce/experiments/*.yaml): the methods, the dataset and the settings of a comparison.

Files are read without torch, so that tables can compare a stored experiment with its file. `check_names` checks that
the dataset, the trunk and the metrics exist.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reproduce.config.method_card import card_names
from reproduce.config.overrides import with_overrides
from reproduce.config.relative_paths import with_paths
from reproduce.config.sweeps import with_sweeps
from reproduce.config.yaml_files import EXPERIMENTS, describe, merged, named_file, names_in, not_finite, read_mapping
from reproduce.errors import InputError
from results.experiment_names import current_name
from results.experiment_spec import Experiment

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
        return {path.stem: _validated(path, "", content, overrides, _methods_named(content))}
    if not isinstance(panels, dict) or not all(isinstance(panel, dict) for panel in panels.values()):
        raise InputError(f"{path}: panels must be a mapping from each panel's name to its keys and values")
    if selected is not None and selected not in panels:
        raise InputError(f"{path}: there is no panel {selected!r}; the panels are {', '.join(panels)}")
    named = _methods_named(content).union(*(_methods_named(panel) for panel in panels.values()))
    return {
        f"{path.stem}/{key}": _validated(
            path, f"panels.{key}: ", merged(content, with_paths(panel, path.parent)), overrides, named
        )
        for key, panel in panels.items()
        if selected in (None, key)
    }


def panels_by_size(name: str) -> dict[str, int | None]:
    """Return the panels of a file that are run for images up to a size, smaller sizes first.

    Args:
        name: Name or path of the file. With `/panel` behind it nothing has to be chosen.

    Returns:
        For each panel, by its name in the store, the largest median of the images' shorter sides in pixels; None is for
        images of any size. Empty if the file does not choose by size.

    Raises:
        InputError: The file cannot be read, or the key is wrong.
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
    if name.endswith((".yaml", ".yml")):
        return named_file(name, [EXPERIMENTS], "experiment"), None
    file, slash, panel = current_name(name).rpartition("/")
    if not slash:
        return named_file(panel, [EXPERIMENTS], "experiment"), None
    return named_file(file, [EXPERIMENTS], "experiment"), panel


def _methods_named(content: Any) -> set[str]:
    """Return the keys of the methods and variants that the keys and values of a file or a panel name."""
    if not isinstance(content, dict):
        return set()
    methods, variants = content.get("methods"), content.get("variants")
    keys = {Path(name).stem for name in methods if isinstance(name, str)} if isinstance(methods, list) else set()
    rows = variants if isinstance(variants, list) else []
    return keys | {str(row["key"]) for row in rows if isinstance(row, dict) and "key" in row}


def _validated(
    path: Path, where: str, content: dict[str, Any], overrides: Mapping[str, Any], named: set[str]
) -> Experiment:
    """Return the experiment with the overrides.

    Args:
        path: The file, for messages.
        where: The panel's prefix in messages.
        content: Keys and values of the experiment.
        overrides: New values by dotted key.
        named: Keys of all methods that the file names, those of other panels included.
    """
    content = with_sweeps(path, where, content)
    try:
        experiment = Experiment.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{path}: {where}{describe(error)}") from error
    if (problem := not_finite(experiment)) is not None:
        raise InputError(f"{path}: {where}{problem}")
    _check_rows(path, where, experiment, named)
    try:
        return Experiment.model_validate(with_overrides(experiment.model_dump(mode="json"), overrides))
    except ValidationError as error:
        raise InputError(f"options on top of {path.name}: {describe(error)}") from error


def _check_rows(path: Path, where: str, experiment: Experiment, named: set[str]) -> None:
    """Refuse settings, ranges and conditions of rows that do not exist, and conditions that a row cannot have."""
    # A method can be the path of a card.
    rows = {*experiment.rows, *(Path(method).stem for method in experiment.methods)}
    # Panels share the settings of their file, so these may name methods of another panel.
    known = rows | named | set(card_names())
    for key, by_row in (("settings", experiment.settings), ("search.ranges", experiment.search.ranges)):
        if unknown := [row for row in by_row if row not in known]:
            names = ", ".join(experiment.rows)
            raise InputError(f"{path}: {where}{key}: there is no row {unknown[0]!r}; the rows are {names}")
    for row in experiment.conditions:
        try:
            if row not in rows:
                raise ValueError(f"there is no row {row!r}; the rows are {', '.join(experiment.rows)}")
            if (problem := not_finite(experiment.for_row(row))) is not None:
                raise ValueError(problem)
        except ValidationError as error:
            raise InputError(f"{path}: {where}with.{row}: {describe(error)}") from error
        except ValueError as error:
            raise InputError(f"{path}: {where}with.{row}: {error}") from error


def experiment_names() -> list[str]:
    """Return the names of the experiment files that come with the suite."""
    return names_in(EXPERIMENTS)
