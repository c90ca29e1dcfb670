"""A class or function by its name, with the arguments that it is built with: of this suite, a library or a user.

A class or function from a user's file or module is named as in `my_losses.py:CosineSoftmax (sha256 0123456789abcdef)`.
Cards and experiment files name them without the hash. The hash of the source is added before anything is trained, so
that it is part of the fingerprints, and old results are never taken for results of a changed source.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pydantic import Field, JsonValue, model_validator

from results.values import Record

_NAME = re.compile(r"(?P<source>.+):(?P<attribute>[^\W\d]\w*)(?: \(sha256 (?P<digest>[0-9a-f]{16})\))?")

KINDS = ("loss", "miner", "regularizer", "distance", "reducer")
"""The kinds of components that a method can have."""


def nested_components(arguments: Mapping[str, JsonValue]) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    """Find the components among arguments, and those among their arguments; each with the name of its argument.

    Such an argument, or an element of a list, is a dictionary with one key: `{"component": {"kind": ..., "name": ...,
    "arguments": ...}}`. A component without a name, of an unknown kind or with an unknown key is a ValueError.
    """
    singles = (
        (key, one) for key, value in arguments.items() for one in (value if isinstance(value, list) else [value])
    )
    for key, value in singles:
        if not isinstance(value, dict) or set(value) != {"component"}:
            continue
        nested = value["component"]
        if not isinstance(nested, dict) or not isinstance(nested.get("name"), str):
            raise ValueError(f"the component in argument {key!r} needs the name of a class, as in {{name: LpDistance}}")
        if unknown := sorted(nested.keys() - {"kind", "name", "arguments"}):
            raise ValueError(f"the component in argument {key!r} takes kind, name and arguments, not {unknown[0]!r}")
        if nested.get("kind", "loss") not in KINDS:
            raise ValueError(f"the component in argument {key!r} has kind {nested['kind']!r}; use {', '.join(KINDS)}")
        inner = nested.get("arguments", {})
        if not isinstance(inner, dict):
            raise ValueError(f"the arguments of the component in argument {key!r} must be keys and values")
        yield key, nested
        yield from nested_components(inner)


def renamed_components(arguments: Mapping[str, JsonValue], rename: Callable[[str], str]) -> dict[str, JsonValue]:
    """Return a copy of arguments in which all components have new names."""

    def renamed(value: JsonValue) -> JsonValue:
        if isinstance(value, list):
            return [renamed(one) for one in value]
        if not (isinstance(value, dict) and set(value) == {"component"} and isinstance(value["component"], dict)):
            return value
        nested = value["component"]
        inner = nested.get("arguments", {})
        assert isinstance(inner, dict)
        names = {**nested, "name": rename(str(nested["name"]))}
        return {"component": {**names, "arguments": renamed_components(inner, rename)} if inner else names}

    return {key: renamed(value) for key, value in arguments.items()}


class Component(Record):
    """A class by its name, with the keyword arguments that it is built with."""

    name: str
    arguments: dict[str, JsonValue] = Field(default={})

    @model_validator(mode="after")
    def _nested_components_have_names(self) -> Self:
        list(nested_components(self.arguments))  # The iteration checks each of them.
        return self

    def renamed(self, rename: Callable[[str], str]) -> Self:
        """Return a copy with new names of the class and of all components that are arguments."""
        return self.model_copy(
            update={"name": rename(self.name), "arguments": renamed_components(self.arguments, rename)}
        )


class WeightedComponent(Component):
    """A component whose contribution to the loss has a weight."""

    weight: float


@dataclass(frozen=True)
class SourceName:
    """The name of a class or function from a user's file or module.

    Attributes:
        source: Path of a `.py` file, or a module such as `my_package.module`.
        digest: First 16 digits of the SHA-256 of its source; None in cards and experiment files.
    """

    source: str
    attribute: str
    digest: str | None = None

    @classmethod
    def parse(cls, name: str) -> "SourceName | None":
        """Read a name; return None for a plain name, such as that of a class of pytorch-metric-learning."""
        match = _NAME.fullmatch(name)
        return cls(**match.groupdict()) if match else None

    def __str__(self) -> str:
        return f"{self.source}:{self.attribute}" + ("" if self.digest is None else f" (sha256 {self.digest})")

    @property
    def in_file(self) -> bool:
        """Whether the source is a file; a module otherwise."""
        return self.source.endswith(".py")


def relative_name(name: str, folder: Path) -> str:
    """Return a name with its path taken relative to a folder; plain names and modules stay as they are."""
    parsed = SourceName.parse(name)
    if parsed is None or not parsed.in_file:
        return name
    return str(replace(parsed, source=str(folder / Path(parsed.source).expanduser())))
