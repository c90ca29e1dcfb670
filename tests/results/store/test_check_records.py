"""What a training, a test or a trial says twice is computed again; `test_contradicting_records` tries all of it."""

import pytest

from results.records.records import ClassScores, FoldResult, RunRecord
from results.records.trials import Trial
from results.store.check_runs import run_and_training_faults, run_faults
from results.store.check_searches import readable_study, trial_faults
from results.store.check_trainings import CheckedTraining, training_faults
from tests.support.sample_records import scores
from tests.support.sound_store import IDENTITY, sound_result, sound_run, sound_spec

SPEC = sound_spec()
RESULT, RUN = sound_result(SPEC, 0.4), sound_run(0, 0.4)


def faults_of_training(result: FoldResult) -> list[str]:
    return list(training_faults(SPEC, result))


def faults_of_run(run: RunRecord, result: FoldResult = RESULT) -> list[str]:
    trainings = {SPEC.fingerprint: CheckedTraining.of(SPEC, result, whole=False)}
    return [*run_faults(run), *run_and_training_faults(run, trainings)]


def test_made_up_records_that_fit_have_no_fault():
    assert faults_of_training(RESULT) == []
    assert faults_of_run(RUN) == []


@pytest.mark.parametrize(
    "change",
    [
        *({"best_map_at_r": 0.41}, {"best_iteration": 100}, {"untrained_map_at_r": 0.1}, {"beats_untrained": False}),
        *({"iterations": -5}, {"iterations": 300}, {"stopped_by": "patience"}, {"stopped_by": "nan"}),
        *({"status": "nan"}, {"reason": "no power"}, {"curve": RESULT.curve[:-1]}, {"curve": ()}),
        *({"wall_time": -1.0}, {"wall_time": float("nan")}, {"curve": (*RESULT.curve, RESULT.curve[-1])}),
        {"curve": tuple(point.model_copy(update={"map_at_r": 7.5}) for point in RESULT.curve)},
    ],
)
def test_a_training_that_contradicts_its_curve_is_named(change):
    assert faults_of_training(RESULT.model_copy(update=change))


@pytest.mark.parametrize(
    "change",
    [
        *({"method": "contrastive"}, {"dataset": "cub200"}, {"data_fingerprint": "0" * 32}, {"seed": 1}, {"run": 1}),
        *({"search": 1}, {"protocol": "standard"}, {"hyperparameters": {"loss.margin": 0.2}}, {"dimensions": 17}),
        *({"hyperparameters": {"x": 1}}, {"training_version": 1}, {"flags": ("fold 0: it burned",)}, {"steps": 1}),
        *({"iterations": 1}, {"separated": scores(0.5)}, {"concatenated": scores(0.5)}, {"fold_scores": ()}),
        *({"last_epoch": scores(0.4)}, {"chosen_by": (SPEC.fingerprint,)}, {"metrics_separated": {"nmi": 0.5}}),
        {"class_scores": ClassScores(queries=(1498,), separated=(scores(0.4),), concatenated=(scores(0.4),))},
    ],
)
def test_a_run_that_contradicts_itself_or_its_training_is_named(change):
    assert faults_of_run(RUN.model_copy(update=change))


def test_a_run_without_the_warning_of_its_training_is_named():
    flagged = RESULT.model_copy(update={"beats_untrained": False})
    assert faults_of_run(RUN, flagged) == ["its flags are not those of its trainings"]


def test_a_trial_that_contradicts_its_search_or_its_training_is_named():
    spec = sound_spec(0, "search", 0.1)
    trainings = {spec.fingerprint: CheckedTraining.of(spec, sound_result(spec, 0.4), whole=False)}
    made = {"number": 0, "setting": {"loss.margin": 0.1}, "state": "complete", "score": 0.4, "fold_scores": (0.4,)}
    study, trial = readable_study(IDENTITY), Trial(**made, trainings=(spec.fingerprint,))
    assert list(trial_faults(study, trial, [], trainings)) == []
    for change in (
        {"setting": {"loss.margin": 0.2}},
        {"setting": {"loss.margin": 2.0}},
        {"setting": {}},
        {"state": "raced"},
        {"number": 1},
        {"fold_scores": (0.5,)},
        {"reason": "no power"},
    ):
        assert list(trial_faults(study, trial.model_copy(update=change), [], trainings)), change
