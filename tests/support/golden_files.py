"""Reads the reference values in tests/golden: inputs, losses and gradients computed with the methods' original code."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

FOLDER = Path(__file__).parents[1] / "golden"


@dataclass(frozen=True)
class Case:
    """One reference file with its sidecar."""

    name: str
    sidecar: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def params(self) -> dict[str, Any]:
        return dict(self.sidecar.get("params") or self.sidecar["hyperparameters"])

    @property
    def dtype(self) -> torch.dtype:
        name = self.sidecar.get("dtype") or self.sidecar["input_dtype"]
        return {"float32": torch.float32, "float64": torch.float64}[name]

    def tensor(self, key: str, step: int | None = None) -> Tensor:
        return torch.from_numpy(np.array(self.arrays[key] if step is None else self.arrays[key][step]))

    def leaf(self, key: str) -> Tensor:
        return self.tensor(key).clone().requires_grad_()

    def load(self, parameter: nn.Parameter, key: str) -> None:
        assert parameter.shape == self.arrays[key].shape
        with torch.no_grad():
            parameter.copy_(self.tensor(key))

    def check(self, actual: Tensor | None, expected: np.ndarray, what: str = "", scaled: bool = False) -> None:
        """Compare at the sidecar's tolerance; `scaled` multiplies `atol` by the largest expected entry (gradients)."""
        assert actual is not None, f"{self.name}: no {what}"
        tolerance = self.sidecar["tolerance"]
        rtol, atol = tolerance["rtol" if "rtol" in tolerance else "loss_rtol"], tolerance["atol"]
        largest = max(np.abs(expected).max(), np.finfo(float).tiny)
        if scaled and "grad_rel_to_max" in tolerance:
            rtol, atol = 0.0, tolerance["grad_rel_to_max"] * largest + atol
        elif scaled:
            atol = atol * largest
        np.testing.assert_allclose(
            actual.detach().numpy(), expected, rtol=rtol, atol=atol, err_msg=f"{self.name} {what}"
        )

    def check_gradient(self, actual: Tensor | None, key: str) -> None:
        self.check(actual, self.arrays[key], key, scaled=True)

    def check_loss(self, loss: nn.Module, name: str = "", factor: float = 1.0, **parameters: Tensor) -> None:
        """Compare a loss of the batch, and its gradients by embeddings and parameters, with the values of a name."""
        embeddings = self.leaf("embeddings")
        value = factor * loss(embeddings, self.tensor("labels"))
        value.backward()
        self.check(value, self.arrays[f"loss{name}"], f"loss{name}")
        for key, leaf in {"embeddings": embeddings, **parameters}.items():
            self.check_gradient(leaf.grad, f"grad_{key}{name}")

    def agree(self, key: str, actual: Tensor | None, tolerance: str | None, step: int | None = None) -> None:
        """max|actual - expected| <= tolerance * max|expected| + atol, over the whole array; equal without a name."""
        assert actual is not None
        expected, atol = self.tensor(key, step).double(), self.sidecar["tolerance"]["atol"]
        assert actual.shape == expected.shape, key
        allowed = (
            0.0 if tolerance is None else self.sidecar["tolerance"][tolerance] * expected.abs().max().item() + atol
        )
        error = (actual.detach().double() - expected).abs().max().item()
        assert error <= allowed, f"{key} at step {step}: off by {error:.3g}, allowed {allowed:.3g}"


def golden(prefix: str) -> list[Case]:
    """All cases whose file name is `prefix` and a number."""
    paths = sorted(path for path in FOLDER.glob(f"{prefix}_*.json") if path.stem[len(prefix) + 1 :].isdigit())
    assert paths, f"no reference files {prefix}_NN in {FOLDER}"
    cases = []
    for path in paths:
        with np.load(path.with_suffix(".npz"), allow_pickle=False) as archive:
            cases.append(Case(path.stem, json.loads(path.read_text()), dict(archive)))
    return cases


def case_name(case: Case) -> str:
    return case.name
