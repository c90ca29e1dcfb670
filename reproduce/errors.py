"""Errors that the command line prints as one line."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from results import InputError as InputError

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ask for those of the known names that look like a misspelt one, as in `did you mean a? `; empty without any."""
    near = " or ".join(get_close_matches(name, list(known)))
    return f"did you mean {near}? " if near else ""


def unknown(fault: str, name: str, known: Iterable[str], command: str, hint: str = "") -> InputError:
    """Return the error for a name that is not known; the command lists all that are."""
    return InputError(f"{fault}; {did_you_mean(name, known)}`reproduce {command}` lists all{hint}")


def read_text(path: Path) -> str:
    """Read a user's text file; raise InputError if it cannot be read."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: cannot be read (not a file)")  # A pipe might never end.
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not text in UTF-8; save it in UTF-8") from error


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Raise InputError if the folder that `--to` names cannot be written."""
    try:
        yield
    except OSError as error:
        reason = f"{folder}: cannot be written ({error.strerror or error})"
        raise InputError(f"{reason}; choose another folder with --to") from error
