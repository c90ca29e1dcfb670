"""Repeats calls of the database that failed for a reason that passes: a server that restarts, a locked SQLite file."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Concatenate, ParamSpec, Protocol, TypeVar


class StoreError(Exception):
    """The store cannot be used. The message gives the remedy."""


class IncompleteExperimentError(StoreError):
    """An experiment was stored without something that every table needs. The message gives the remedy."""


P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner", bound="HasPatience")
ClassWithCalls = TypeVar("ClassWithCalls")

_PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Seconds before a call is repeated after a lost connection. A new connection waits for the server as well."""


class LostConnectionError(StoreError):
    """The connection to the server was lost in a transaction."""


class LockedStoreError(StoreError):
    """Another program has locked the SQLite file for too long."""


class LockWait:
    """What to do about a SQLite file that stays locked. By default a call fails; a run waits until the lock goes.

    Args:
        say: Prints a line when the waiting starts. None: a call fails.
        stopped: Tells whether to wait no longer.
    """

    def __init__(self, say: Callable[[str], None] | None = None, stopped: Callable[[], bool] = lambda: False) -> None:
        self._say, self._stopped = say, stopped
        self._waiting = False

    def goes_on(self) -> bool:
        """Tell whether to repeat a call that found the file locked. The first time in a row a line is printed."""
        if self._say is None or self._stopped():
            return False
        if not self._waiting:
            self._waiting = True
            self._say(
                "another program has locked the store for more than a minute; what is finished is kept in memory and "
                "written when the lock goes"
            )
        return True

    def ended(self) -> None:
        """Note that a call was not locked out."""
        self._waiting = False


class HasPatience(Protocol):
    """An object with calls that are repeated."""

    @property
    def lock_wait(self) -> LockWait:
        """What to do about a locked SQLite file."""


def patient(call: Callable[Concatenate[Owner, P], R]) -> Callable[Concatenate[Owner, P], R]:
    """Repeat a method after a lost connection, up to six times, and while a run waits for a locked file.

    The method must be one that can be repeated after it was carried out, as the answer to a commit can be lost.

    Args:
        call: A method of an object with patience.

    Returns:
        The method that repeats it. It raises a plain `StoreError` at the end, which a caller does not repeat again.
    """

    @wraps(call)
    def repeated(self: Owner, /, *arguments: P.args, **options: P.kwargs) -> R:
        pauses = iter(_PAUSES)
        while True:
            try:
                answer = call(self, *arguments, **options)
            except LostConnectionError as error:
                pause = next(pauses, None)
                if pause is None:
                    raise StoreError(str(error)) from None
                time.sleep(pause)
            except LockedStoreError as error:
                if not self.lock_wait.goes_on():
                    raise StoreError(str(error)) from None
            else:
                self.lock_wait.ended()
                return answer

    return repeated


def patient_methods(kind: type[ClassWithCalls]) -> type[ClassWithCalls]:
    """Make all public methods of a class patient.

    Args:
        kind: The class; its public methods can be repeated after they were carried out.
    """
    for name, method in list(vars(kind).items()):
        if isfunction(method) and not name.startswith("_"):
            setattr(kind, name, patient(method))
    return kind
