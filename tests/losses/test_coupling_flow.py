"""The conditional coupling flow: invertible, with the log-determinant it says (its reference values: test_nir)."""

from typing import Any

import pytest
import torch

from losses import CouplingFlow


@pytest.mark.parametrize(("condition", "seeing"), [("dense", {0, 1, 2, 3}), ("start", {0}), ("mid", {2}), ("end", {3})])
def test_only_the_chosen_blocks_see_the_condition(condition: Any, seeing: set[int]) -> None:
    flow = CouplingFlow(4, 3, n_blocks=4, depth=2, width=8, condition=condition)
    x, c = torch.randn(2, 4), torch.randn(2, 3)
    moved = {k for k, block in enumerate(flow.blocks) if not torch.equal(block(x, c)[0], block(x, c + 1)[0])}
    assert moved == seeing
