"""Reading the golden files of Proxy-Anchor, Proxy-ISA and ProxyGML: what the authors' own code made of given inputs."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

FOLDER = Path(__file__).parent.parent / "golden"


def names(family: str) -> list[str]:
    """The cases of a family, `proxy_isa` for example; a family without files is a mistake of the test."""
    found = sorted(path.stem for path in FOLDER.glob(f"{family}_[0-9]*.npz"))
    assert found, f"no golden files for {family}"
    return found


@dataclass(frozen=True)
class Golden:
    """One case: sidecar, arrays, and comparison at the sidecar's tolerance."""

    sidecar: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def load(cls, name: str) -> "Golden":
        with np.load(FOLDER / f"{name}.npz") as arrays:
            return cls(json.loads((FOLDER / f"{name}.json").read_text()), dict(arrays))

    @property
    def hyperparameters(self) -> dict[str, Any]:
        return dict(self.sidecar["hyperparameters"])

    @property
    def dtype(self) -> torch.dtype:
        return getattr(torch, self.sidecar["input_dtype"])

    def tensor(self, key: str, step: int | None = None) -> Tensor:
        array = self.arrays[key] if step is None else self.arrays[key][step]
        return torch.from_numpy(np.array(array))

    def check(self, key: str, actual: Tensor, tolerance: str, step: int | None = None) -> None:
        """max|actual - expected| <= tolerance * max|expected| + atol, over the whole array."""
        expected = self.tensor(key, step).double()
        assert actual.shape == expected.shape, key
        error = (actual.detach().double() - expected).abs().max().item()
        allowed = self.sidecar["tolerance"][tolerance] * expected.abs().max().item() + self.sidecar["tolerance"]["atol"]
        assert error <= allowed, f"{key} at step {step}: off by {error:.3g}, allowed {allowed:.3g}"

    def check_exact(self, key: str, actual: Tensor, step: int | None = None) -> None:
        torch.testing.assert_close(
            actual.detach().double(), self.tensor(key, step).double(), rtol=0, atol=0, msg=lambda m: f"{key}: {m}"
        )
