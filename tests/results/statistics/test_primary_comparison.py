"""The comparison of an experiment follows the experiment's primary score, its test, its margin and its early stops."""

import pytest

from results.statistics.method_comparison import ALPHA, final_alpha
from results.statistics.primary_comparison import planned_score, primary_comparison
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_page import measured as kept


def compared(**settings):
    world = kept()
    summary = type(world.summary).model_validate(
        {
            **world.summary.model_dump(mode="json"),
            "experiment": {**world.summary.experiment.without_folder(), **settings},
        }
    )
    return primary_comparison(MeasuredExperiment(summary, world.records))


def test_the_default_is_the_moderated_test_of_map_at_r_with_half_a_point():
    comparison = compared()
    assert (comparison.test, comparison.margin, comparison.alpha) == ("moderated t", 0.005, ALPHA)


@pytest.mark.parametrize("test", ["paired t", "Welch t"])
def test_a_file_names_another_test_and_margin(test):
    comparison = compared(primary={"test": test, "margin": 2.0})
    assert {pair.test for pair in comparison.pairs} == {test}
    assert comparison.margin == pytest.approx(0.02)
    assert comparison.pairs[0].difference == compared().pairs[0].difference
    assert comparison.pairs[0].p != compared().pairs[0].p


def test_a_file_names_another_score():
    other = compared(primary={"metric": "precision_at_1", "embeddings": "separated"})
    assert other.means != compared().means


def test_early_stops_cost_a_part_of_the_level():
    assert compared(reproductions={"first": 3, "at most": 5}).alpha == pytest.approx(final_alpha())


def test_a_plan_names_the_score_that_the_runs_will_have():
    experiment = kept().summary.experiment
    assert planned_score(experiment).embeddings == "concatenated"
    for changes in ({"folds": 1}, {"protocol": "standard"}):
        assert planned_score(experiment.model_copy(update=changes)).embeddings == "separated"
