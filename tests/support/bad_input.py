"""Commands with bad input, in this process: an answer, or one line and status 2, within a time limit."""

import io
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import FrameType
from unittest.mock import patch

from hypothesis import HealthCheck
from hypothesis import strategies as st

from reproduce import cli
from tests.support.command_line import Answer

SECONDS = 60
"""No command on a small file takes so long, even on a loaded machine."""


SAME_FOLDER = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
"""Checks of hypothesis that do not hold where all examples of a test use one folder, as they are meant to."""


@st.composite
def damaged_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """The bytes of a file, in which up to four places are changed, cut or doubled."""
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 30)))
        content = content[:start] + draw(st.binary(max_size=8) | st.just(content[start:end] * 2)) + content[end:]
    return content


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
