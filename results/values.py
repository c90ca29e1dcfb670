"""The base class of all records: frozen values that are written as JSON and named by a hash of their content."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict


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


def flat(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield every single value of nested mappings with its dotted key. A list is one value."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from flat(part, f"{key}.{name}" if key else str(name))
    else:
        yield key, value
