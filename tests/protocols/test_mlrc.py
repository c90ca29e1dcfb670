"""The protocol itself, driven with made-up outcomes: which jobs, which seeds, which classes, which winner."""

from dataclasses import replace

import pytest

from protocols.datasets.splits import from_ranges
from protocols.jobs import EvaluateJob, TrainJob
from protocols.mlrc import mlrc
from protocols.protocol_registry import PROTOCOLS
from protocols.study import RunningSearch
from results.records.records import Event
from results.spec.experiment_spec import Experiment
from results.spec.range import Range
from results.spec.search_settings import SamplerSettings, SearchSettings
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import TrunkSpec
from tests.support.labs import InventedLab, TrialsInMemory
from tests.support.small_setup import with_changes
from tests.support.studies import study_of
from tests.support.toys import CONTRASTIVE, PRETRAINED_PCA, UNTRAINED, made_up_result

SPACE = {
    "loss.neg_margin": Range(scale="linear", low=0.0, high=2.0),
    "loss.pos_margin": Range(scale="linear", low=-0.2, high=2.0),
}
IMAGENET = TrunkSpec(name="efficientnet_lite0", weights="imagenet")


def _hump(spec):
    margin = spec.method.loss.arguments.get("neg_margin", 0.0)
    assert isinstance(margin, float)
    return made_up_result(spec, 0.5 - 0.1 * abs(margin - 0.6) + 0.01 * spec.fold)


def study(setup, ranges=SPACE, method=CONTRASTIVE, log=None, **budget):
    numbers = {"trials": 4, "reproductions": 3, "sampler": SamplerSettings(startup_trials=4), **budget}
    return study_of(setup, method, ranges, log, **numbers)


def _drive(setup, ranges=SPACE, score=_hump, **changes):
    """Follow the searches of a method, one after another."""
    lab = InventedLab(score)
    for search in study(setup, ranges, **changes).searches:
        lab.returned += mlrc(RunningSearch(search), lab)
    return lab


def test_the_budget_is_the_protocols():
    assert SearchSettings().trials == 50
    assert Experiment.model_fields["reproductions"].default == 10


def test_trials_come_first_then_reproductions_then_tests(setup):
    driven = _drive(setup)
    assert [len(jobs) for jobs in driven.asked] == [4, 4, 4, 4, 12, 3]
    assert len(driven.search) == 4 * 4
    assert len(driven.reproductions) == 3 * 4
    assert len(driven.tests) == 3
    assert PROTOCOLS["mlrc"].trainings_of(study(setup)) == 28
    assert PROTOCOLS["mlrc"].trainings_of(study(setup, trials=50, reproductions=10)) == 240
    kinds = ["search"] * 4 + ["reproduction", "evaluation"]
    for jobs, kind in zip(driven.asked, kinds, strict=True):
        for job in jobs:
            assert isinstance(job, EvaluateJob) == (kind == "evaluation")
            if isinstance(job, TrainJob):
                assert (job.run is None) == (kind == "search")
    assert [record.run for record in driven.returned] == [0, 1, 2]


def test_a_repeated_search_is_another_search_with_runs_of_its_own(setup):
    driven, once = _drive(setup, searches=2), _drive(setup)
    assert [len(jobs) for jobs in driven.asked] == [4, 4, 4, 4, 12, 3] * 2
    assert (
        PROTOCOLS["mlrc"].trainings_of(study(setup, searches=2))
        == 56
        == 2 * PROTOCOLS["mlrc"].trainings_of(study(setup))
    )
    # The first search is the one that an experiment without `searches` has.
    assert driven.asked[:6] == once.asked
    assert [(record.search, record.run, record.seed) for record in driven.returned] == [
        (search, run, 5) for search in range(2) for run in range(3)
    ]
    jobs = [*driven.search, *driven.reproductions]
    assert len({job.spec.seed for job in jobs}) == len({job.spec.fingerprint for job in jobs}) == 56
    first, second = (driven.asked[start][0].spec.method.loss.arguments for start in (0, 6))
    assert first != second, "the searches start at different points"


