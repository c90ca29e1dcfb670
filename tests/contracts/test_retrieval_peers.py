"""The retrieval of the benchmark: both sides find the same, and the record names what faiss multiplies by."""

import re

import pytest
import torch

from protocols.metrics import neighbours
from protocols.metrics.retrieval import normalized
from tests.benchmarks import retrieval_peers
from tests.benchmarks.retrieval_peers import TOLERANCE


def small():
    labels = torch.arange(400) % 20
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(20, 16, generator=generator)
    return normalized(centres[labels] + torch.randn(400, 16, generator=generator)), labels


def test_the_suite_and_pml_have_the_same_scores():
    ours, theirs = retrieval_peers._score(small), retrieval_peers._score_by_pml(small)
    assert ours == pytest.approx(theirs, abs=TOLERANCE)
    assert 0.1 < ours[2] < 0.9


def test_the_first_queries_are_held_against_the_definition(monkeypatch):
    assert retrieval_peers._difference_from_definition(small) < 1e-7
    nearest_in_parts = neighbours.nearest_in_parts

    def farthest_first(*args, **options):
        for rows, found in nearest_in_parts(*args, **options):
            yield rows, found.flip(1)

    monkeypatch.setattr(neighbours, "nearest_in_parts", farthest_first)
    with pytest.raises(AssertionError, match="differs from its definition"):
        retrieval_peers._difference_from_definition(small)


def test_the_record_names_the_kernels_of_faiss(monkeypatch):
    of_faiss = {"user_api": "blas", "internal_api": "openblas", "version": "0.3.15", "architecture": "Haswell"}
    libraries = [
        {"filepath": "/site/numpy.libs/libopenblas.so", "user_api": "blas"},
        {"filepath": "/site/faiss_cpu.libs/libgomp.so", "user_api": "openmp"},
        {"filepath": "/site/faiss_cpu.libs/libopenblas.so", **of_faiss},
    ]
    monkeypatch.setattr(retrieval_peers, "threadpool_info", lambda: libraries)
    words = r"faiss [\d.]+ multiplies by openblas 0\.3\.15 with kernels for Haswell"
    assert re.fullmatch(words, retrieval_peers._faiss_products())
    monkeypatch.setattr(retrieval_peers, "threadpool_info", lambda: libraries[:2])
    assert re.fullmatch(r"faiss [\d.]+ does not show by what it multiplies", retrieval_peers._faiss_products())
