"""The cross entropy in blocks is torch's, with its gradients."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from losses import proxy_gml as block_cross_entropy
from losses.proxy_gml import product_cross_entropy


@pytest.mark.parametrize("entries", [1, 30, 70, 10_000])
def test_value_and_gradients_do_not_depend_on_the_size_of_the_blocks(entries, monkeypatch):
    monkeypatch.setattr(block_cross_entropy, "_ENTRIES", entries)
    torch.manual_seed(0)
    rows = torch.randn(23, 5, dtype=torch.float64, requires_grad=True)
    columns = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    classes = torch.randint(7, (23,))
    value, expected = product_cross_entropy(rows, columns, classes), cross_entropy(rows @ columns, classes)
    torch.testing.assert_close(value, expected)
    got, wanted = (torch.autograd.grad(3 * x, (rows, columns)) for x in (value, expected))
    torch.testing.assert_close(got, wanted)
