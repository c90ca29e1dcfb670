"""Conditions of single rows: which settings a row may replace, and which rows are compared."""

import pytest
from pydantic import ValidationError

from results.spec.experiment_spec import Experiment, with_conditions

SETTINGS = {
    "title": "Rows",
    "dataset": {"name": "glyphs", "root": "somewhere"},
    "methods": ["contrastive", "triplet", "cosface"],
    "trunk": {"name": "small_conv", "weights": "random"},
}


def experiment(**conditions):
    return Experiment.model_validate({**SETTINGS, "with": conditions})


def test_a_row_gets_its_conditions_and_the_others_keep_the_common_ones():
    opened = experiment(triplet={"training.batch_size": 60, "images.crop": 64, "embedding_size": 32})
    row = opened.for_row("triplet")
    assert (row.training.batch_size, row.images.crop, row.embedding_size) == (60, 64, 32)
    assert row.training.optimizer == opened.training.optimizer
    assert row.dataset == opened.dataset
    assert opened.for_row("cosface") == opened.for_row("contrastive") == experiment()
    assert row.for_row("triplet") is row


def test_an_experiment_without_conditions_is_written_as_before():
    assert "conditions" not in experiment().model_dump(mode="json")
    assert experiment().fingerprint("rows", "data") == Experiment.model_validate(SETTINGS).fingerprint("rows", "data")
    other = experiment(triplet={"embedding_size": 32})
    assert other.fingerprint("rows", "data") != experiment().fingerprint("rows", "data")
    assert Experiment.model_validate(other.model_dump(mode="json")) == other


def test_only_rows_under_equal_conditions_are_compared():
    opened = experiment(triplet={"embedding_size": 32}, cosface={"embedding_size": 128})
    assert opened.comparable_rows() == {"contrastive", "cosface"}
    assert opened.conditions_of("contrastive") == opened.conditions_of("cosface") != opened.conditions_of("triplet")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("search.trials", "a row cannot have its own 'search.trials'; it can have trunk, embedding_size"),
        ("seed", "a row cannot have its own 'seed'"),
        ("trunk.name", "make a panel for another network"),
        ("trunk.frozen", "make a panel for another network"),
        ("trunk", "make a panel for another network"),
        ("proxies.warmup_steps", "'proxies' has no parts here; give 'proxies' as a whole"),
        ("training.batch_size.more", "'training.batch_size' has no parts here"),
    ],
)
def test_what_a_row_cannot_have(key, message):
    with pytest.raises(ValueError, match=message):
        with_conditions({**SETTINGS, "proxies": None, "training": {"batch_size": 3}}, {key: 1})


@pytest.mark.parametrize("changes", [{"training.batch_sise": 3}, {"training.batch_size": -1}, {"images.crop": "big"}])
def test_a_wrong_value_is_refused(changes):
    with pytest.raises(ValidationError):
        experiment(triplet=changes).for_row("triplet")


def test_the_given_settings_stay_as_they_are():
    settings = {"training": {"batch_size": 3}}
    with_conditions(settings, {"training.batch_size": 4})
    assert settings == {"training": {"batch_size": 3}}
