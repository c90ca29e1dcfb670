"""Embeddings straight from a model in training are scored as without gradient, by every function that takes some."""

import inspect
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from protocols.metrics import clustering, covering, metric_registry, neighbours, retrieval, structure

LABELS = torch.arange(24) // 4

# What the functions take beside embeddings and labels.
OTHERS: dict[str, Any] = {
    "k": 2,
    "exclude_self": True,
    "depths": torch.full((24,), 3),
    "is_query": np.arange(24) % 2 == 0,
    "names": ("recall@2", "map@1000", *metric_registry._OF_A_SET),
    "recall_at": (1, 2),
    "map_at": (5,),
}
NO_SCORES = {"check_metric_names", "checked", "normalized", "sides", "smallest"}
"""They score nothing: names, checks, normalisations and parts of the search."""


def public(module: ModuleType) -> dict[str, Callable[..., Any]]:
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
        and name not in NO_SCORES
    }


FUNCTIONS = {
    name: function
    for module in (clustering, covering, metric_registry, neighbours, retrieval, structure)
    for name, function in public(module).items()
}


def result(function: Callable[..., Any], embeddings: Tensor) -> Any:
    tensors = {"embeddings": embeddings, "queries": embeddings, "labels": LABELS, "query_labels": LABELS}
    tensors |= {"references": embeddings, "reference_labels": LABELS}
    names = inspect.signature(function).parameters
    value = function(**{name: value for name, value in {**tensors, **OTHERS}.items() if name in names})
    if inspect.isgenerator(value):
        return [part for pair in value for part in pair]
    return [vars(value)[name] for name in vars(value)] if hasattr(value, "__dataclass_fields__") else value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gradient_changes_nothing(name: str) -> None:
    assert len(FUNCTIONS) >= 11
    plain = retrieval.normalized(torch.randn(24, 8, generator=torch.Generator().manual_seed(0)))
    expected = result(FUNCTIONS[name], plain)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scored = result(FUNCTIONS[name], plain.clone().requires_grad_() * 1)
    torch.testing.assert_close(scored, expected, rtol=0, atol=0)


def test_a_set_is_compared_with_itself_when_no_references_are_given() -> None:
    model = torch.nn.Linear(4, 8)
    scores = retrieval.retrieval_scores(model(torch.randn(24, 4)), LABELS)
    assert scores.n_queries == 24
    assert 0 <= scores.map_at_r <= 1