def test_a_method_without_a_search_gets_as_many_runs_as_the_others(setup):
    driven = _drive(setup, {}, searches=3)
    assert [len(jobs) for jobs in driven.asked] == [12, 3] * 3
    assert len({job.spec.seed for job in driven.reproductions}) == 36
    assert study(setup, {}, searches=3).row.runs == study(setup, searches=3).row.runs == 9
    # Where no experiment searches, or all runs are equal, there is nothing to repeat.
    assert study(setup, {}, searches=3, trials=0).row.runs == 3
    downloaded = with_changes(setup, trunk=setup.conditions.trunk.model_copy(update={"weights": "imagenet"}))
    untrained = CONTRASTIVE.model_copy(update={"loss": None})
    assert study(downloaded, {}, untrained, searches=3).row.runs == 1


@pytest.mark.parametrize("folds", [1, 2, 4])
def test_every_setting_is_trained_on_every_fold(setup, folds):
    driven = _drive(replace(setup, folds=folds))
    for jobs in driven.asked[:4]:
        assert [job.spec.fold for job in jobs] == list(range(folds))
        assert len({job.spec.method.model_dump_json() for job in jobs}) == 1
    assert len({jobs[0].spec.method.model_dump_json() for jobs in driven.asked[:4]}) == 4


def test_no_training_holds_a_test_class(setup):
    test = set(setup.split.test)
    driven = _drive(setup)
    for job in driven.search + driven.reproductions:
        classes = {*from_ranges(job.spec.train_classes), *from_ranges(job.spec.validation_classes)}
        assert not classes & test
        fold = setup.split.folds[job.spec.fold]
        assert from_ranges(job.spec.train_classes) == fold.train
        assert from_ranges(job.spec.validation_classes) == fold.validation
    assert not any("test" in name for name in FoldSpec.model_fields)


def test_the_highest_mean_wins(setup):
    # Trial 2 has the best mean though trial 1 has the best fold.
    values = iter([0.3] * 4 + [0.9, 0.1, 0.1, 0.1] + [0.4] * 4 + [0.2] * 4 + [0.0] * 12)
    driven = _drive(setup, score=lambda spec: made_up_result(spec, next(values)))
    winner = driven.asked[2][0].spec.method
    assert {job.spec.method.model_dump_json() for job in driven.reproductions} == {winner.model_dump_json()}
    for job in driven.tests:
        assert job.hyperparameters == {
            "loss.neg_margin": winner.loss.arguments["neg_margin"],
            "loss.pos_margin": winner.loss.arguments["pos_margin"],
        }
        assert {spec.method.model_dump_json() for spec in job.specs} == {winner.model_dump_json()}


def test_the_search_trial_is_not_among_the_runs(setup):
    driven = _drive(setup)
    searched = {job.spec.fingerprint for job in driven.search}
    reproduced = [job.spec.fingerprint for job in driven.reproductions]
    assert not searched & set(reproduced)
    assert [f for job in driven.tests for f in (spec.fingerprint for spec in job.specs)] == reproduced
    for number, job in enumerate(driven.tests):
        assert (job.run, job.seed, job.protocol) == (number, 5, "mlrc")
        assert [spec.fold for spec in job.specs] == [0, 1, 2, 3]


def test_trainings_name_the_evaluation_that_needs_them(setup):
    driven = _drive(setup)
    names = [job.run for job in driven.reproductions]
    assert names == [job.fingerprint for job in driven.tests for _ in range(4)]
    assert len(set(names)) == 3


