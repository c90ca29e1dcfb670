"""What the settings of a training accept, and which of them are part of its fingerprint."""

import math

import pytest
from pydantic import ValidationError

from results.spec.trunk_spec import InputFormat, TrunkSpec
from results.values import fingerprint_of

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
        ({"mean": (1, 2)}, "mean and std of BGR need 3 value(s) each"),
        ({"std": (1, 1, 1, 1)}, "mean and std of BGR need 3 value(s) each"),
        ({"channels": "grey"}, "mean and std of grey need 1 value(s) each"),
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


@pytest.mark.parametrize("momentum", [0, -0.1, 1.1])
def test_a_momentum_outside_of_0_to_1_is_refused(momentum):
    assert "Input should be" in refused(TrunkSpec, **TRUNK, batch_norm="training", batch_norm_momentum=momentum)


def test_input_format_and_momentum_are_part_of_the_fingerprint_only_if_they_are_set():
    trunk = TrunkSpec(**TRUNK, batch_norm="training")
    assert trunk.model_dump() == {**TRUNK, "batch_norm": "training"}
    changed = [
        {"batch_norm_momentum": 0.9},
        {"batch_norm_momentum": 0.1},
        {"input_format": FORMAT},
        {"input_format": {**FORMAT, "scale": 255}},
    ]
    specs = [trunk, *(TrunkSpec(**TRUNK, batch_norm="training", **values) for values in changed)]
    assert len({fingerprint_of(spec.model_dump(mode="json")) for spec in specs}) == len(specs)
    assert [TrunkSpec.model_validate_json(spec.model_dump_json()) for spec in specs] == specs
