"""The base class of all records: frozen values that are written as JSON and named by a hash of their content."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

_naming = ContextVar("naming", default=False)


def canonical_json(value: Any) -> str:
    """Write a value as JSON with sorted keys and without spaces, so that equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def fingerprint_of(value: Any) -> str:
    """Return the first 128 bits of the SHA-256 of a value's canonical JSON, as 32 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:32]


def identity_of(fingerprint: str) -> str:
    """Return the short form of a fingerprint that is shown and stands in names of files."""
    return fingerprint[:12]


def derive_seed(*identity: str | int) -> int:
    """Derive a seed of 63 bits from its purpose, for example ("search", base seed, trial, fold)."""
    return int(fingerprint_of(list(identity))[:16], 16) >> 1


class Record(BaseModel):
    """A frozen value that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def identity(self, exclude: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what names the record: its JSON without the excluded fields and without `optional` ones."""
        token = _naming.set(True)
        try:
            return self.model_dump(mode="json", exclude=exclude)
        finally:
            _naming.reset(token)


def optional(default: Any, **limits: Any) -> Any:
    """Return a field that is no part of names while it has its default, so that old and new records share names.

    Args:
        default: What was done before the field existed.
        limits: Further arguments of pydantic's `Field`.
    """
    return Field(default=default, exclude_if=lambda value: _naming.get() and value == default, **limits)


FREE = "free"
"""Mark of a setting in which an experiment may differ from the suite's file of its name and be the same comparison."""
AMOUNT = "amount"
"""Mark of a setting that says how many runs and searches there are."""
UNNAMED = "unnamed"
"""Mark of what may differ between starts of one experiment. The data's fingerprint stands for the files' content."""
TRAINED_TRUNK = "trained trunk"
"""Mark of a setting that has no effect where the trunk does not train."""


def marked(model: type[BaseModel], mark: str, within: str = "") -> Iterator[str]:
    """Yield the dotted keys of fields with a mark in their annotation, `Annotated[int, FREE]`, of nested models too."""
    for name, field in model.model_fields.items():
        if mark in field.metadata:
            yield within + name
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from marked(field.annotation, mark, f"{within}{name}.")


def flat(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield every single value of nested mappings with its dotted key. A list is one value."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from flat(part, f"{key}.{name}" if key else str(name))
    else:
        yield key, value
