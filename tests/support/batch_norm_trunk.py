"""A small trunk with batch normalisation, since that of `small_conv` has none."""

from dataclasses import replace

import pytest
from torch import nn

from protocols.trunks.trunk_registry import TRUNKS

NAME = "small_conv"
"""The trunk whose place it takes."""


class BatchNormTrunk(nn.Sequential):
    """One convolution, batch normalisation and ReLU: grey images (n, 1, h, w) to features (n, 8, h / 2, w / 2)."""

    features = 8

    def __init__(self) -> None:
        super().__init__(nn.Conv2d(1, self.features, 3, 2, 1), nn.BatchNorm2d(self.features), nn.ReLU())


def use_batch_norm_trunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `small_conv` build this trunk during a test."""
    monkeypatch.setitem(TRUNKS, NAME, replace(TRUNKS[NAME], build=BatchNormTrunk))
