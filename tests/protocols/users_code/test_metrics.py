"""Metrics from users' files."""

import pytest
import torch

from protocols.metrics.metric_registry import check_metric_names, measure
from protocols.users_code.sources import hashed_name

pytestmark = pytest.mark.usefixtures("forked_processes")

TEXT = """\
import torch

def mean_norm(embeddings, labels):
    return embeddings.norm(dim=1).mean()

def classes(embeddings, labels):
    embeddings.zero_()
    return len(labels.unique())

def text(embeddings, labels):
    return "high"

def vector(embeddings, labels):
    return embeddings

def endless(embeddings, labels):
    return float("nan")

def broken(embeddings, labels):
    return embeddings.no_such_method()

def three(embeddings, labels, more):
    return 1.0

number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "metrics.py"
    path.write_text(TEXT)
    return path


def test_they_are_measured_beside_the_others_under_a_name_with_the_hash(file):
    names = ("uniformity", hashed_name(f"{file}:classes"), hashed_name(f"{file}:mean_norm"))
    check_metric_names(names)
    embeddings = torch.nn.functional.normalize(torch.randn(12, 3))
    measured = measure(names, embeddings, torch.arange(12) % 4, None)
    assert tuple(measured) == names
    assert names[1].startswith("metrics.py:classes (sha256 ")
    assert measured[names[1]] == 4.0
    assert measured[names[2]] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("text", "must return a number such as a float, got str"),
        ("vector", "must return a number such as a float, got Tensor"),
        ("broken", r"metric broken fails: metrics\.py, line 20: AttributeError"),
        ("three", r"metric three fails: metrics\.py: TypeError: three\(\) missing 1 required positional argument"),
        ("number", "a metric must be a function of"),
        ("missing", r"metrics\.py has no 'missing'; it defines mean_norm, classes"),
    ],
)
def test_bad_functions_are_one_line_before_the_run(file, name, message):
    with pytest.raises(ValueError, match=message) as caught:
        check_metric_names((f"{file}:{name}",))
    assert "\n" not in str(caught.value)


def test_a_value_that_is_not_finite_is_refused(file):
    name = hashed_name(f"{file}:endless")
    check_metric_names((name,))
    with pytest.raises(ValueError, match="returned nan; a metric must return a finite number"):
        measure((name,), torch.eye(4), torch.arange(4) % 2, None)
