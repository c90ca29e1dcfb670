"""One thread for torch: the tests are small, and sums come out the same on every machine. No test fails for time."""

import signal
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from tests.support.postgresql import postgresql_server, postgresql_url  # noqa: F401 - fixtures of all folders
from tests.support.tiny_run import tiny_run  # noqa: F401 - a fixture of all folders

torch.set_num_threads(1)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background, the tests ignore Ctrl-C, and so would the jobs that they start and cancel.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a GPU"))


settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def same_threads_afterwards() -> Iterator[None]:
    """For tests of code that sets the number of threads: the tests after them get the number back."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
