"""Reads experiment files (reproduce/experiments/*.yaml): the methods, the dataset and the settings of a comparison.

Files are read without torch, so that tables and pages can say how a stored experiment differs from its file.
`run.open_sessions` checks that the dataset, the trunk and the metrics exist.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, JsonValue

from reproduce.config.method_card import card_file, card_names, read_card
from reproduce.config.strict_yaml import (
    EXPERIMENTS,
    merged,
    named_file,
    names_in,
    one_line_errors,
    read_mapping,
    validated,
)
from reproduce.errors import InputError, all_of
from results.spec.component import relative_name
from results.spec.conditions import trained_trunk_defaults
from results.spec.experiment_spec import CARD_FILES, FREE_SETTINGS, Experiment, is_among
from results.spec.plan import Plan
from results.spec.trunk_spec import WEIGHT_FILES
from results.values import Record

_WITHOUT_WEIGHTS = frozenset({"small_conv"})
"""Trunks that nobody published weights for; they start at random."""


def experiment_names() -> list[str]:
    """Return the names of the experiment files that come with the suite."""
    return names_in(EXPERIMENTS)


def check_own_name(name: str, called: str) -> None:
    """Raise InputError if a person cannot give an experiment this name, which the message calls `called`."""
    from results.published.tables import published_tables

    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise InputError(f"{called}: use letters, digits and underscores, such as first_try")
    if name in (*experiment_names(), *published_tables()):
        raise InputError(f"{called}: is an experiment or a table of the suite; choose another")


def load_experiments(name: str, overrides: Mapping[str, Any]) -> dict[str, Experiment]:
    """Read an experiment file; the result maps NAME, or NAME/PANEL for each of its panels, to its experiment.

    Args:
        name: Name of an experiment that comes with the suite, or path of a file. `/panel` behind a name selects a
            panel.
        overrides: Settings that replace those of the file, by dotted key, as `with_overrides` takes them.

    Raises:
        InputError: There is no such file or panel, or a key or value is wrong.
    """
    path, selected = _file_and_panel(name)
    content = with_paths(read_mapping(path), path.parent)
    panels = content.pop("panels", None)
    if panels is None:
        if selected is not None:
            raise InputError(f"{path} has no panels; leave out {selected!r}")
        return {path.stem: _validated(path, "", content, overrides, _methods_named(content))}
    if not panels or not isinstance(panels, dict) or not all(isinstance(panel, dict) for panel in panels.values()):
        raise InputError(f"{path}: panels must be a mapping from each panel's name to its keys and values")
    if selected is not None and selected not in panels:
        raise InputError(f"{path}: there is no panel {selected!r}; the panels are {', '.join(panels)}")
    named = _methods_named(content).union(*map(_methods_named, panels.values()))
    wanted = {key: panel for key, panel in panels.items() if selected in (None, key)}
    of_panels = {key: merged(content, with_paths(panel, path.parent)) for key, panel in wanted.items()}
    return {
        f"{path.stem}/{key}": _validated(path, f"panels.{key}: ", of_panel, overrides, named)
        for key, of_panel in of_panels.items()
    }


def _file_and_panel(name: str) -> tuple[Path, str | None]:
    file, slash, panel = name.rpartition("/")
    if not slash or name.endswith(CARD_FILES):
        return named_file(name, EXPERIMENTS, "experiment"), None
    return named_file(file, EXPERIMENTS, "experiment"), panel


def _methods_named(content: dict[str, Any]) -> set[str]:
    methods, rows = (part if isinstance(part := content.get(key), list) else [] for key in ("methods", "variants"))
    keys = {Path(name).stem for name in methods if isinstance(name, str)}
    return keys | {str(row["key"]) for row in rows if isinstance(row, dict) and "key" in row}


def _validated(
    path: Path, where: str, content: dict[str, Any], overrides: Mapping[str, Any], named: set[str]
) -> Experiment:
    content = with_sweeps(path, where, content)
    experiment = validated(Experiment, content, f"{path}: {where}".removesuffix(": "))
    _check_rows(f"{path}: {where}", experiment, named)
    changed = experiment
    if overrides:
        settings = with_overrides(experiment.model_dump(mode="json"), overrides)
        # A misspelt method is told before what is compared with it.
        asked = "methods" in overrides
        all_of([name for name in settings["methods"] if asked or not name.endswith(CARD_FILES)], card_file)
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
    unknown = {
        "settings": set(experiment.settings) - known,
        "search.ranges": set(experiment.search.ranges) - known,
        "with": set(experiment.changes) - rows,
        "contrasts": {name for one in experiment.contrasts for name in (*one.a, *one.b)} - known,
    }
    for key, names in unknown.items():
        if names:
            raise InputError(f"{where}{key}: there is no row {min(names)!r}; the rows are {', '.join(experiment.rows)}")
    for row in experiment.changes:
        with one_line_errors(f"{where}with.{row}", ValueError):
            experiment.for_row(row)


def _with_folder(text: str, folder: Path) -> str:
    return str(folder / os.path.expanduser(text))


def _card(text: str, folder: Path) -> str:
    return _with_folder(text, folder) if text.endswith(CARD_FILES) else text


def _weights(text: str, folder: Path) -> str:
    return _with_folder(text, folder) if Path(text).suffix in WEIGHT_FILES else text


_PATHS: dict[str, dict[str, Callable[[str, Path], str]]] = {
    "dataset": {"root": _with_folder, "split": _with_folder},
    "trunk": {"name": relative_name, "weights": _weights},
    "variants": {"of": _card},
    "sweeps": {"of": _card},
}
"""Values that are paths, by the keys of an experiment file that have them, or have lists of parts with them."""


def with_paths(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the keys and values of an experiment file with its paths joined to the file's folder.

    Values of a wrong type stay as they are; the validation refuses them.
    """

    def joined(part: Any, joins: Mapping[str, Callable[[str, Path], str]]) -> Any:
        if isinstance(part, list):
            return [joined(entry, joins) for entry in part]
        if not isinstance(part, dict):
            return part
        paths = {key: join(part[key], folder) for key, join in joins.items() if isinstance(part.get(key), str)}
        return {**part, **paths}

    changed = {key: joined(content[key], joins) for key, joins in _PATHS.items() if key in content}
    for key, join in (("methods", _card), ("metrics", relative_name)):
        if isinstance(names := content.get(key), list):
            changed[key] = [join(name, folder) if isinstance(name, str) else name for name in names]
    return {**content, **changed}


