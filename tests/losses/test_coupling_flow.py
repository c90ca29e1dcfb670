"""The conditional coupling flow: invertible, with the log-determinant it says (its reference values: test_nir)."""

from typing import Any

import pytest
import torch

from losses import CouplingFlow


@pytest.mark.parametrize("condition", ["dense", "start", "mid", "end"])
@pytest.mark.parametrize("dim", [2, 5, 8])
def test_inverse_undoes_the_flow(dim: int, condition: Any) -> None:
    torch.manual_seed(dim)
    flow = CouplingFlow(dim, 3, n_blocks=4, depth=3, width=16, condition=condition).double()
    x, c = torch.randn(6, dim, dtype=torch.float64), torch.randn(6, 3, dtype=torch.float64)
    z, log_det = flow(x, c)
    back, log_det_back = flow.inverse(z, c)
    torch.testing.assert_close(back, x)
    torch.testing.assert_close(log_det_back, -log_det)


def test_log_determinant_is_that_of_the_jacobian() -> None:
    torch.manual_seed(0)
    flow = CouplingFlow(5, 3, n_blocks=3, depth=2, width=16).double()
    x, c = torch.randn(5, dtype=torch.float64), torch.randn(1, 3, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda v: flow(v[None], c)[0][0], x)
    torch.testing.assert_close(flow(x[None], c)[1][0], jacobian.det().abs().log())


@pytest.mark.parametrize(("condition", "seeing"), [("dense", {0, 1, 2, 3}), ("start", {0}), ("mid", {2}), ("end", {3})])
def test_only_the_chosen_blocks_see_the_condition(condition: Any, seeing: set[int]) -> None:
    flow = CouplingFlow(4, 3, n_blocks=4, depth=2, width=8, condition=condition)
    x, c = torch.randn(2, 4), torch.randn(2, 3)
    moved = {k for k, block in enumerate(flow.blocks) if not torch.equal(block(x, c)[0], block(x, c + 1)[0])}
    assert moved == seeing
