"""The lengths of trainings in a plan, by hand: their bounds and the typical one."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from protocols.protocol_registry import PROTOCOLS
from protocols.search.open_method import OpenMethod
from protocols.search.study import Budget, Study
from protocols.splits import named_split
from reproduce.forecast.plan_trainings import Length, lengths, plan, typical_share, work_of_test
from results.records.frames import Timing
from results.records.trials import TrialsInMemory
from results.spec.search_settings import SamplerSettings
from results.spec.trunk_spec import TrunkSpec
from tests.support.small_problem import TRIPLET, UNTRAINED, small_problem


@pytest.fixture
def problem(tmp_path):
    """Eight training classes of four images; each fold validates on two of them. Batches of 8, passes, 3 epochs."""
    whole = small_problem(tmp_path, split=named_split("conventional", 16, 8), folds=4)
    training = whole.training.model_copy(update={"max_epochs": 3, "iterations_per_epoch": None})
    return replace(whole, training=training)


def bounds(problem, protocol, method=TRIPLET, **changes):
    problem = replace(problem, training=problem.training.model_copy(update=changes))
    study = Study(problem, OpenMethod(method=method), Budget(0, 2), SamplerSettings(), TrialsInMemory())
    return lengths(problem, PROTOCOLS[protocol].kinds(study))


def test_without_early_stopping_all_trainings_of_mlrc_are_equally_long(problem):
    shortest, longest = bounds(problem, "mlrc")
    assert shortest == longest
    # 24 images in batches of 8 for 3 epochs; 8 images at 4 validations.
    assert (longest.iterations, longest.work) == (3 * 3, 3 * 3 * 8 + 4 * 8 / 3)


def test_patience_shortens_a_training_with_validation_classes(problem):
    shortest, longest = bounds(problem, "mlrc", patience=1)
    assert (shortest.iterations, longest.iterations) == (2 * 3, 3 * 3)


def test_the_final_training_of_standard_has_more_images_and_no_validation(problem):
    shortest, longest = bounds(problem, "standard", patience=0)
    assert (shortest.iterations, longest.iterations) == (1 * 3, 3 * 4)
    assert (shortest.work, longest.work) == (1 * 3 * 8 + 2 * 8 / 3, 3 * 4 * 8)


def test_without_a_choice_standard_has_only_final_trainings(problem):
    shortest, longest = bounds(problem, "standard", validate_every=3)
    assert shortest == longest
    assert (longest.iterations, longest.work) == (3 * 4, 3 * 4 * 8)


def test_the_untrained_trunk_has_no_iterations(problem):
    for protocol, validated in (("mlrc", 8), ("standard", 0)):
        shortest, longest = bounds(problem, protocol, UNTRAINED)
        assert shortest == longest
        assert (longest.iterations, longest.work) == (0, validated / 3)


def test_a_method_has_the_rate_of_its_own_stored_trainings(problem):
    fast = TRIPLET.model_copy(update={"name": "fast"})
    budget, sampler = Budget(0, 2), SamplerSettings()
    studies = {
        method.name: Study(problem, OpenMethod(method=method), budget, sampler, TrialsInMemory())
        for method in (TRIPLET, fast)
    }
    session = SimpleNamespace(
        titles={name: name for name in studies},
        studies=lambda _: studies,
        protocol=PROTOCOLS["mlrc"],
    )
    timings = [
        Timing(problem.fold_specs(method, "calibration", 0)[0], 9, seconds)
        for method, seconds in ((TRIPLET, 30.0), (TRIPLET, 50.0), (fast, 2.0))
    ]
    slow, quick = plan(session, None, timings)
    assert quick.own_rates.training == pytest.approx(20 * slow.own_rates.training)
    assert slow.own_rates.here
    assert plan(session, None, timings[:2])[1].own_rates is None


def timing(problem, iterations, **changes):
    return Timing(problem.fold_specs(TRIPLET, "search", 0)[0].model_copy(update=changes), iterations, 1.0)


def share(problem, least, most, timings):
    return typical_share(problem, Length(least, 0), Length(most, 0), timings)


def test_a_typical_training_is_the_mean_of_the_stored_ones(problem):
    stored = [timing(problem, 20), timing(problem, 60)]
    assert share(problem, 10, 100, stored) == (pytest.approx(0.4), "the mean of 2 trainings in the store")


def test_else_the_middle_is_assumed_and_said_so(problem):
    other = problem.training.model_copy(update={"patience": 77})
    frozen = TrunkSpec(name="small_conv", weights="mine", frozen=True)
    timings = [timing(problem, 20, training=other), timing(problem, 20, dataset="birds"), timing(problem, 0)]
    timings += [timing(problem, 20, checkpoint_epoch=3), timing(problem, 20, trunk=frozen)]
    typical, source = share(problem, 10, 1000, timings)
    assert typical == pytest.approx(math.sqrt(10 * 1000) / 1000)
    assert source.startswith("assumed")


def test_without_early_stopping_there_is_nothing_to_assume(problem):
    assert share(problem, 100, 100, [])[0] == share(problem, 0, 0, [])[0] == 1.0


def test_a_test_embeds_with_the_model_of_every_fold(problem):
    assert work_of_test(problem) == 4 * len(problem.dataset.images.of_classes(problem.split.test)) / 3
