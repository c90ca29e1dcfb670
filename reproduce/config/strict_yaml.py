"""Reads the YAML files of experiments and method cards, and says in one line what is wrong with one."""

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from reproduce.errors import InputError, read_text, unknown
from results.values import flat
from results.wording import counted, first_line

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
METHODS = Path(__file__).parent.parent / "methods"

M = TypeVar("M", bound=BaseModel)

_MOST_ERRORS = 5
_LONGEST_VALUE = 120
"""Most characters of a wrong value in a message."""

_REMEDIES = {
    "'\\t'": "indent with blanks, not with tabs",
    "cannot start any token": "put a value that begins so in quotes",
    "mapping values are not allowed": "put a value with a colon in quotes",
    "duplicate key": "keep one of them",
}
"""What to do, by a part of what the reader of YAML says."""


def read_yaml(text: str) -> Any:
    """Read a YAML 1.2 text; raise ValueError with one line if it is not valid, or has a key twice in one mapping."""
    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f"line {mark.line + 1}: "
        problem = first_line(getattr(error, "problem", None) or error)
        remedy = next((f"; {remedy}" for part, remedy in _REMEDIES.items() if part in problem), "")
        raise ValueError(f"{line}not valid YAML ({problem}){remedy}") from error


def yaml_of(content: dict[str, Any]) -> str:
    """Write keys and values as YAML."""
    writer, text = YAML(typ="safe", pure=True), io.StringIO()
    writer.default_flow_style, writer.width = False, 100
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.dump(content, text)
    return text.getvalue()


def read_mapping(path: Path) -> dict[str, Any]:
    """Read the keys and values of a YAML file; raise InputError if it cannot be read."""
    try:
        content = read_yaml(read_text(path))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    if not isinstance(content, dict):
        found = "nothing" if content is None else "a list" if isinstance(content, list) else f"only {content!r:.40}"
        raise InputError(f"{path}: expected keys and values, as in `title: Mine`, found {found}")
    return content


def validated(model: type[M], content: Any, where: str) -> M:
    """Validate the content of a file; raise InputError with the place `where` and the keys that are wrong."""
    with one_line_errors(where, model=model):
        read = model.model_validate(content)
    for key, value in flat(read.model_dump()):
        try:
            json.dumps(value, allow_nan=False, default=str)
        except ValueError:
            raise InputError(f"{where}: key {key!r}: must be a finite number, found {value}") from None
    return read


def merged(common: dict[str, Any], panel: dict[str, Any]) -> dict[str, Any]:
    """Return the common keys of a file with the keys of a panel, which win. Nested mappings are merged too."""
    result = dict(common)
    for key, value in panel.items():
        both_nested = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both_nested else value
    return result


@contextmanager
def one_line_errors(where: str, *kinds: type[ValueError], model: type[BaseModel] | None = None) -> Iterator[None]:
    """Raise errors of pydantic, and those of other kinds, as InputErrors that begin with the place `where`.

    The fields of `model` are proposed in place of misspelt ones.
    """
    try:
        yield
    except ValidationError as error:
        raise InputError(f"{where}: {_in_one_line(error, model)}") from error
    except kinds as error:
        raise InputError(f"{where}: {error}") from error


def _in_one_line(error: ValidationError, model: type[BaseModel] | None) -> str:
    """Describe the errors of a validation with their keys; behind the fifth they are only counted."""
    # Of a list with a wrong entry pydantic also says that it is too short.
    errors = [
        one
        for one in error.errors()
        if one["type"] != "too_short" or len(one["input"]) < one.get("ctx", {}).get("min_length", 0)
    ]
    more = f" (and {len(errors) - _MOST_ERRORS} more)" if len(errors) > _MOST_ERRORS else ""
    return "; ".join(_described(one, model) for one in errors[:_MOST_ERRORS]) + more


