"""What Ctrl-C and SIGTERM do: the first stops the command at a safe point, the second ends it at once.

Python's own handler raises KeyboardInterrupt wherever the program is, where it can come out as the traceback of a
half-done import. The handler here notes the signal. Code that works with the store defers the exception and asks for
the note; elsewhere the exception is raised at once.

This module imports little, so that the handler is in place before the long imports.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Literal

STOPPED = "stopped; everything finished is kept, run the same command to continue"

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = "\x1b[?25h"


class StopRequest(KeyboardInterrupt):
    """Somebody asked this process to stop.

    A class of its own, since Python 3.11 ends a program with the signal instead of its exit code if KeyboardInterrupt
    itself went through code that is executed from a string, as in `dataclass`, even where it was caught later.
    """


class _State:
    received: int | None = None
    reaction: Literal["end", "raise", "note"] = "raise"


def install() -> None:
    """Set the handler. Until `imports_done` a signal ends the process at once.

    A signal that the parent process ignores stays ignored, as for `nohup` and for jobs in the background.
    """
    _State.received, _State.reaction = None, "end"
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)


def imports_done() -> None:
    """From now on a signal raises StopRequest, so that open files and bars are closed."""
    _State.reaction = "raise"


def requested() -> bool:
    """Tell whether somebody asked this process to stop."""
    return _State.received is not None


def exit_code() -> int:
    """Return the exit code of a stopped command: 128 plus the number of the signal, by default of Ctrl-C."""
    return 128 + (_State.received or signal.SIGINT)


def stop_if_requested() -> None:
    """Raise StopRequest if somebody asked this process to stop."""
    if requested():
        raise StopRequest


@contextmanager
def deferred() -> Iterator[None]:
    """Only note the first signal within the block, which must call `stop_if_requested` or read `requested` often."""
    before, _State.reaction = _State.reaction, "note"
    try:
        yield
    finally:
        _State.reaction = before


def _handle(number: int, _frame: FrameType | None) -> None:
    again, _State.received = requested(), number
    if again or _State.reaction == "end":
        _end(number)
    if _State.reaction == "raise":
        raise StopRequest


def _end(number: int) -> None:
    """End the process without any cleaning up. Its workers end with it; the store loses nothing."""
    if os.isatty(1):
        os.write(1, _SHOW_CURSOR.encode())
    os.write(2, f"{STOPPED}\n".encode())
    os._exit(128 + number)
