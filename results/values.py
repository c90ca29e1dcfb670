"""What every kept value is: frozen, written as JSON, named by the hash of what it says."""

import hashlib
import json
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks, the same text for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def fingerprint_of(value: Any) -> str:
    """The first 128 bits of the SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:32]


def derive_seed(*identity: str | int) -> int:
    """A seed from what it is for, such as ("search", base seed, trial, fold): 63 bits, the same everywhere."""
    return int(fingerprint_of(list(identity))[:16], 16) >> 1


class Record(BaseModel):
    """A frozen value that refuses unknown keys.

    later: fields that the class was given after records of it had been kept. At its default such a field is not
    written, so a value that does not use it keeps the name it always had.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    later: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        unused = {name for name in self.later if getattr(self, name) == fields[name].default}
        return {name: value for name, value in handler(self).items() if name not in unused}
