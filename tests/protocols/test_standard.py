"""The protocol of the papers' tables: the epoch is chosen on validation classes, the model trained on all of them."""

from collections.abc import Callable
from pathlib import Path

import optuna
import pytest

from protocols.jobs import EvaluateJob, Job, TrainJob
from protocols.problem import Problem
from protocols.search.open_method import OpenMethod
from protocols.search.space import SearchParameter
from protocols.search.study import Budget, Study
from protocols.splits import SplitError, from_ranges, named_split
from protocols.standard import foreseeable, standard, trainings_of
from protocols.training.train_fold import train_fold
from results.experiment_spec import SamplerSettings
from results.records import CurvePoint, FoldResult
from results.training_spec import FoldSpec, TrunkSpec
from tests.support.toys import CONTRASTIVE, IMAGES, UNTRAINED, made_up_result, pattern_dataset, settings

SPACE = (SearchParameter(target="loss.neg_margin", scale="linear", low=0.0, high=2.0),)


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    split = named_split("conventional", 16, 8)
    trunk = TrunkSpec(name="small_conv", weights="random")
    training = settings(iterations_per_epoch=None, max_epochs=5, validate_every=2)
    return Problem(pattern_dataset(tmp_path), split, 1, IMAGES, trunk, 8, training, seed=5, metrics=("recall@2",))


def study(problem: Problem, method: OpenMethod, budget: Budget) -> Study:
    return Study(problem, method, budget, SamplerSettings(startup_trials=2), optuna.storages.InMemoryStorage())


def curve(*scores: float) -> tuple[CurvePoint, ...]:
    """Validations after epochs 0, 2, 4, 5 of three iterations each, as the problem's rhythm has it."""
    iterations = (0, 6, 12, 15)
    return tuple(
        CurvePoint(iteration=i, map_at_r=s, r_precision=s, precision_at_1=s, loss=1.0)
        for i, s in zip(iterations, scores, strict=False)
    )


def validated(spec: FoldSpec) -> FoldResult:
    """Best after epoch 4."""
    changes = {"curve": curve(0.1, 0.2, 0.4, 0.3), "best_iteration": 12, "best_map_at_r": 0.4}
    return made_up_result(spec.fingerprint, 0.4).model_copy(update=changes)


def drive(
    work_of: Study, score: Callable[[FoldSpec], FoldResult] = validated
) -> tuple[list[list[Job]], list[EvaluateJob]]:
    """All that the protocol asks for; evaluations are answered by nothing, for they are what is looked at."""
    work, asked = standard(work_of), []
    jobs = next(work)
    while True:
        asked.append(jobs)
        tests = [job for job in jobs if isinstance(job, EvaluateJob)]
        if tests:
            return asked, tests
        jobs = work.send([score(job.spec) for job in jobs if isinstance(job, TrainJob)])


def test_a_run_is_a_training_that_chooses_and_one_on_all_classes(problem: Problem) -> None:
    given = study(problem, OpenMethod(method=CONTRASTIVE), Budget(trials=0, reproductions=3))
    asked, tests = drive(given)
    choosing, finals, _ = asked
    assert [len(jobs) for jobs in asked] == [3, 3, 3]
    assert trainings_of(given) == 6
    for first, second, test in zip(choosing, finals, tests, strict=True):
        assert isinstance(first, TrainJob)
        assert isinstance(second, TrainJob)
        assert first.spec.seed == second.spec.seed
        assert first.run is None, "its weights are not tested"
        assert second.run == test.fingerprint
        assert set(from_ranges(first.spec.train_classes)) == set(range(6))
        assert set(from_ranges(first.spec.validation_classes)) == {6, 7}
        assert from_ranges(second.spec.train_classes) == tuple(range(8))
        assert second.spec.validation_classes == ()
        assert second.spec.checkpoint_epoch == 4
        assert test.specs == (second.spec,)
        assert test.metrics == ("recall@2",)
    assert len({job.spec.seed for job in finals if isinstance(job, TrainJob)}) == 3


