"""Losses in DistributedDataParallel: two processes with gloo."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from pytorch_metric_learning.utils.distributed import DistributedLossWrapper
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from tests.support.loss_cases import CASES, B, D, batch, made

pytestmark = pytest.mark.long


def _gathered(rank: int, folder: str) -> None:
    """PML's wrapper compares all processes' embeddings in each of them."""
    distributed.init_process_group("gloo", init_method=f"file://{folder}/gathered", rank=rank, world_size=2)
    gradients: dict[str, list[Tensor]] = {}
    for case in CASES:
        loss, model = made(case), nn.Linear(D, D)
        with torch.no_grad():
            model.weight.copy_(torch.eye(D))
            model.bias.zero_()
        network, wrapper = DistributedDataParallel(model), DistributedLossWrapper(loss)
        inputs, labels = batch()
        half = slice(rank * B // 2, (rank + 1) * B // 2)
        loss.zero_grad()
        wrapper(network(inputs[half]), labels[half]).backward()
        gradients[case.name] = [p.grad for p in model.parameters() if p.grad is not None]
    torch.save(gradients, f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def of_both(function: Any, folder: Path) -> list[Any]:
    torch.multiprocessing.spawn(function, (str(folder),), nprocs=2)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


def test_gathered_batches_give_the_gradient_of_one_process(tmp_path: Path) -> None:
    first, second = of_both(_gathered, tmp_path)
    for case in CASES:
        loss, model = made(case), nn.Linear(D, D)
        with torch.no_grad():
            model.weight.copy_(torch.eye(D))
            model.bias.zero_()
        inputs, labels = batch()
        copy.deepcopy(loss)(model(inputs), labels).backward()
        for name_gradient in (first, second):
            for gradient, parameter in zip(name_gradient[case.name], model.parameters(), strict=True):
                torch.testing.assert_close(
                    gradient, parameter.grad, rtol=1e-3, atol=1e-5, msg=lambda text, n=case.name: f"{n}: {text}"
                )
