"""Commands with bad input, in this process: an answer, or one line and status 2, within a time limit."""

import io
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import FrameType
from unittest.mock import patch

from reproduce import cli
from tests.support.command_line import Answer

SECONDS = 60
"""No command on a small file takes so long, even on a loaded machine."""


class TooSlowError(Exception):
    """A command did not end in time."""


@contextmanager
def time_limit(seconds: int = SECONDS) -> Iterator[None]:
    """Raise TooSlowError in the main thread after some seconds."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def answer_to(*arguments: str) -> Answer:
    """Run a command of `reproduce` in this process. An error that is not caught there is raised here."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with patch.object(sys, "argv", ["reproduce", *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            with time_limit():
                cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Answer(code, out.getvalue(), err.getvalue())


def assert_in_one_line(answer: Answer) -> None:
    """Check that a command succeeded, or that it printed one line with the error and ended with 2."""
    if answer.code == 0:
        return
    assert answer.code == 2, answer
    assert answer.err.startswith("error: "), answer.err
    assert len(answer.err.splitlines()) == 1, answer.err
