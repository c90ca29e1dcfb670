"""Components among the arguments of other components are found, checked and renamed."""

import pytest

from results.spec.training_spec import nested_components, renamed_components

ARGUMENTS = {
    "margin": 0.1,
    "loss": {
        "component": {
            "name": "Wrapper",
            "arguments": {"distance": {"component": {"kind": "distance", "name": "LpDistance"}}, "scale": 2},
        }
    },
    "weights": {"a": 1},
}


def test_components_are_found_at_every_depth():
    assert [(key, nested["name"]) for key, nested in nested_components(ARGUMENTS)] == [
        ("loss", "Wrapper"),
        ("distance", "LpDistance"),
    ]
    assert list(nested_components({})) == []


def test_components_are_renamed_at_every_depth_in_a_copy():
    renamed = renamed_components(ARGUMENTS, str.upper)
    assert [nested["name"] for _, nested in nested_components(renamed)] == ["WRAPPER", "LPDISTANCE"]
    assert [nested["name"] for _, nested in nested_components(ARGUMENTS)] == ["Wrapper", "LpDistance"]
    assert renamed_components(renamed, lambda name: {"WRAPPER": "Wrapper"}.get(name, "LpDistance")) == ARGUMENTS


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
