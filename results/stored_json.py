"""Reads records from the JSON texts of a store. A text that cannot be read is one line with the remedy."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from results.store_error import StoreError

M = TypeVar("M", bound=BaseModel)


def parsed(model: type[M], text: str, url: str) -> M:
    """Read a record.

    Args:
        model: Class of the record.
        text: The record as JSON, as the store holds it.
        url: URL of the store, for the message.

    Raises:
        StoreError: The text is damaged, or a newer release of the suite wrote it.
    """
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise unreadable(model, error, url) from error


def unreadable(model: type[BaseModel], error: ValidationError, url: str) -> StoreError:
    """Return the error for a record that cannot be read, with the remedy.

    Args:
        model: Class of the record.
        error: Why it cannot be read.
        url: URL of the store, for the message.
    """
    return StoreError(f"store {url}: {_reason(model.__name__, error)}")


def _reason(name: str, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return (
            f"a {name} has the key {key!r}, which this release does not know; update the suite, or use another store "
            "with --store"
        )
    what = "is not JSON" if first["type"] == "json_invalid" else f"has no usable {key or 'content'!r}"
    return (
        f"a {name} in it {what}: it is damaged, or another release wrote it; use a copy of the store from before, or "
        "another store with --store"
    )
