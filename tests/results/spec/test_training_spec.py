"""What the settings of a training accept, components among the arguments of others, and names of users' classes."""

import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from results.spec.component import Component, SourceName, nested_components, relative_name, renamed_components
from results.spec.conditions import ImageSettings, OptimizerSettings, TrainingSettings
from results.spec.method import Method, sources_of
from results.spec.trunk_spec import EmbedderSpec, InputFormat, TrunkSpec
from tests.support.sample_records import some_spec

TRUNK = {"name": "bn_inception", "weights": "imagenet"}
FORMAT = {"channels": "BGR", "mean": (1, 2, 3), "std": (1, 1, 1)}


def refused(model, **values):
    with pytest.raises(ValidationError) as error:
        model.model_validate(values)
    (first,) = error.value.errors()
    return first["msg"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mean": (1, 2)}, "mean and std need one value for each channel of BGR"),
        ({"std": (1, 1, 1, 1)}, "mean and std need one value for each channel of BGR"),
        ({"channels": "grey"}, "mean and std need one value for each channel of grey"),
        ({"channels": "RBG"}, "Input should be 'RGB', 'BGR' or 'grey'"),
        ({"std": (1, 0, 1)}, "greater than 0"),
        ({"std": (1, math.inf, 1)}, "finite number"),
        ({"mean": (1, math.nan, 1)}, "finite number"),
        ({"scale": -255}, "greater than 0"),
    ],
)
def test_an_input_format_that_cannot_be_computed_is_refused(changes, said):
    assert said in refused(InputFormat, **{**FORMAT, **changes})


@pytest.mark.parametrize("batch_norm", ["statistics_frozen", "frozen"])
def test_a_momentum_without_effect_is_refused(batch_norm):
    said = refused(TrunkSpec, **TRUNK, batch_norm=batch_norm, batch_norm_momentum=0.9)
    assert "batch_norm_momentum needs batch_norm: training" in said


def test_counts_of_a_method_begin_at_zero():
    for part, count in (("batch", "samples_per_class"), ("warmup", "passes"), ("warmup", "steps")):
        method = Method(name="some", loss=None, **{part: {count: 0}})
        assert getattr(getattr(method, part), count) == 0
        assert "greater than or equal to 0" in refused(Method, name="some", loss=None, **{part: {count: -1}})


def test_a_method_is_stored_under_the_names_of_its_fingerprint_and_read_from_either():
    """Other names, or another order, would give every training a new name or change every record."""
    nested = {
        "name": "m",
        "loss": {"name": "ContrastiveLoss", "arguments": {"neg_margin": 0.5}},
        "batch": {"samples_per_class": 2, "classes": "once"},
        "loss_optimizer": {"lr": 0.1, "weight_decay": 0.2},
        "optimizer": {"lr": 0.3},
        "warmup": {"passes": 1, "steps": 7},
    }
    stored = {
        "name": "m",
        "loss": nested["loss"],
        "miner": None,
        "embedding_regularizer": None,
        "samples_per_class": 2,
        "loss_lr": 0.1,
        "loss_weight_decay": 0.2,
        "warmup_passes": 1,
        "warmup_steps": 7,
        "versions": {},
        "embedder": None,
        "lr": 0.3,
        "whole_passes": True,
    }
    method = Method.model_validate(nested)
    assert method.model_dump_json() == json.dumps(stored, separators=(",", ":"))
    assert method.identity() == stored
    assert Method.model_validate(stored) == method


def test_the_defaults_are_the_protocols():
    defaults = TrainingSettings()
    assert (defaults.batch_size, defaults.iterations_per_epoch, defaults.max_epochs) == (32, 100, 1000)
    assert (defaults.validate_every, defaults.patience) == (2, 9)
    assert defaults.optimizer == OptimizerSettings(
        name="RMSprop", lr=1e-6, weight_decay=1e-4, arguments={"momentum": 0.9}
    )
    images = ImageSettings()
    assert (images.resize, images.crop, images.flip) == (256, 227, True)
    assert (images.area, images.ratio) == ((0.16, 1.0), (3 / 4, 4 / 3))
    assert Method(name="some", loss=None).batch.samples_per_class == 4


@pytest.mark.parametrize(
    ("iterations", "images", "steps"), [(100, 24, 100), (None, 24, 3), (None, 31, 3), (None, 32, 4), (None, 5, 1)]
)
def test_an_epoch_is_its_number_of_iterations_or_a_pass_in_whole_batches(iterations, images, steps):
    assert TrainingSettings(batch_size=8, iterations_per_epoch=iterations).steps_per_epoch(images) == steps


# Components

ARGUMENTS = {
    "margin": 0.1,
    "loss": {
        "component": {
            "name": "Wrapper",
            "arguments": {"distance": {"component": {"kind": "distance", "name": "LpDistance"}}, "scale": 2},
        }
    },
    "weights": {"a": 1},
    "miners": [1, {"component": {"name": "Miner"}}],
}


