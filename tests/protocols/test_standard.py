"""The protocol of the papers' tables: the epoch is chosen on the folds, the model trained on all training classes."""

from typing import get_args

import pytest

from protocols.datasets.splits import SPLITS, SplitError, from_ranges, named_split
from protocols.jobs import TrainJob
from protocols.protocol_registry import PROTOCOLS
from protocols.setup import Setup
from protocols.standard import choose_epoch, standard
from protocols.study import RunningSearch
from protocols.training.train_fold import train_fold
from results.records.records import CurvePoint, Event
from results.spec.conditions import TrainingSettings
from results.spec.data_choice import DrawnSplit
from results.spec.experiment_spec import Experiment
from results.spec.range import Range
from results.spec.search_settings import SamplerSettings
from results.spec.trunk_spec import TrunkSpec
from tests.support.labs import InventedLab
from tests.support.sample_records import some_spec
from tests.support.small_setup import with_changes
from tests.support.studies import study_of
from tests.support.toys import (
    CONTRASTIVE,
    UNTRAINED,
    conditions,
    made_up_result,
    pattern_dataset,
    same_weights,
    settings,
)

SPACE = {"loss.neg_margin": Range(scale="linear", low=0.0, high=2.0)}


@pytest.fixture
def setup(tmp_path):
    split = named_split("conventional", 16, 8)
    trunk = TrunkSpec(name="small_conv", weights="random")
    training = settings(iterations_per_epoch=None, max_epochs=5, validate_every=2)
    return Setup(
        pattern_dataset(tmp_path), split, 4, conditions(trunk, training=training), seed=5, metrics=("recall@2",)
    )


def study(setup, reproductions, method=CONTRASTIVE, ranges=None, trials=0):
    sampler = SamplerSettings(startup_trials=2)
    return study_of(setup, method, ranges, reproductions=reproductions, trials=trials, sampler=sampler)


def curve(*scores):
    """Validations after epochs 0, 2, 4, 5 of three iterations each, as the setup's rhythm has it."""
    iterations = (0, 6, 12, 15)
    return tuple(
        CurvePoint(iteration=i, map_at_r=s, r_precision=s, precision_at_1=s, loss=1.0)
        for i, s in zip(iterations, scores, strict=False)
    )


def validated(spec):
    """Best after epoch 4."""
    return made_up_result(spec, 0.4).model_copy(
        update={"curve": curve(0.1, 0.2, 0.4, 0.3), "iterations": 15, "best_iteration": 12}
    )


def drive(work_of, score=validated):
    """All that the protocol asks for, and the tests among it."""
    lab = InventedLab(score)
    standard(RunningSearch(work_of), lab)
    return lab.asked, lab.tests


def train_jobs(jobs):
    return [job for job in jobs if isinstance(job, TrainJob)]


def test_a_run_chooses_its_epoch_on_all_folds_and_trains_on_all_classes(setup):
    given = study(setup, 3)
    asked, tests = drive(given)
    choosing, finals, _ = asked
    assert [len(jobs) for jobs in asked] == [12, 3, 3]
    assert PROTOCOLS["standard"].trainings_of(given) == 15
    for run, (final, test) in enumerate(zip(train_jobs(finals), tests, strict=True)):
        folds = train_jobs(choosing)[4 * run : 4 * run + 4]
        assert [job.spec.fold for job in folds] == [0, 1, 2, 3]
        assert all(job.chooses_epoch and job.run is None for job in folds), "their weights are not tested"
        assert folds[0].spec.seed == final.spec.seed
        validation = [from_ranges(job.spec.validation_classes) for job in folds]
        assert sorted(sum(validation, ())) == list(range(8))
        for job, left_out in zip(folds, validation, strict=True):
            assert {*from_ranges(job.spec.train_classes), *left_out} == set(range(8))
        assert not final.chooses_epoch
        assert final.run == test.fingerprint
        assert from_ranges(final.spec.train_classes) == tuple(range(8))
        assert final.spec.validation_classes == ()
        assert final.spec.checkpoint_epoch == 4
        assert test.specs == (final.spec,)
        assert test.chosen_by == tuple(job.spec.fingerprint for job in folds)
        assert test.wall_time == 5.0
        assert test.metrics == ("recall@2",)
    assert len({job.spec.seed for job in train_jobs(finals)}) == 3


def test_the_epoch_is_the_best_of_the_mean_over_the_folds(setup):
    # Fold 0 alone would choose epoch 2; the mean of all folds is highest after epoch 5.
    curves = ((0.1, 0.9, 0.2, 0.3), (0.1, 0.1, 0.2, 0.6), (0.1, 0.1, 0.3, 0.6), (0.1, 0.1, 0.2, 0.6))

    def by_fold(spec):
        return validated(spec).model_copy(update={"curve": curve(*curves[spec.fold])})

    asked, tests = drive(study(setup, 1), by_fold)
    assert train_jobs(asked[1])[0].spec.checkpoint_epoch == 5
    assert tests[0].events == ()


