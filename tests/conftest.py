"""One thread for torch: the tests are small, and sums come out the same on every machine. No test fails for time."""

import torch
from hypothesis import settings

from tests.support.tiny_run import tiny_run  # noqa: F401 - a fixture of all folders

torch.set_num_threads(1)
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