class Sweep(Record):
    """Rows for all combinations of some values: variants with keys such as `proxy_anchor__loss.alpha_4`.

    Attributes:
        of: Key of the method card.
        set: Hyperparameters that all rows share, by target.
        grid: Values of the hyperparameters that vary, by target.
        conditions: Values of the settings that vary, by dotted key; files call it `with`.
        reading: Whether the rows are readings of an open recipe, as for variants.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    of: str
    set: dict[str, JsonValue] = Field(default={})
    grid: dict[str, list[JsonValue]] = Field(default={})
    conditions: dict[str, list[JsonValue]] = Field(default={}, validation_alias="with")
    reading: bool = False

    def rows(self) -> Iterator[tuple[dict[str, Any], dict[str, JsonValue]]]:
        """Yield a variant and its conditions for each combination, the last value varying fastest."""
        title = read_card(card_file(self.of)).title
        for values in product(*self.grid.values(), *self.conditions.values()):
            chosen = dict(zip([*self.grid, *self.conditions], values, strict=True))
            variant = {
                "of": self.of,
                "key": "__".join([Path(self.of).stem, *(f"{name}_{value}" for name, value in chosen.items())]),
                "title": ", ".join([title, *(f"{name} {value}" for name, value in chosen.items())]),
                "set": {**self.set, **{name: chosen[name] for name in self.grid}},
                "reading": self.reading,
            }
            yield variant, {name: chosen[name] for name in self.conditions}


def with_sweeps(path: Path, where: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment's keys and values with variants in place of its sweeps."""
    content = dict(content)
    sweeps = content.pop("sweeps", None) or []
    if not isinstance(sweeps, list):
        raise InputError(f"{path}: {where}sweeps must be a list of sweeps, each with `of` and `grid` or `with`")
    for number, raw in enumerate(sweeps):
        sweep = validated(Sweep, raw, f"{path}: {where}sweeps.{number}")
        if not (values := [*sweep.grid.values(), *sweep.conditions.values()]) or not all(values):
            raise InputError(f"{path}: {where}sweeps.{number}: varies nothing; give values in `grid` or `with`")
        for variant, changes in sweep.rows():
            content["variants"] = [*(content.get("variants") or []), variant]
            if changes:
                content["with"] = {**(content.get("with") or {}), variant["key"]: changes}
    return content


