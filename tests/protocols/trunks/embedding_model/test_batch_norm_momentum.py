"""Running statistics of batch normalisation after two batches, against the formula."""

import numpy as np
import pytest
import torch
from torch import Tensor

from protocols.trunks.embedding_model import EmbeddingModel
from results.spec.trunk_spec import TrunkSpec
from tests.support.batch_norm_trunk import NAME, use_batch_norm_trunk


@pytest.mark.parametrize(("chosen", "momentum"), [(0.9, 0.9), (0.25, 0.25), (1.0, 1.0), (None, 0.1)])
def test_running_statistics_after_two_batches(
    monkeypatch: pytest.MonkeyPatch, chosen: float | None, momentum: float
) -> None:
    """new = (1 - momentum) * old + momentum * batch, with the unbiased variance; torch's own momentum is 0.1."""
    use_batch_norm_trunk(monkeypatch)
    torch.manual_seed(0)
    spec = TrunkSpec(name=NAME, weights="random", batch_norm="training", batch_norm_momentum=chosen)
    model = EmbeddingModel(spec, 4).train()
    inputs: list[Tensor] = []
    norm = model.trunk.get_submodule("1")
    norm.register_forward_pre_hook(lambda _, values: inputs.append(values[0].detach()))
    for _ in range(2):
        model(torch.randint(0, 256, (6, 1, 8, 8), dtype=torch.uint8))
    mean, variance = np.zeros(8), np.ones(8)
    for batch in inputs:
        values = batch.double().permute(1, 0, 2, 3).reshape(8, -1).numpy()
        mean = (1 - momentum) * mean + momentum * values.mean(axis=1)
        variance = (1 - momentum) * variance + momentum * values.var(axis=1, ddof=1)
    np.testing.assert_allclose(norm.get_buffer("running_mean").numpy(), mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(norm.get_buffer("running_var").numpy(), variance, rtol=1e-4)