def _described(error: Any, model: type[BaseModel] | None) -> str:
    # Files have the conditions of an experiment, or the method of a card, beside the other settings.
    loc = error["loc"]
    place = loc[1:] if len(loc) > 1 and loc[0] in ("conditions", "method") else loc
    # Of several types that a value can have, pydantic names each as if it were a key.
    kinds = {} if model is None else model.model_json_schema().get("$defs", {})
    place = tuple(part for part in place if part not in kinds and not str(part).startswith("literal["))
    key = ".".join(str(part) for part in place)
    if error["type"] == "extra_forbidden":
        elsewhere = [path for path in _paths(model) if path.rpartition(".")[2] == place[-1]]
        if len(elsewhere) == 1:
            return f"unknown key {key!r}; did you mean {elsewhere[0]}?"
        near = get_close_matches(str(place[-1]), _keys(model) - {place[-1]}, 1, cutoff=0.7)
        if not near and key.rpartition(".")[0].endswith(("optimizer", "sampler")):
            return f"unknown key {key!r}; if its class takes it, put it under 'arguments'"
        return f"unknown key {key!r}; {f'did you mean {near[0]}?' if near else 'remove it or correct its spelling'}"
    if error["type"] == "missing":
        return f"key {key!r} is missing"
    is_mapping_wanted = error["type"] in ("model_type", "dict_type")
    if not key and not is_mapping_wanted:
        # The error is about several keys together, so the value is the whole file.
        return str(error["msg"]).removeprefix("Value error, ")
    found = repr(error["input"])
    shown = found if len(found) <= _LONGEST_VALUE else f"{found[:_LONGEST_VALUE]}..."
    message = error["msg"].removeprefix("Value error, ")
    if is_mapping_wanted:
        named = isinstance(error["input"], str)
        is_name = named and "name" in _keys(model, error.get("ctx", {}).get("class_name", ""))
        message = f"needs keys and values, as in {{{f'name: {shown}' if is_name else 'key: value'}}}"
    elif error["type"] in ("tuple_type", "list_type"):
        message = "needs a list, as in [first, second]"
    elif error["type"] == "string_too_short":
        message = "must not be empty"
    elif error["type"] == "too_short":
        least = counted(error["ctx"]["min_length"], "entry")
        message = f"needs at least {least}{'; variants stand beside methods' if key == 'methods' else ''}"
    elif error["type"] == "path_type":
        message = "needs a path"
    # A mapping says nothing that the message does not.
    found = "" if isinstance(error["input"], dict) else f", found {shown}"
    if error["input"] is None:
        found = ", found nothing; fill it in, or leave the key out if it has a default"
    return f"{f'key {key!r}: ' if key else ''}{message[0].lower()}{message[1:]}{found}"


def _paths(model: type[BaseModel] | None, outer: str = "") -> Iterator[str]:
    """Yield the keys that a YAML file of a pydantic model can have, with those above them, as in `training.lr`."""
    for name, field in ({} if model is None else model.model_fields).items():
        inlined = not outer and name in ("conditions", "method")
        if not inlined:
            yield f"{outer}{name}"
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel) and part is not model:
                yield from _paths(part, outer if inlined else f"{outer}{name}.")


def _keys(model: type[BaseModel] | None, kind: str | None = None) -> set[str]:
    """Return the keys that a YAML file of a pydantic model can have, or those of one kind of its parts."""
    schema = {} if model is None else model.model_json_schema()
    parts = {"": schema, **schema.get("$defs", {})}
    return {key for name, part in parts.items() if kind in (None, name) for key in part.get("properties", ())}


def named_file(name: str, folder: Path, what: str) -> Path:
    """Find NAME.yaml in a folder of the suite, or take the path of a .yaml file."""
    if name.endswith((".yaml", ".yml")):
        if not Path(name).is_file():
            raise InputError(f"{name}: no such file")
        return Path(name)
    if (path := folder / f"{name}.yaml").is_file():
        return path
    own = f"{name}.yaml"
    path_too = f"; or give the file, {own}" if Path(own).is_file() else "; or give the path of a .yaml file"
    raise unknown(f"unknown {what} {name!r}", name, names_in(folder), f"{what}s", path_too)


def names_in(folder: Path) -> list[str]:
    """Return the names of the .yaml files in a folder, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def short_name(name: str) -> str:
    """Return the name that a file, or a panel of it, has in the store: the file's stem, with `/panel` behind it."""
    found = re.match(r"(.*?)\.ya?ml(.*)", name)
    return Path(found[1]).name + found[2] if found else name
