"""The base class of all records: frozen values that are written as JSON and named by a hash of their content."""

import hashlib
import json
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


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


class Spec(Record):
    """A record that is written as before, and keeps its fingerprint, when its class gets another field.

    Attributes:
        optional: Names of the fields that are not written while they have their default. A new field belongs here.
    """

    optional: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_optional_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        unused = {
            name for name in self.optional if getattr(self, name) == fields[name].get_default(call_default_factory=True)
        }
        return {name: value for name, value in handler(self).items() if name not in unused}
