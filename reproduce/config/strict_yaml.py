"""Reads YAML text and refuses what no experiment file or card can mean, before any value is built.

PyYAML alone takes the last of two equal keys, expands aliases without a limit, and raises plain Python errors for
values such as `2001-99-99`.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.nodes import MappingNode, Node, ScalarNode

from reproduce.errors import InputError
from results.names import MOST_BYTES, why_unknown

LARGEST_FILE = 1_000_000
"""Most characters of a file."""

MOST_VALUES = 100_000
"""Most values of a file after its aliases are expanded."""

DEEPEST = 50
"""Most levels of nesting."""

_TAG = "tag:yaml.org,2002:"
_STRUCTURES = {f"{_TAG}map", f"{_TAG}seq"}
_KEYS = {f"{_TAG}str", f"{_TAG}merge"}
_SCALARS = {f"{_TAG}{name}": name for name in ("str", "int", "float", "bool", "null", "merge")}


class StrictYamlError(ValueError):
    """A text is not YAML that the suite reads. The message is one line with the remedy.

    Attributes:
        line: Number of the line, from 1; None if the message is about the whole text.
    """

    def __init__(self, message: str, node: Node | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line if node is None else node.start_mark.line + 1


def read_yaml(text: str) -> Any:
    """Read a YAML text.

    Args:
        text: One YAML document.

    Returns:
        Its content: mappings with text as keys, lists, texts, finite numbers, truth values and None.

    Raises:
        StrictYamlError: The text is not YAML; a key stands twice in a mapping or is not text; a number is not finite
            or needs more than 64 bits; a value has an unknown tag or is a date; a text has a control character; or the
            document is too large or too deep.
    """
    if len(text) > LARGEST_FILE:
        raise StrictYamlError(f"has more than {LARGEST_FILE:,} characters, which no experiment or card needs")
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _Check(loader).count(node, 0)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).partition("\n")[0]
        raise StrictYamlError(f"not valid YAML ({reason})", line=mark.line + 1 if mark else None) from error
    except RecursionError as error:
        raise StrictYamlError(f"values are nested more than {DEEPEST} deep; remove levels") from error


class _Check:
    """Checks the nodes of a document. A node that aliases repeat is visited once."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self._loader = loader
        self._counts: dict[int, int] = {}
        self._open: set[int] = set()

    def count(self, node: Node, depth: int) -> int:
        """Check a node and return how many values it has after its aliases are expanded."""
        if depth > DEEPEST:
            raise StrictYamlError(f"values are nested more than {DEEPEST} deep; remove levels", node)
        if id(node) in self._open:
            raise StrictYamlError("an alias stands inside the value that it repeats; remove it", node)
        if id(node) not in self._counts:
            self._open.add(id(node))
            self._counts[id(node)] = self._count_parts(node, depth)
            self._open.remove(id(node))
        if self._counts[id(node)] > MOST_VALUES:
            raise StrictYamlError(f"has more than {MOST_VALUES:,} values after its aliases are expanded", node)
        return self._counts[id(node)]

    def _count_parts(self, node: Node, depth: int) -> int:
        if isinstance(node, ScalarNode):
            self._check_scalar(node)
            return 1
        if node.tag not in _STRUCTURES:
            raise _unknown_tag(node)
        if isinstance(node, MappingNode):
            _check_keys(node)
            return 1 + sum(self.count(key, depth + 1) + self.count(value, depth + 1) for key, value in node.value)
        return 1 + sum(self.count(part, depth + 1) for part in node.value)

    def _check_scalar(self, node: ScalarNode) -> None:
        if node.tag == f"{_TAG}timestamp":
            raise StrictYamlError(f"{node.value[:40]} is a date in YAML; put it in quotes", node)
        if node.tag == f"{_TAG}value":
            raise StrictYamlError(f"{node.value} is no text in YAML; put it in quotes", node)
        if node.tag not in _SCALARS:
            raise _unknown_tag(node)
        if node.tag == f"{_TAG}str":
            _check_text(node)
        try:
            value = self._loader.construct_object(node) if node.tag != f"{_TAG}merge" else None
        except (ValueError, KeyError, IndexError, OverflowError) as error:
            raise StrictYamlError(f"{node.value[:40]!r} is not of the type {_SCALARS[node.tag]}", node) from error
        if isinstance(value, float) and not math.isfinite(value):
            raise StrictYamlError(f"{node.value[:40]} is not a finite number; give a finite one", node)
        if isinstance(value, int) and abs(value) >= 1 << 63:
            raise StrictYamlError(f"{node.value[:40]} is too large for a whole number of 64 bits", node)


def _check_keys(node: MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, ScalarNode):
            raise StrictYamlError("a key must be text, not a list or a mapping", key)
        if key.tag not in _KEYS:
            raise StrictYamlError(f"the key {key.value[:40]} is not text; put it in quotes", key)
        if key.value in seen:
            raise StrictYamlError(f"the key {key.value[:40]!r} stands twice in one mapping; remove one", key)
        seen.add(key.value)


def _check_text(node: ScalarNode) -> None:
    for character in node.value:
        code = ord(character)
        if (code < 0x20 and character not in "\n\t") or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000:
            raise StrictYamlError(f"the text has the character {character!a}, which cannot be shown; remove it", node)


def _unknown_tag(node: Node) -> StrictYamlError:
    tag = node.tag.replace(_TAG, "!!")[:40]
    return StrictYamlError(f"the tag {tag} is not read here; remove it", node)


M = TypeVar("M", bound=BaseModel)

_MOST_ERRORS = 5
_LONGEST_VALUE = 120
"""Most characters of a wrong value in a message."""

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
METHODS = Path(__file__).parent.parent / "methods"


def read_model(path: Path, model: type[M]) -> M:
    """Read a file and validate its content; raise InputError with the key that is wrong."""
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
    """Describe the errors of a validation with their keys; behind the fifth they are only counted."""
    errors = error.errors()
    more = f" (and {len(errors) - _MOST_ERRORS} more)" if len(errors) > _MOST_ERRORS else ""
    return "; ".join(map(_described, errors[:_MOST_ERRORS])) + more


def _described(first: Any) -> str:
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
    return text


def _shortened(value: Any) -> str:
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
    """Find NAME.yaml in the first of the folders that has it, or take the path of a .yaml file."""
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            beside = path.parent.glob("*.y*ml") if path.parent.is_dir() else ()
            alike = why_unknown(path.name, (other.name for other in beside))
            if not alike and "\\" in name and Path(name.replace("\\", "/")).is_file():
                alike = why_unknown(name, [name.replace("\\", "/")])
            raise InputError(f"{name}: no such file{alike}")
        return path
    for folder in folders:
        if (path := folder / f"{name}.yaml").is_file():
            return path
    known = sorted(known_name for folder in folders for known_name in names_in(folder))
    raise InputError(
        f"unknown {what} {name!r}; known are {', '.join(known)}, or give the path of a .yaml file"
        f"{why_unknown(name, known)}"
    )


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


def checked_name(name: str) -> str:
    """Return the name of an experiment; refuse one that is too long for the files of its tables."""
    if (size := len(name.encode())) > MOST_BYTES:
        raise InputError(
            f"the experiment's name {name[:30]!r}... is too long: it has {size} bytes, and the names of its files have "
            f"room for {MOST_BYTES}; rename its file or its panel"
        )
    return name