def test_the_search_comes_first_and_sees_no_other_classes(problem: Problem) -> None:
    searched = study(problem, OpenMethod(method=CONTRASTIVE, space=SPACE), Budget(trials=3, reproductions=1))
    asked, tests = drive(searched)
    assert [len(jobs) for jobs in asked] == [1, 1, 1, 1, 1, 1]
    assert trainings_of(searched) == 5
    for jobs in asked[:4]:
        assert isinstance(jobs[0], TrainJob)
        assert set(from_ranges(jobs[0].spec.validation_classes)) == {6, 7}
    assert tests[0].hyperparameters.keys() == {"loss.neg_margin"}


@pytest.mark.parametrize(
    ("scores", "epoch"),
    [((0.1,), 0), ((0.1, 0.05), 2), ((0.1, 0.3), 2), ((0.1, 0.3, 0.2), 2), ((0.1, 0.2, 0.4), 4)],
    ids=["at once", "below the untrained network", "after one validation", "best is the first", "best is the last"],
)
def test_a_choosing_training_that_diverged_counts_up_to_there_and_says_so(
    problem: Problem, scores: tuple[float, ...], epoch: int
) -> None:
    def diverged(spec: FoldSpec) -> FoldResult:
        result = made_up_result(spec.fingerprint, 0.0, reason="loss not finite at iteration 7")
        # As `train_fold` records it: whatever came before, a diverged training has iteration 0 as its best.
        changes = {"curve": curve(*scores), "best_iteration": 0}
        return result.model_copy(update=changes) if spec.checkpoint_epoch is None else validated(spec)

    asked, tests = drive(study(problem, OpenMethod(method=CONTRASTIVE), Budget(0, 1)), diverged)
    assert isinstance(asked[1][0], TrainJob)
    assert asked[1][0].spec.checkpoint_epoch == epoch
    assert tests[0].flags == (
        "choosing the epoch: training diverged (loss not finite at iteration 7); "
        "the best checkpoint before that counts",
    )


def test_the_untrained_trunk_has_nothing_to_choose(problem: Problem) -> None:
    untrained = study(problem, OpenMethod(method=UNTRAINED), Budget(0, 2))
    asked, _ = drive(untrained)
    assert [len(jobs) for jobs in asked if jobs] == [2, 2]
    assert trainings_of(untrained) == 2


def test_final_trainings_cannot_be_foreseen_before_their_epoch_is_chosen(problem: Problem) -> None:
    given = study(problem, OpenMethod(method=CONTRASTIVE), Budget(0, 3))
    asked, _ = drive(given)
    assert foreseeable(given) == [job.spec for job in asked[0] if isinstance(job, TrainJob)]


def test_a_training_is_never_handed_test_classes(problem: Problem) -> None:
    spec = problem.final_spec(CONTRASTIVE, 0, 3)
    leaking = spec.model_copy(update={"train_classes": ((0, 8),)})
    assert set(problem.training_data(spec).train.labels.tolist()) == set(range(8))
    with pytest.raises(SplitError, match="test class 8 is used for training or validation"):
        problem.training_data(leaking)


def test_the_chosen_epochs_model_is_that_of_a_training_stopped_there(problem: Problem) -> None:
    whole = problem.final_spec(CONTRASTIVE, 0, 2)
    short = whole.model_copy(update={"training": whole.training.model_copy(update={"max_epochs": 2})})
    data = problem.training_data(whole)
    one, other = train_fold(whole, data), train_fold(short, data)
    assert one.result.iterations == 5 * (32 // 8)
    assert one.result.best_iteration == other.result.iterations == 2 * (32 // 8)
    assert all((one.weights[key] == other.weights[key]).all() for key in one.weights)
    assert one.result.best_map_at_r is None
    assert one.result.beats_untrained
    assert [point.map_at_r for point in one.result.curve] == [None] * 4
    assert all(point.loss is not None for point in one.result.curve[1:])
