"""What a check of a store finds, and how it reads a record that may be damaged."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from results.values import Record

AnyRecord = TypeVar("AnyRecord", bound=Record)
FindingKind = Literal["damaged", "missing", "foreign"]


@dataclass(frozen=True)
class Finding:
    """Something in a store that is not as the suite writes it.

    Attributes:
        kind: `damaged` cannot be read, has another name than its content, or contradicts itself or the records that it
            was made from. `missing` is needed by something else. `foreign` belongs to nothing in the store, or to
            another release; it does no harm.
        name: The record or the file.
        reason: What is wrong with it.
    """

    kind: FindingKind
    name: str
    reason: str


def damaged(name: str, faults: Iterable[str], where: str = "") -> Iterator[Finding]:
    """Make one finding of everything that is wrong with a record."""
    if reasons := list(dict.fromkeys(faults)):
        yield Finding("damaged", name, "; ".join([*reasons, where] if where else reasons))


def read(
    kind: type[AnyRecord], text: str, name: str, is_named_so: Callable[[Any], bool], *, hashed: bool = False
) -> tuple[AnyRecord | None, Finding | None]:
    """Read a record. One that this release cannot read, but that has its fingerprint, comes from another release.

    Releases differ in their keys. A value that no release writes is damage, unless a hash of the text proves it.
    """
    try:
        return kind.model_validate_json(text), None
    except ValidationError as error:
        wrong = error.errors()
    place = ".".join(map(str, wrong[0]["loc"])) or "the whole text"
    # A missing place of a tuple is no missing key.
    keys_only = all(f["type"] in ("missing", "extra_forbidden") and isinstance(f["loc"][-1], str) for f in wrong)
    try:
        if (keys_only or hashed) and is_named_so(json.loads(text)):
            return None, Finding("foreign", name, f"written by another release, which this one cannot read ({place})")
    except (ValueError, TypeError, KeyError, AttributeError):
        pass  # Not JSON, or not of any release: damaged.
    return None, Finding("damaged", name, f"not a readable record ({place})")


def hash_of(fingerprint: Callable[[], str]) -> str:
    """Return a fingerprint; empty for values that JSON cannot write, such as NaN, which no record has."""
    try:
        return fingerprint()
    except ValueError:
        return ""
