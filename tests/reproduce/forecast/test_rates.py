"""The rates of a plan: from timings in a store, given, and from the table of machines."""

from dataclasses import replace

import pytest

from protocols.splits import from_ranges
from reproduce.forecast import rates as rates_module
from reproduce.forecast.rates import (
    MACHINES,
    Machine,
    expected_rates,
    given_rates,
    machine_rates,
    operations,
    rows_word,
    stored_rates,
)
from results.records.frames import Timing
from results.spec.trunk_spec import TrunkSpec
from tests.support.small_problem import TRIPLET, UNTRAINED, small_problem

UNKNOWN = "the store has no training with this trunk and these images"


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return small_problem(tmp_path_factory.mktemp("cache"))


def spec_of(problem, method=TRIPLET, **changes):
    return problem.fold_specs(method, "search", 0)[0].model_copy(update=changes)


def test_the_rate_counts_training_images_and_a_third_of_the_validated_ones(problem):
    spec = spec_of(problem)
    # Batches of 8; a validation before the first step and after each of the two epochs of three steps.
    validated = 3 * len(problem.dataset.images.of_classes(from_ranges(spec.validation_classes)))
    rates = stored_rates(problem, [Timing(spec, 6, 2.0)])
    assert rates.training == pytest.approx((6 * 8 + validated / 3) / 2.0)
    assert rates.here
    assert "from 1 training on stripes in the store" in rates.source


@pytest.mark.parametrize(
    "other",
    [
        {"trunk": TrunkSpec(name="bn_inception", weights="random")},
        {"images": {"crop": 99}},
        {"training": {"precision": "amp"}},
    ],
)
def test_another_trunk_crop_or_precision_says_nothing(problem, other):
    changes = {
        name: value if isinstance(value, TrunkSpec) else getattr(problem, name).model_copy(update=value)
        for name, value in other.items()
    }
    assert stored_rates(problem, [Timing(spec_of(problem, **changes), 6, 2.0)]) == UNKNOWN


def test_the_untrained_trunk_and_an_empty_store_say_nothing(problem):
    assert stored_rates(problem, []) == UNKNOWN
    assert stored_rates(problem, [Timing(spec_of(problem, UNTRAINED), 0, 0.1)]) == UNKNOWN


def test_another_dataset_counts_only_if_this_one_has_no_trainings(problem):
    elsewhere = Timing(spec_of(problem, dataset="birds"), 10, 4.0)
    rates = stored_rates(problem, [elsewhere])
    assert rates.training == pytest.approx(10 * 8 / 4.0)
    assert "on other datasets" in rates.source
    both = stored_rates(problem, [elsewhere, Timing(spec_of(problem), 6, 2.0)])
    assert "from 1 training on stripes" in both.source


def test_a_given_rate_is_another_machines():
    assert not given_rates(800).here


def test_operations_are_those_of_the_layers(problem):
    # Twice the crop has about four times the operations.
    spec = spec_of(problem)
    larger = spec.model_copy(update={"images": spec.images.model_copy(update={"crop": 2 * spec.images.crop})})
    assert operations(larger) == pytest.approx(4 * operations(spec), rel=0.1)
    inception = spec.model_copy(
        update={
            "trunk": TrunkSpec(name="bn_inception", weights="random"),
            "images": spec.images.model_copy(update={"crop": 224}),
        }
    )
    assert operations(inception) == pytest.approx(4.06e9, rel=0.01)


def test_a_small_trunk_is_limited_by_steps_and_a_large_one_by_operations(problem, monkeypatch):
    monkeypatch.setitem(MACHINES, "cpu", Machine({"float32": 100.0}, 5))
    assert machine_rates("cpu", problem).training == 5 * 8
    assert machine_rates("cpu", on_features(problem)).training == 5 * 5 * 8
    monkeypatch.setitem(MACHINES, "cpu", Machine({"float32": 1e-6}, 5))
    assert machine_rates("cpu", problem).training == pytest.approx(1e-6 * 8.18e9 / operations(spec_of(problem)))


def test_bn_inception_on_an_h100_makes_as_many_steps_as_host_and_device_allow(problem):
    def steps(precision, batch=32):
        training = problem.training.model_copy(update={"precision": precision, "batch_size": batch})
        images = problem.images.model_copy(update={"crop": 227})
        trunk = TrunkSpec(name="bn_inception", weights="random")
        rates = machine_rates("h100", replace(problem, training=training, images=images, trunk=trunk))
        assert "estimated" in rates.source
        return rates.training / batch

    # A step takes 8 to 9 ms in float32; in amp it waits for the host, 5 to 9 ms.
    assert 1000 / 9 < steps("float32") < 1000 / 8
    assert 1000 / 9 < steps("amp") < 1000 / 5
    # Large batches keep the device busy.
    assert steps("float32", 180) < steps("amp", 180) < steps("amp", 32)


def test_a_published_rate_names_its_source_and_the_others_say_estimated(problem, monkeypatch):
    monkeypatch.setattr(rates_module, "operations", lambda spec: 8.18e9)
    for name, machine in MACHINES.items():
        for precision in machine.resnet50:
            training = problem.training.model_copy(update={"precision": precision, "batch_size": 10_000})
            rates = machine_rates(name, replace(problem, training=training))
            assert rates.training == pytest.approx(machine.resnet50[precision])
            assert not rates.here
            assert (machine.source if precision in machine.published else "(estimated)") in rates.source
        assert "(estimated)" in machine_rates(name, on_features(problem)).source


def on_features(problem):
    return replace(problem, trunk=TrunkSpec(name="efficientnet_lite0", frozen=True))


def test_plans_name_what_trainings_read(problem):
    assert rows_word(problem) == "images"
    assert rows_word(on_features(problem)) == "rows of features"
    assert "features" in stored_rates(on_features(problem), [])


def test_rates_are_those_of_the_store_or_else_of_the_table_for_this_machine(problem):
    stored = [Timing(spec_of(problem), 6, 2.0)]
    assert expected_rates(problem, stored, "cpu") == stored_rates(problem, stored)
    assert expected_rates(problem, [], "cpu") == machine_rates("cpu", problem)


def test_a_machine_that_is_not_in_the_table_has_no_rates_before_its_first_training(problem, monkeypatch):
    monkeypatch.setattr(rates_module, "device_name", lambda device: "V100")
    assert expected_rates(problem, [], "cpu") == UNKNOWN