def test_a_run_of_another_choice_is_another_run(setup):
    (spec,) = (setup.final_spec(CONTRASTIVE, 0, 4),)
    assert len({setup.run_fingerprint((spec,), by) for by in ((), ("a",), ("a", "b"))}) == 3


def test_the_search_comes_first_and_sees_no_other_classes(setup):
    searched = study(setup, 1, ranges=SPACE, trials=3)
    asked, tests = drive(searched)
    assert [len(jobs) for jobs in asked] == [4, 4, 4, 4, 1, 1]
    assert PROTOCOLS["standard"].trainings_of(searched) == 17
    for jobs in asked[:4]:
        assert set(from_ranges(train_jobs(jobs)[0].spec.validation_classes)) == {6, 7}
    assert not any(job.chooses_epoch for jobs in asked[:3] for job in train_jobs(jobs))
    assert tests[0].hyperparameters.keys() == {"loss.neg_margin"}


def test_events_of_the_choice_reach_the_test(setup):
    def one_diverged(spec):
        if spec.checkpoint_epoch is not None or spec.fold != 2:
            return validated(spec)
        return made_up_result(spec, 0.0, reason="loss not finite at iteration 7")

    asked, tests = drive(study(setup, 1), one_diverged)
    assert train_jobs(asked[1])[0].spec.checkpoint_epoch == 4
    assert tests[0].events == (Event(kind="diverged", fold=2, iteration=100, choosing=True),)


def test_the_untrained_trunk_has_nothing_to_choose(setup):
    untrained = study(setup, 2, UNTRAINED)
    asked, tests = drive(untrained)
    assert [len(jobs) for jobs in asked if jobs] == [2, 2]
    assert PROTOCOLS["standard"].trainings_of(untrained) == 2
    assert [job.spec.checkpoint_epoch for job in train_jobs(asked[1])] == [0, 0]
    assert tests[0].chosen_by == ()


@pytest.mark.parametrize(("max_epochs", "validate_every"), [(1, 1), (3, 3), (3, 10)])
def test_with_a_single_candidate_there_are_no_choosing_trainings(setup, max_epochs, validate_every):
    update = {"max_epochs": max_epochs, "validate_every": validate_every}
    short = with_changes(setup, training=setup.conditions.training.model_copy(update=update))
    given = study(short, 2)
    asked, tests = drive(given)
    assert [len(jobs) for jobs in asked if jobs] == [2, 2]
    assert PROTOCOLS["standard"].trainings_of(given) == 2
    finals = [job.spec for job in train_jobs(asked[1])]
    assert [spec.checkpoint_epoch for spec in finals] == [max_epochs] * 2
    assert PROTOCOLS["standard"].foreseeable(given) == [spec.fingerprint for spec in finals]
    assert [test.chosen_by for test in tests] == [(), ()]
    assert [short.example(CONTRASTIVE, kind).checkpoint_epoch for kind in PROTOCOLS["standard"].kinds(given)] == [
        max_epochs
    ]


def test_final_trainings_cannot_be_foreseen_before_their_epoch_is_chosen(setup):
    given = study(setup, 3)
    asked, _ = drive(given)
    assert PROTOCOLS["standard"].foreseeable(given) == [job.fingerprint for job in train_jobs(asked[0])]


def test_a_training_is_never_handed_test_classes(setup):
    spec = setup.final_spec(CONTRASTIVE, 0, 3)
    leaking = spec.model_copy(update={"train_classes": ((0, 8),)})
    assert set(setup.training_data(spec).train.labels.tolist()) == set(range(8))
    with pytest.raises(SplitError, match="test class 8 is used for training or validation"):
        setup.training_data(leaking)


