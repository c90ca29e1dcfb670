"""Greedy k-center against the reference values."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from losses import greedy_k_center
from tests.support.golden_files import Case, case_name, golden


@pytest.mark.parametrize("case", golden("ccp_kcenter"), ids=case_name)
def test_greedy_k_center(case: Case) -> None:
    params, pool = case.params, case.tensor("pool")
    k = params["proxies_per_class"]
    initial = case.tensor("initial")
    if params["normalize"]:
        pool, initial = functional.normalize(pool, dim=2), functional.normalize(initial, dim=2)
    picks, distances = greedy_k_center(pool, initial, k)
    np.testing.assert_array_equal(picks, case.arrays["selected_index"])
    case.check(distances, case.arrays["selected_sqdist"], "selected_sqdist")
    pool = case.tensor("pool")
    chosen = pool[torch.arange(len(pool))[:, None], picks]
    radius = torch.cdist(pool, chosen).amin(dim=2).amax(dim=1)
    np.testing.assert_allclose(radius, case.arrays["covering_radius"], rtol=1e-9, atol=1e-7)


def test_k_center_picks_duplicates_last_and_lowest_first() -> None:
    pool = torch.tensor([[[1.0], [1.0], [3.0], [3.0]]])
    picks, distances = greedy_k_center(pool, torch.zeros(1, 1, 1), 4)
    assert picks.tolist() == [[2, 0, 0, 0]]  # what is left has distance 0 to the chosen points: the lowest again
    assert distances.tolist() == [[9.0, 1.0, 0.0, 0.0]]
    with pytest.raises(ValueError, match="cannot choose 5 of 4"):
        greedy_k_center(pool, torch.zeros(1, 1, 1), 5)
