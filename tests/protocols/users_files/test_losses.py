"""Users' classes are checked before anything is trained."""

from pathlib import Path

import pytest

from protocols.training.build_method import MethodError, build_method, check_component
from protocols.training.check_method import with_versions
from results.spec.source_names import sources_of
from results.spec.training_spec import Component, FoldSpec, MethodSpec

GOOD = """\
import torch
from torch import nn


class Mine(nn.Module):
    def __init__(self, num_classes, embedding_size, scale=1.0):
        super().__init__()
        self.weights = nn.Parameter(torch.ones(num_classes, embedding_size))
        self.scale = scale

    def forward(self, embeddings, labels, indices_tuple=None):
        return self.scale * (embeddings @ self.weights.T).square().mean()
"""

BAD = """\
import torch
from torch import nn

class NoForward(nn.Module):
    pass

class TwoArguments(nn.Module):
    def forward(self, embeddings, labels):
        return embeddings.sum()

class NoMean(nn.Module):
    def forward(self, embeddings, labels, indices_tuple=None):
        return embeddings.sum(1)

class Detached(nn.Module):
    def forward(self, embeddings, labels, indices_tuple=None):
        return embeddings.sum().detach()

class Broken(nn.Module):
    def forward(self, embeddings, labels, indices_tuple=None):
        return embeddings @ labels

class NoModule:
    pass

class BrokenBackward(nn.Module):
    def forward(self, embeddings, labels, indices_tuple=None):
        roots = embeddings.exp()
        value = roots.square().sum()
        roots.zero_()
        return value
"""


def loss_in(folder: Path, text: str, name: str) -> str:
    (folder / "mine.py").write_text(text)
    return f"{folder / 'mine.py'}:{name}"


def test_a_loss_from_a_file_is_built_with_the_sizes_of_the_training(tmp_path: Path) -> None:
    component = Component(name=loss_in(tmp_path, GOOD, "Mine"), arguments={"scale": 2.0})
    check_component("loss", component)
    method = with_versions(MethodSpec(name="mine", loss=component))
    built = build_method(method, num_classes=7, embedding_size=3)
    assert built.loss.weights.shape == (7, 3)
    assert built.loss.scale == 2.0


def test_the_hash_of_the_source_is_in_the_fingerprint(tmp_path: Path) -> None:
    def fingerprint(text: str) -> str:
        method = with_versions(MethodSpec(name="mine", loss=Component(name=loss_in(tmp_path, text, "Mine"))))
        assert sources_of(method)[0].startswith("mine.py:Mine (sha256 ")
        assert method.versions == {}
        settings = {"dataset": "d", "data_fingerprint": "d", "split": "mlrc", "fold": 0, "images": {}, "training": {}}
        trunk = {"name": "small_conv", "weights": "random"}
        classes = {"train_classes": [(0, 1)], "validation_classes": [(2, 3)]}
        return FoldSpec.model_validate(
            {**settings, **classes, "trunk": trunk, "embedding_size": 8, "method": method, "seed": 0}
        ).fingerprint

    first = fingerprint(GOOD)
    assert fingerprint(GOOD) == first
    assert fingerprint(GOOD.replace("square", "abs")) != first


def test_nested_components_can_come_from_files(tmp_path: Path) -> None:
    text = "from pytorch_metric_learning.distances import LpDistance\nclass Mine(LpDistance): pass\n"
    distance = {"component": {"kind": "distance", "name": loss_in(tmp_path, text, "Mine")}}
    nested = MethodSpec(name="m", loss=Component(name="ContrastiveLoss", arguments={"distance": distance}))
    (source,) = sources_of(with_versions(nested))
    assert source.startswith("mine.py:Mine (sha256 ")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NoForward", r"the class has no forward\(embeddings, labels, indices_tuple\)$"),
        ("TwoArguments", r"forward is called with \(embeddings, labels, indices_tuple\), but too many positional"),
        ("NoMean", r"forward must return one number with a gradient, got a tensor of shape \(32,\)$"),
        ("Detached", r"got a tensor of shape \(\), without a gradient$"),
        ("Broken", r"the loss fails on a random batch: mine\.py, line 21: RuntimeError: "),
        ("BrokenBackward", r"the loss fails on a random batch: mine\.py: RuntimeError: "),
        ("NoModule", r"a loss must be a class derived from torch\.nn\.Module$"),
        ("Missing", r"mine\.py has no 'Missing'; it defines NoForward, "),
    ],
)
def test_bad_classes_are_one_line(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(MethodError, match=message) as caught:
        check_component("loss", Component(name=loss_in(tmp_path, BAD, name)))
    assert "\n" not in str(caught.value)


def test_a_wrong_argument_is_named_with_the_right_ones(tmp_path: Path) -> None:
    component = Component(name=loss_in(tmp_path, GOOD, "Mine"), arguments={"scael": 2.0})
    with pytest.raises(MethodError, match=r"takes no argument 'scael'; it takes embedding_size, num_classes, scale$"):
        check_component("loss", component)


def test_a_file_that_changes_during_a_run_is_refused(tmp_path: Path) -> None:
    method = with_versions(MethodSpec(name="mine", loss=Component(name=loss_in(tmp_path, GOOD, "Mine"))))
    build_method(method, 4, 3)
    loss_in(tmp_path, GOOD.replace("square", "abs"), "Mine")
    with pytest.raises(MethodError, match=r"mine\.py has changed: this run began with sha256 "):
        build_method(method, 4, 3)
