"""Users' losses are built and tried for one step before anything is trained; honest errors are one line."""

from pathlib import Path

import numpy as np
import pytest

from protocols.training.build_method import MethodError, RefusedError, build_method
from protocols.training.check_method import check_method, with_versions
from protocols.training.first_step import try_first_step
from results.spec.component import Component
from results.spec.conditions import TrainingSettings
from results.spec.method import Method, sources_of
from tests.support.toys import pattern_dataset, settings, toy_fold

pytestmark = pytest.mark.usefixtures("forked_processes")

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

class NoModule:
    pass

class Loss(nn.Module):
    def forward(self, embeddings, labels, indices_tuple=None):
        return self.of(embeddings, labels)

class NoMean(Loss):
    def of(self, embeddings, labels):
        return embeddings.sum(1)

class Detached(Loss):
    def of(self, embeddings, labels):
        return embeddings.sum().detach()

class Broken(Loss):
    def of(self, embeddings, labels):
        return embeddings @ labels

class OnlyProxies(Loss):
    def __init__(self):
        super().__init__()
        self.proxies = nn.Parameter(torch.ones(4))

    def of(self, embeddings, labels):
        return (embeddings.detach() @ self.proxies).square().mean()

class ZeroGradient(Loss):
    def of(self, embeddings, labels):
        return (embeddings * 0).sum()

class Late(Loss):
    def of(self, embeddings, labels):
        if not hasattr(self, "proxies"):
            self.proxies = nn.Parameter(torch.ones(embeddings.shape[1]))
        return (embeddings @ self.proxies).square().mean()

class InAList(Loss):
    def __init__(self):
        super().__init__()
        self.proxies = [nn.Parameter(torch.ones(4))]

    def of(self, embeddings, labels):
        return (embeddings @ self.proxies[0]).square().mean()

class Unused(Loss):
    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.ones(1))

    def of(self, embeddings, labels):
        return embeddings.square().mean()

class Pairs(Loss):
    def of(self, embeddings, labels):
        same = torch.triu(labels[:, None] == labels, diagonal=1)
        return torch.cdist(embeddings, embeddings)[same].mean()

class FloatWithoutPairs(Pairs):
    def of(self, embeddings, labels):
        return super().of(embeddings, labels) if len(labels.unique()) < len(labels) else 0.0

class Counts(Loss):
    def __init__(self, counts):
        super().__init__()
        self.counts = torch.tensor(counts)

    def of(self, embeddings, labels):
        return (embeddings.mean(1) * self.counts[labels]).square().mean()
