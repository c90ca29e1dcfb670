"""Reproductions that may train longer than trials: equal up to there, where their best model is kept and tested."""

import pytest

from protocols.evaluation import evaluate_run as evaluation
from protocols.jobs import EvaluateJob
from protocols.training.train_fold import train_fold
from results.records.records import FoldResult
from tests.support.small_setup import COSFACE, UNTRAINED, small_setup, with_changes
from tests.support.toys import same_weights


@pytest.fixture(scope="module")
def setups(tmp_path_factory):
    short = small_setup(tmp_path_factory.mktemp("stripes"))
    return short, with_changes(short, reproduction_epochs=8)


def trained(setup, method=COSFACE):
    return [train_fold(spec, setup.training_data(spec)) for spec in setup.fold_specs(method, "reproduction", 0)]


def test_a_longer_training_is_the_same_up_to_the_end_of_a_trial(setups):
    for short, long in zip(*map(trained, setups), strict=True):
        assert long.result.curve[: len(short.result.curve)] == short.result.curve
        assert long.result.iterations > short.result.iterations
        assert same_weights(long.early_weights or long.weights, short.weights)


def test_the_best_models_up_to_there_are_tested_beside_those_of_the_end(setups):
    short, _ = setups
    data, records = evaluation.test_data(short.dataset, short.split), []
    for setup in setups:
        folds = trained(setup)
        job = EvaluateJob(tuple(fold.result for fold in folds), "mlrc", {}, 0, 5)
        early = [fold.early_weights for fold in folds]
        records.append(evaluation.evaluate_run(job, [fold.weights for fold in folds], data, early_weights=early))
    one, other = records
    assert one.early is None
    assert other.early is not None
    assert other.early.steps == 6
    assert (other.early.separated, other.early.concatenated) == (one.separated, one.concatenated)
    assert one.fingerprint != other.fingerprint


def test_searches_and_methods_without_a_loss_have_no_longer_trainings(setups):
    short, long = setups
    for method, purpose in ((COSFACE, "search"), (UNTRAINED, "reproduction")):
        specs = [setup.fold_specs(method, purpose, 0) for setup in setups]
        assert specs[0] == specs[1]
    (spec, _) = long.fold_specs(COSFACE, "reproduction", 0)
    assert (spec.early_epoch, spec.conditions.training.max_epochs) == (2, 8)
    assert spec.fingerprint not in {one.fingerprint for one in short.fold_specs(COSFACE, "reproduction", 0)}


def test_a_pass_over_the_images_says_how_many_steps_a_trial_has(tmp_path):
    setup = small_setup(tmp_path, reproduction_epochs=3)
    training = setup.conditions.training.model_copy(update={"iterations_per_epoch": None})
    setup = with_changes(setup, training=training)
    folds = trained(setup)
    job = EvaluateJob(tuple(fold.result for fold in folds), "mlrc", {}, 0, 5)
    assert job.early_steps == 2 * folds[0].result.curve[1].iteration
    gone = FoldResult(**{**dict(folds[0].result), "curve": folds[0].result.curve[:1]})
    assert EvaluateJob((gone,), "mlrc", {}, 0, 5).early_steps is None, "it diverged before it was validated"
