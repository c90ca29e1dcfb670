"""YAML files read into validated models, with errors that name file, key and remedy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from reproduce.errors import InputError

M = TypeVar("M", bound=BaseModel)

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
METHODS = Path(__file__).parent.parent / "methods"


def read_model(path: Path, model: type[M]) -> M:
    """The file's content as `model`; raises InputError."""
    content = read_mapping(path)
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}") from error


def read_mapping(path: Path) -> dict[str, Any]:
    """The file's keys and values; raises InputError."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where else ""
        raise InputError(f"{path}{line}: not valid YAML ({getattr(error, 'problem', None) or error})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected keys and values, found {type(content).__name__}")
    return content


def merged(common: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """What a file's panels share with one panel's own keys on top, at every depth."""
    whole = dict(common)
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(whole.get(key), dict)
        whole[key] = merged(whole[key], value) if both else value
    return whole


def describe(error: ValidationError) -> str:
    """The first complaint of a validation, with its key; how many more there are."""
    first, *others = error.errors()
    key = ".".join(str(part) for part in first["loc"]) or "file"
    if first["type"] == "extra_forbidden":
        text = f"unknown key {key!r}; remove it or correct its spelling"
    elif first["type"] == "missing":
        text = f"key {key!r} is missing"
    else:
        text = f"key {key!r}: {first['msg'][0].lower()}{first['msg'][1:]}, found {first['input']!r}"
    return text + (f" (and {len(others)} more)" if others else "")


def named_file(name: str, folders: Sequence[Path], what: str) -> Path:
    """name.yaml in the first of `folders` that has it, or the file itself if `name` is a path.

    Raises InputError with the known names.
    """
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise InputError(f"{name}: no such file")
        return path
    for folder in folders:
        if (path := folder / f"{name}.yaml").is_file():
            return path
    known = ", ".join(sorted(each for folder in folders for each in names_in(folder)))
    raise InputError(f"unknown {what} {name!r}; known are {known}, or give the path of a .yaml file")


def names_in(folder: Path) -> list[str]:
    """The names that `named_file` knows."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def short_name(name: str) -> str:
    """How a file, or one panel of it, is called in the store: its stem, with the panel behind it."""
    for suffix in (".yaml", ".yml"):
        file, found, panel = name.partition(suffix)
        if found:
            return Path(file).name + panel
    return name
