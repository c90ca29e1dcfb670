"""Reads YAML files into validated models. Errors name the file, the key and the remedy."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from reproduce.config.strict_yaml import LARGEST_FILE, StrictYamlError, read_yaml
from reproduce.errors import InputError

M = TypeVar("M", bound=BaseModel)

_LONGEST_VALUE = 120
"""Most characters of a wrong value in a message."""

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
METHODS = Path(__file__).parent.parent / "methods"


def read_model(path: Path, model: type[M]) -> M:
    """Read a file and validate its content.

    Args:
        path: The YAML file.
        model: The class of the content.

    Raises:
        InputError: The file cannot be read or is not valid; the message names the key.
    """
    content = read_mapping(path)
    try:
        read = model.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}") from error
    if (problem := not_finite(read)) is not None:
        raise InputError(f"{path}: {problem}")
    return read


def read_mapping(path: Path) -> dict[str, Any]:
    """Read the keys and values of a YAML file; raise InputError if it cannot be read."""
    try:
        # One character more than allowed is enough to refuse the file.
        with path.open(encoding="utf-8") as file:
            content = read_yaml(file.read(LARGEST_FILE + 1))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not valid YAML (it is not text in UTF-8); save it in UTF-8") from error
    except StrictYamlError as error:
        line = "" if error.line is None else f", line {error.line}"
        raise InputError(f"{path}{line}: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected keys and values, found {type(content).__name__}")
    return content


def merged(common: dict[str, Any], panel: dict[str, Any]) -> dict[str, Any]:
    """Return the common keys of a file with the keys of a panel, which win. Nested mappings are merged too."""
    result = dict(common)
    for key, value in panel.items():
        both_nested = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both_nested else value
    return result


def describe(error: ValidationError) -> str:
    """Describe the first error of a validation with its key, and count the others."""
    first, *others = error.errors()
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        text = f"unknown key {key!r}; remove it or correct its spelling"
    elif first["type"] == "missing":
        text = f"key {key!r} is missing"
    elif not key:
        # The error is about several keys together, so the value is the whole file.
        text = first["msg"].removeprefix("Value error, ")
    else:
        text = f"key {key!r}: {first['msg'][0].lower()}{first['msg'][1:]}, found {_shortened(first['input'])}"
    return text + (f" (and {len(others)} more)" if others else "")


def _shortened(value: Any) -> str:
    """Return a value as it is written in Python, cut after some characters."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "..."


def not_finite(model: BaseModel) -> str | None:
    """Return why a model cannot be used if one of its numbers is not finite, with the key; None if all are finite."""
    key = _key_not_finite(model.model_dump())
    return None if key is None else f"key {'.'.join(key)!r}: must be a finite number"


def _key_not_finite(value: Any) -> list[str] | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else []
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, part in pairs:
        if (key := _key_not_finite(part)) is not None:
            return [str(name), *key]
    return None


def named_file(name: str, folders: Sequence[Path], what: str) -> Path:
    """Find the file of an experiment or a card.

    Args:
        name: A name, or the path of a .yaml file.
        folders: Folders to search for NAME.yaml; the first match counts.
        what: The kind of file, for the message.

    Raises:
        InputError: There is no such file; the message lists the known names.
    """
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise InputError(f"{name}: no such file")
        return path
    for folder in folders:
        if (path := folder / f"{name}.yaml").is_file():
            return path
    known = ", ".join(sorted(known_name for folder in folders for known_name in names_in(folder)))
    raise InputError(f"unknown {what} {name!r}; known are {known}, or give the path of a .yaml file")


def names_in(folder: Path) -> list[str]:
    """Return the names of the .yaml files in a folder, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def short_name(name: str) -> str:
    """Return the name that a file, or a panel of it, has in the store: the file's stem, with `/panel` behind it."""
    for suffix in (".yaml", ".yml"):
        file, separator, panel = name.partition(suffix)
        if separator:
            return Path(file).name + panel
    return name
