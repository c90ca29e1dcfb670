"""One thread for torch: the tests are small, and sums come out the same on every machine. No test fails for time."""

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