def test_events_and_times_are_passed_on(setup):
    def score(spec):
        if spec.fold == 1:
            return made_up_result(spec, 0.3, reason="loss not finite at iteration 7", wall_time=10)
        return made_up_result(spec, 0.3, beats_untrained=spec.fold != 3, wall_time=10 + spec.fold)

    for job in _drive(setup, score=score).tests:
        assert job.events == (Event(kind="diverged", fold=1, iteration=100), Event(kind="no gain", fold=3))
        assert job.wall_time == 10 + 10 + 12 + 13
    assert all(job.events == () for job in _drive(setup).tests)


@pytest.mark.parametrize(
    ("trunk", "method", "runs"),
    [
        (IMAGENET, UNTRAINED, 1),
        (IMAGENET, PRETRAINED_PCA, 1),
        (TrunkSpec(name="efficientnet_lite0", weights="random"), UNTRAINED, 3),
        (TrunkSpec(name="small_conv", weights="random"), UNTRAINED, 3),
        (IMAGENET, CONTRASTIVE, 3),
    ],
)
def test_a_pretrained_trunk_is_tested_once(setup, trunk, method, runs):
    changed = with_changes(setup, trunk=trunk)
    assert study(changed, {}, method).row.reproductions == runs
    assert study(changed, {}, method, reproductions=0).row.reproductions == 0

    def score(spec):
        return made_up_result(spec, 0.3)

    driven = _drive(changed, {}, score, method=method)
    assert len(driven.returned) == runs
    has_embedder = {job.spec.has_embedder for job in driven.reproductions}
    assert has_embedder == {method is not UNTRAINED}


def test_a_larger_budget_goes_on_and_a_smaller_looks_at_the_first_only(setup):
    log = TrialsInMemory()
    rising = iter(range(1000))

    def score(spec):
        return made_up_result(spec, next(rising) / 1000)

    small = _drive(setup, trials=2, reproductions=1, score=score, log=log)
    large = _drive(setup, trials=4, reproductions=1, score=score, log=log)
    assert (len(small.search), len(large.search)) == (8, 16)
    again = _drive(setup, trials=2, reproductions=1, score=score, log=log)
    assert again.search == small.search == large.search[:8]
    assert again.reproductions == small.reproductions
    assert again.reproductions != large.reproductions


def test_an_exhaustive_parameter_has_its_own_number_of_trials(setup):
    bins = {"loss.num_bins": Range(scale="int", low=2, high=4, exhaustive=True)}
    driven = _drive(setup, bins, trials=5, reproductions=1)
    tried = [job.spec.method.loss.arguments["num_bins"] for job in driven.search[::4] if job.spec.method.loss]
    assert tried == [2, 3, 4]
    assert PROTOCOLS["mlrc"].trainings_of(study(setup, bins, trials=5, reproductions=1)) == 4 * (3 + 1)


def test_before_a_search_no_training_is_foreseeable_and_without_one_all_are(setup):
    assert PROTOCOLS["mlrc"].foreseeable(study(setup)) == []
    assert PROTOCOLS["mlrc"].foreseeable(study(setup, {})) == [
        job.fingerprint for job in _drive(setup, {}).reproductions
    ]


def test_what_is_foreseeable_grows_with_the_search_up_to_all_trainings(setup):
    log = TrialsInMemory()
    given = study(setup, log=log, searches=2)
    known = []
    made = []

    def score(spec):
        made.append(spec.fingerprint)
        foreseen = PROTOCOLS["mlrc"].foreseeable(given)
        assert made == foreseen[: len(made)]
        known.append(len(foreseen))
        return _hump(spec)

    _drive(setup, searches=2, score=score, log=log)
    assert PROTOCOLS["mlrc"].foreseeable(given) == made
    # One trial after another; the end of a search settles its reproductions.
    assert sorted(set(known)) == [4, 8, 12, 16, 28, 32, 36, 40, 44, 56]


def test_the_kind_of_training_is_that_of_the_first_reproduction(setup):
    (classes,) = PROTOCOLS["mlrc"].kinds(study(setup, {}))
    assert setup.example(CONTRASTIVE, classes) == _drive(setup, {}).reproductions[0].spec
