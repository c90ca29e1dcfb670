"""The scores of trials, found among the trainings of a store by their seeds."""

import json
from dataclasses import replace

import pytest

from results.search_trials import SearchTrials, search_trials
from results.spec.data_choice import DataChoice
from results.spec.experiment_spec import Experiment
from results.spec.search_settings import SearchSettings
from results.spec.seeds import search_seed, training_seed
from results.spec.training_spec import Component, MethodSpec
from results.spec.trunk_spec import TrunkSpec
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from tests.support.measured_experiment import with_trainings
from tests.support.sample_records import some_result, some_run, some_spec, some_summary

EXPERIMENT = Experiment(
    title="T",
    dataset=DataChoice(name="glyphs"),
    methods=("triplet",),
    trunk=TrunkSpec(name="small_conv", weights="random"),
    search=SearchSettings(trials=3),
    folds=2,
    seed=7,
)
SCORES = {0: (0.3, 0.4), 1: (0.5, 0.6), 2: (0.5, 0.4)}


def method(trial):
    return MethodSpec(name="triplet", loss=Component(name="TripletMarginLoss", arguments={"margin": trial / 10}))


def training(purpose, number, fold, score, search=0, **changes):
    seed = training_seed(7, search, purpose, number, fold)
    spec = some_spec(seed=seed, fold=fold, **{"method": method(number), **changes})
    return spec, some_result(spec, score)


def searched(search=0, **changes):
    return [
        training("search", trial, fold, score, search, **changes)
        for trial, scores in SCORES.items()
        for fold, score in enumerate(scores)
    ]


def trial_scores(*arguments):
    trials = search_trials(*arguments)
    return () if trials is None else trials.scores


REPRODUCTION, _ = training("reproduction", 0, 0, 0.5, method=method(1))
RUN = some_run(fold_fingerprints=("a", "b"))


def test_scores_are_means_over_folds_by_trial():
    others = [training("reproduction", 0, 0, 0.9), training("search", 3, 0, 0.9)]
    assert trial_scores(EXPERIMENT, RUN, REPRODUCTION, searched() + others) == pytest.approx((0.35, 0.55, 0.45))


def test_each_search_has_its_trials():
    stored = searched() + [training("search", 0, fold, 0.9, 1) for fold in range(2)]
    second = some_run(fold_fingerprints=("a", "b"), search=1)
    winner, _ = training("reproduction", 0, 0, 0.5, 1, method=method(0))
    assert trial_scores(EXPERIMENT, second, winner, stored) == (0.9,)
    assert len(trial_scores(EXPERIMENT, RUN, REPRODUCTION, stored)) == 3


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param([], id="nothing"),
        pytest.param(searched()[:-1], id="a fold is missing"),
        pytest.param(searched()[2:], id="the first trial is missing"),
        pytest.param([*searched(), training("search", 0, 0, 0.2, method=method(9))], id="two searches of equal seeds"),
        pytest.param(searched(embedding_size=32), id="other conditions"),
    ],
)
def test_trials_that_are_not_certain_are_no_trials(stored):
    assert trial_scores(EXPERIMENT, RUN, REPRODUCTION, stored) == ()


def test_a_search_that_led_to_another_setting_is_not_that_of_the_runs():
    other, _ = training("reproduction", 0, 0, 0.5, method=method(2))
    assert trial_scores(EXPERIMENT, RUN, other, searched()) == ()


def test_a_store_gives_the_scores_with_the_trainings(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path)
    summary = some_summary(methods={"triplet": "Triplet"}, trials=3, settings=EXPERIMENT.without_folder())
    reproduced = [training("reproduction", 0, fold, 0.5, method=method(1)) for fold in range(2)]
    for spec, result in (*searched(), *reproduced):
        store.put_fold(spec, result)
    run = some_run(fold_fingerprints=tuple(spec.fingerprint for spec, _ in reproduced))
    store.put_experiment("x", "some", summary)
    store.put_run(run)
    store.enlist("x", "triplet", 0, run.fingerprint)
    measured = MeasuredExperiment.from_store(store, "x", trainings=True)
    assert measured.searches == {("triplet", 0): SearchTrials(pytest.approx((0.35, 0.55, 0.45)), 200)}
    assert MeasuredExperiment.from_json(measured.to_json()) == measured
    assert MeasuredExperiment.from_store(store, "x").searches == {}


def test_a_record_without_trainings_keeps_the_trials():
    measured = replace(with_trainings(), searches={("contrastive", 0): SearchTrials((0.16, 0.155), 250.0)})
    kept = MeasuredExperiment.from_json(measured.without_trainings().to_json())
    assert (kept.trainings, kept.records, kept.searches) == ({}, measured.records, measured.searches)


def test_files_from_before_have_no_lengths():
    measured = replace(with_trainings(), searches={("contrastive", 0): SearchTrials((0.16, 0.155), None)})
    content = json.loads(measured.to_json())
    del content["searches"][0]["iterations"]
    assert MeasuredExperiment.from_json(json.dumps(content)) == measured


def test_the_first_search_has_the_seed_of_the_experiment():
    assert search_seed(7, 0) == 7
    assert len({search_seed(seed, search) for seed in range(3) for search in range(3)}) == 9


def test_a_race_is_known_again_from_the_store_whatever_idle_workers_trained():
    racing = EXPERIMENT.model_copy(update={"search": SearchSettings(trials=3, racing=True)})
    scores = {0: (0.5, 0.6), 1: (0.1,), 2: (0.52, 0.64)}
    stored = [training("search", t, fold, score) for t, folds in scores.items() for fold, score in enumerate(folds)]
    winner, _ = training("reproduction", 0, 0, 0.5, method=method(2))
    # The second trial stopped after the first fold, 0.4 behind the best.
    expected = pytest.approx((0.55, 0.15, 0.58))
    assert trial_scores(racing, RUN, winner, stored) == expected
    ahead = training("search", 1, 1, 0.9)
    assert trial_scores(racing, RUN, winner, [*stored, ahead]) == expected
    # Without racing the trial is incomplete, and in a race the best trial needs all folds.
    assert trial_scores(EXPERIMENT, RUN, winner, stored) == ()
    assert trial_scores(racing, RUN, winner, stored[:-1]) == ()
