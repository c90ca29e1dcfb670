"""The retrieval of the benchmark: both sides find the same."""

import pytest
import torch

from protocols.metrics.retrieval import normalized
from tests.benchmarks.retrieval_peers import TOLERANCE, scores, scores_by_pml


def small():
    labels = torch.arange(400) % 20
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(20, 16, generator=generator)
    return normalized(centres[labels] + torch.randn(400, 16, generator=generator)), labels


def test_the_suite_and_pml_have_the_same_scores():
    ours = scores(small)
    assert ours == pytest.approx(scores_by_pml(small), abs=TOLERANCE)
    assert 0.1 < ours[2] < 0.9