def test_components_are_found_at_every_depth():
    assert [(key, nested["name"]) for key, nested in nested_components(ARGUMENTS)] == [
        ("loss", "Wrapper"),
        ("distance", "LpDistance"),
        ("miners", "Miner"),
    ]
    assert list(nested_components({})) == []


def test_components_are_renamed_at_every_depth_in_a_copy():
    renamed = renamed_components(ARGUMENTS, str.upper)
    assert [nested["name"] for _, nested in nested_components(renamed)] == ["WRAPPER", "LPDISTANCE", "MINER"]
    assert [nested["name"] for _, nested in nested_components(ARGUMENTS)] == ["Wrapper", "LpDistance", "Miner"]
    back = {"WRAPPER": "Wrapper", "LPDISTANCE": "LpDistance", "MINER": "Miner"}
    assert Component(name="WRAPPER", arguments=renamed).renamed(back.__getitem__).arguments == ARGUMENTS


@pytest.mark.parametrize(
    ("embedder", "has_embedder", "bias"),
    [
        (None, False, False),
        ("principal_components", True, True),
        ("test_components", False, False),
        (EmbedderSpec(init="lda"), True, True),
    ],
)
def test_what_a_method_without_a_loss_makes_of_the_features(embedder, has_embedder, bias):
    """A method with a loss has the experiment's embedder."""
    learned = some_spec().with_conditions(embedding_size=4, embedder_bias=False, embedder=EmbedderSpec(hidden=(8,)))
    spec = learned.changed(method=Method(name="some", loss=None, embedder=embedder))
    assert (spec.has_embedder, spec.embedder_bias) == (has_embedder, bias)
    assert (spec.embedder.hidden, learned.embedder.hidden) == ((), (8,))
    assert (learned.has_embedder, learned.embedder_bias) == (True, False)


@pytest.mark.parametrize(
    ("component", "said"),
    [
        ({}, "argument 'loss' needs the name of a class"),
        ({"name": 3}, "argument 'loss' needs the name of a class"),
        ("LpDistance", "argument 'loss' needs the name of a class"),
        ({"name": "A", "argument": {}}, "argument 'loss' takes kind, name and arguments, not 'argument'"),
        ({"name": "A", "kind": "trunk"}, "argument 'loss' has kind 'trunk'; use loss, miner"),
        ({"name": "A", "arguments": [1]}, "the arguments of the component in argument 'loss' must be keys and values"),
        ({"name": "A", "arguments": {"loss": {"component": {}}}}, "argument 'loss' needs the name of a class"),
    ],
)
def test_a_wrong_component_is_named(component, said):
    with pytest.raises(ValueError, match=said):
        list(nested_components({"loss": {"component": component}}))


DIGEST = "0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("./my_losses.py:Mine", SourceName("./my_losses.py", "Mine")),
        ("my_package.module:Mine", SourceName("my_package.module", "Mine")),
        (f"my_losses.py:Mine (sha256 {DIGEST})", SourceName("my_losses.py", "Mine", DIGEST)),
        ("C:\\code\\my_losses.py:Mine", SourceName("C:\\code\\my_losses.py", "Mine")),
    ],
)
def test_names_are_read_and_written(text: str, name: SourceName) -> None:
    assert SourceName.parse(text) == name
    assert str(name) == text


@pytest.mark.parametrize("plain", ["ContrastiveLoss", "recall@2", "", "a:", ":A", "a:b c", "x.py:1a"])
def test_plain_names_are_none_of_them(plain: str) -> None:
    assert SourceName.parse(plain) is None


def test_paths_are_taken_relative_to_a_folder() -> None:
    assert relative_name("../my.py:A", Path("cards")) == "cards/../my.py:A"
    assert relative_name("/code/my.py:A", Path("cards")) == "/code/my.py:A"
    assert relative_name("~/my.py:A", Path("cards")) == f"{Path.home()}/my.py:A"
    assert relative_name("package.module:A", Path("cards")) == "package.module:A"
    assert relative_name("ContrastiveLoss", Path("cards")) == "ContrastiveLoss"


def test_the_sources_of_a_method_include_nested_components() -> None:
    inner, other = f"my.py:Inner (sha256 {DIGEST})", f"my.py:Miner (sha256 {DIGEST})"
    arguments = {"base_loss": {"component": {"name": "XBMLoss", "arguments": {"base": {"component": {"name": inner}}}}}}
    method = Method(name="m", loss=Component(name="XBMLoss", arguments=arguments), miner=Component(name=other))
    assert sources_of(method) == (inner, other)
    assert sources_of(Method(name="untrained", loss=None)) == ()
