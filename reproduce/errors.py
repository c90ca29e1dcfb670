"""Errors that the command line prints as one line."""

from collections.abc import Callable, Iterable
from typing import TypeVar

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


class InputError(Exception):
    """The user's input cannot be used. The message is one line with the remedy."""


class WorkFailedError(Exception):
    """A job cannot be done. The message names the job and the remedy. Everything finished before is in the store."""


def all_of(items: Iterable[_Item], make: Callable[[_Item], _Made]) -> list[_Made]:
    """Make one thing of each item; raise one InputError with the faults of all items."""
    made, faults = [], []
    for item in items:
        try:
            made.append(make(item))
        except InputError as error:
            faults.append(str(error))
    if faults:
        raise InputError("; ".join(faults))
    return made