def test_the_chosen_epochs_model_is_that_of_a_training_stopped_there(setup):
    whole = setup.final_spec(CONTRASTIVE, 0, 2)
    short = whole.with_conditions(training=whole.conditions.training.model_copy(update={"max_epochs": 2}))
    data = setup.training_data(whole)
    one, other = train_fold(whole, data), train_fold(short, data)
    assert one.result.iterations == 5 * (32 // 8)
    assert one.result.best_iteration == other.result.iterations == 2 * (32 // 8)
    assert all((one.weights[key] == other.weights[key]).all() for key in one.weights)
    assert one.result.best_map_at_r is None
    assert one.result.beats_untrained
    assert [point.map_at_r for point in one.result.curve] == [None] * 4
    assert all(point.loss is not None for point in one.result.curve[1:])
    assert other.last_weights is None, "its checkpoint is the last epoch"


def test_the_weights_of_the_last_epoch_are_kept_beside_those_of_the_chosen_one(setup):
    chosen, last = setup.final_spec(CONTRASTIVE, 0, 2), setup.final_spec(CONTRASTIVE, 0, 5)
    data = setup.training_data(chosen)
    kept, to_the_end = train_fold(chosen, data), train_fold(last, data)
    assert kept.last_weights is not None
    assert same_weights(kept.last_weights, to_the_end.weights)
    assert not same_weights(kept.last_weights, kept.weights)


def test_an_experiment_can_name_every_protocol_and_no_other():
    assert get_args(Experiment.model_fields["protocol"].annotation) == tuple(PROTOCOLS)


def test_an_experiment_can_name_every_split_or_leave_it_to_its_protocol():
    named, drawn, absent = get_args(Experiment.model_fields["split"].annotation)
    assert get_args(named) == SPLITS
    assert drawn is DrawnSplit
    assert absent is type(None)


def test_every_protocol_has_a_split_that_exists():
    assert {name: protocol.split for name, protocol in PROTOCOLS.items()} == {
        "mlrc": "mlrc",
        "standard": "conventional",
    }
    assert {protocol.split for protocol in PROTOCOLS.values()} <= set(SPLITS)


SETTINGS = TrainingSettings(max_epochs=5, validate_every=2)
"""Validations after epochs 0, 2, 4 and 5."""
DIVERGED = Event(kind="diverged", fold=some_spec().fold, iteration=100, choosing=True)


def fold(*scores, reason=None):
    points = tuple(
        CurvePoint(iteration=10 * number, map_at_r=score, r_precision=score, precision_at_1=score, loss=1.0)
        for number, score in enumerate(scores)
    )
    return made_up_result(some_spec(), max(scores, default=0.0), reason=reason).model_copy(update={"curve": points})


def diverged(*scores):
    return fold(*scores, reason="loss not finite at iteration 7")


@pytest.mark.parametrize(
    ("folds", "epoch"),
    [
        ([fold(0.1, 0.2, 0.4, 0.3)], 4),
        ([fold(0.1, 0.2, 0.3, 0.4)], 5),
        ([fold(0.1, 0.9, 0.2, 0.3), fold(0.1, 0.1, 0.2, 0.95)], 5),
        ([fold(0.1, 0.3, 0.3, 0.3), fold(0.1, 0.3, 0.3, 0.3)], 2),
        ([fold(0.9, 0.2, 0.3, 0.1)], 4),
    ],
    ids=["one fold", "the last epoch", "the mean decides", "the earlier of equal ones", "never the untrained network"],
)
def test_the_best_epoch_of_the_mean_is_chosen(folds, epoch):
    assert choose_epoch(folds, SETTINGS)[0] == epoch


def test_only_epochs_that_every_fold_reached_are_candidates():
    # The hard fold stopped after epoch 4. Alone, the easy fold has its best mean after epoch 5.
    easy, hard = fold(0.5, 0.6, 0.7, 0.8), fold(0.1, 0.3, 0.1)
    assert choose_epoch([easy, hard], SETTINGS)[0] == 2
    assert choose_epoch([easy], SETTINGS)[0] == 5


@pytest.mark.parametrize(
    ("folds", "epoch", "events"),
    [
        ([fold(0.1, 0.2, 0.4, 0.3), diverged(0.1, 0.9), fold(0.1, 0.2, 0.4, 0.3)], 4, [DIVERGED]),
        ([diverged(0.1, 0.3, 0.2), diverged(0.1, 0.2, 0.4)], 4, [DIVERGED] * 2),
        ([diverged(0.1, 0.3, 0.2), diverged(0.1, 0.2)], 2, [DIVERGED] * 2),
        ([diverged(0.1, 0.2, 0.3), diverged(0.1)], 4, [DIVERGED] * 2),
        ([diverged(0.1), diverged()], 0, [DIVERGED] * 2),
        ([fold(0.4, 0.2, 0.3, 0.3), fold(0.2, 0.3, 0.2, 0.2)], 2, [Event(kind="no gain", fold=None, choosing=True)]),
    ],
    ids=["left out", "both reached epoch 4", "one reached epoch 2", "one at once", "no epoch", "no gain in the mean"],
)
def test_what_happened_is_said_and_if_all_diverged_their_validations_before_that_count(folds, epoch, events):
    assert choose_epoch(folds, SETTINGS) == (epoch, tuple(events))