"""
TARGETS = np.repeat(np.arange(8), 4)


def method(folder, text, name="Mine", **changes):
    (folder / "mine.py").write_text(text)
    loss = {"name": f"{folder / 'mine.py'}:{name}", "arguments": changes.pop("arguments", {})}
    return Method.model_validate({"name": "mine", "loss": loss, **changes})


def within_budget(spec):
    return try_first_step(spec, TrainingSettings(batch_size=8), 4, TARGETS)


def test_a_loss_from_a_file_is_built_with_the_sizes_of_the_training(tmp_path):
    spec = with_versions(method(tmp_path, GOOD, arguments={"scale": 2.0}))
    (source,) = sources_of(spec)
    assert source.startswith("mine.py:Mine (sha256 ")
    assert spec.versions == {}
    loss = build_method(spec, [4] * 7, 3, 8).loss
    assert (loss.weights.shape, loss.scale) == ((7, 3), 2.0)
    assert within_budget(spec) == ()
    (tmp_path / "mine.py").write_text(GOOD.replace("square", "abs"))
    with pytest.raises(MethodError, match=r"mine\.py, or a module that it imports, has changed"):
        build_method(spec, [4] * 7, 3, 8)


def test_nested_components_can_come_from_files(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from pytorch_metric_learning.distances import LpDistance\nclass Mine(LpDistance): pass\n"
    )
    distance = {"component": {"kind": "distance", "name": f"{tmp_path}/mine.py:Mine"}}
    nested = Method(name="m", loss=Component(name="ContrastiveLoss", arguments={"distance": distance}))
    (source,) = sources_of(with_versions(nested))
    assert source.startswith("mine.py:Mine (sha256 ")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NoForward", r"the class has no forward\(embeddings, labels, indices_tuple\)$"),
        ("TwoArguments", r"forward is called with \(embeddings, labels, indices_tuple\), but too many positional"),
        ("NoModule", r"a loss must be a class derived from torch\.nn\.Module$"),
        ("Missing", r"mine\.py has no 'Missing'; it defines NoForward, "),
        ("NoMean", r"forward must return one number with a gradient, got a tensor of shape \(8,\); for a batch"),
        ("Detached", r"got a tensor of shape \(\), without a gradient; .*embeddings\.sum\(\) \* 0$"),
        ("Broken", r"the loss fails on a batch of random embeddings: mine\.py, line 28: RuntimeError: "),
        ("OnlyProxies", r"gives the embeddings no gradient, .* compute it from `embeddings` without detach"),
        ("ZeroGradient", r"gives the embeddings no gradient, so the network would learn nothing"),
        ("Late", r"its proxies was no parameter when the optimizer was built, .* nn\.Parameter in __init__"),
        ("InAList", r"its proxies was no parameter .* several of them an nn\.ParameterList$"),
    ],
)
def test_what_cannot_be_trained_is_one_line(tmp_path, name, message):
    with pytest.raises(MethodError, match=message) as caught:
        within_budget(method(tmp_path, BAD, name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "got"),
    [("FloatWithoutPairs", "got float; .*"), ("Pairs", "on 8 random embeddings of 8 classes the loss is nan; .*")],
)
def test_a_batch_without_pairs_is_tried_where_images_are_drawn_at_random(tmp_path, name, got):
    assert within_budget(method(tmp_path, BAD, name)) == ()
    with pytest.raises(RefusedError, match=rf"{got}return embeddings\.sum\(\) \* 0"):
        within_budget(method(tmp_path, BAD, name, samples_per_class=0, whole_passes=True))


def test_a_parameter_without_a_gradient_is_told(tmp_path):
    (note,) = within_budget(method(tmp_path, BAD, "Unused"))
    assert "its parameter unused gets no gradient in a first step; if it is no part of the loss, make it a buff" in note


def test_rates_of_the_loss_must_be_of_use(tmp_path):
    with pytest.raises(RefusedError, match="has no parameters of its own to train; leave out loss_optimizer"):
        within_budget(method(tmp_path, BAD, "Pairs", loss_lr=0.1))
    for rate, value in (("lr", -0.1), ("weight_decay", float("nan"))):
        with pytest.raises(RefusedError, match=f"a {rate} of {value} is no rate; give 0 or more"):
            within_budget(method(tmp_path, GOOD, **{f"loss_{rate}": value}))


def test_the_class_counts_of_the_training_images_are_a_placeholder(tmp_path):
    spec = method(tmp_path, BAD, "Counts", arguments={"counts": "$class_counts"})
    assert within_budget(spec) == ()
    assert build_method(spec, [5, 7], 3, 8).loss.counts.tolist() == [5, 7]
    with pytest.raises(MethodError, match=r"there is no placeholder \$class_count; known are \$num_classes, "):
        within_budget(method(tmp_path, BAD, "Counts", arguments={"counts": [{"of": "$class_count"}]}))


def test_a_wrong_argument_is_named_with_the_right_ones(tmp_path):
    with pytest.raises(MethodError, match=r"takes no argument 'scael'; it takes embedding_size, num_classes, scale$"):
        check_method(method(tmp_path, GOOD, arguments={"scael": 2.0}))


def test_a_batch_above_the_limit_is_not_tried(tmp_path):
    large = TrainingSettings(batch_size=1024)
    assert try_first_step(method(tmp_path, BAD, "Detached"), large, 4, TARGETS) == ()


def test_a_loss_that_changes_the_folder_breaks_no_relative_path(tmp_path):
    text = GOOD.replace("import torch\n", "import os\nimport torch\nos.chdir('/')\n", 1)
    before = Path.cwd()
    assert within_budget(method(tmp_path, text.replace("return self.scale", "os.chdir('/'); return self.scale"))) == ()
    assert Path.cwd() == before


def test_draws_from_the_generators_of_python_and_numpy_come_from_the_seed(tmp_path):
    from protocols.training.train_fold import train_fold

    text = GOOD.replace("import torch\n", "import random\nimport numpy\nimport torch\n")
    text = text.replace("return self.scale", "return (random.random() + numpy.random.rand()) * self.scale")
    spec, data = toy_fold(pattern_dataset(tmp_path), method(tmp_path, text), settings(batch_size=8))
    first, second = (train_fold(spec, data).result.curve for _ in range(2))
    assert first == second
