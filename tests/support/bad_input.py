"""Commands with bad input, in this process: an answer, or one line and status 2, within a time limit."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from hypothesis import HealthCheck
from hypothesis import strategies as st

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