def with_overrides(settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an experiment with other values, as options and `--set key=value` give them.

    Args:
        settings: The settings as nested mappings, complete with their defaults.
        overrides: New values by dotted key. A text for a list is split at its commas; behind a
            plus sign, as in `+my_loss.yaml`, it comes behind what the list has. A text for `trunk` is the name of
            another trunk, with its own weights. A trunk that becomes frozen takes back the settings that have no effect
            then.
    """
    changed = dict(settings)
    for key, value in overrides.items():
        changed = _replaced(changed, key, key.split("."), value)
    for key, default in trained_trunk_defaults().items() if overrides.get("trunk.frozen") else ():
        changed = _replaced(changed, key, key.split("."), default)
    return changed


def _replaced(settings: Mapping[str, Any], key: str, parts: list[str], value: object) -> dict[str, Any]:
    first, *others = parts
    old = settings.get(first)
    if others:
        if not isinstance(old or {}, Mapping):
            raise InputError(f"--set {key}: {first!r} has no parts; give {first!r} as a whole")
        value = _replaced(old or {}, key, others, value)
    elif isinstance(old, list | tuple) and isinstance(value, str):
        added = [name.strip().removeprefix("+") for name in value.split(",") if name.strip()]
        value = list(dict.fromkeys([*old, *added])) if value.startswith("+") else added
    elif key == "trunk" and isinstance(value, str):
        value = {"name": value, "frozen": (old or {}).get("frozen", False)}
        if value["name"] in _WITHOUT_WEIGHTS:
            value["weights"] = "random"
    return {**settings, first: value}


def departures(name: str, plan: Plan) -> tuple[str, ...]:
    """Say in phrases how an experiment was run differently from the suite's file of its name.

    Only what decides a number counts: further or fewer methods, the number of reproductions and of searches, the seed
    and a subset of the dataset are no departures. Neither are more trials of a search, nor none, which takes the
    published optimum.
    """
    in_file = suite_experiment(name)
    if isinstance(in_file, str):
        return (in_file,)
    different = plan.experiment.differences(in_file)
    if plan.trials == 0 < in_file.search.trials or plan.trials > in_file.search.trials > 0:
        different.pop("search.trials", None)
    changed = [variant for variant in plan.experiment.variants if variant not in in_file.variants]
    return (
        *(
            f"{key} {stored} where the suite's file has {value}"
            for key, (stored, value) in different.items()
            if not is_among(key, FREE_SETTINGS)
        ),
        *(f"variant {variant.key} is not that of the suite's file" for variant in changed),
    )


def suite_experiment(name: str) -> Experiment | str:
    """Return the experiment in the suite's own file, given NAME or NAME/PANEL; a phrase says why there is none."""
    file, _, panel = name.partition("/")
    if file not in experiment_names():
        return "the suite has no experiment file of this name"
    experiments = load_experiments(file, {})
    experiment = experiments.get(f"{file}/{panel}" if panel else file)
    if experiment is not None:
        return experiment
    return f"the suite's file has no panel {panel!r}" if panel else "the suite's file has panels"
