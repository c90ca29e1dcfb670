"""One thread for torch: the tests are small, and sums come out the same on every machine."""

import torch

torch.set_num_threads(1)
