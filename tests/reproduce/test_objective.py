"""The objective for a study of one's own: its trials are trainings of the suite, kept in the store."""

import multiprocessing
import pickle
import re
import subprocess
import sys
from types import SimpleNamespace

import optuna
import pytest

from reproduce.errors import InputError
from reproduce.outputs.find_runs import find_runs
from reproduce.run.objective import Objective
from results.store.store import Store
from tests.support.command_line import environment

SMALL = {"training.max_epochs": 1, "training.iterations_per_epoch": 2, "folds": 2}


FILE = """\
title: All that a file can have
dataset: {name: glyphs}
methods: [untrained, contrastive, triplet]
trunk: {name: small_conv, weights: random}
images: {resize: null, crop: 24, area: [0.6, 1.0], ratio: [0.9, 1.1], flip: false}
training: {optimizer: {name: Adam, lr: 1.0e-3, arguments: {}}}
variants: [{of: contrastive, key: held, title: Held, set: {loss.pos_margin: 0.0}}]
with: {held: {training.batch_size: 16}, triplet: {training.batch_size: 8}}
search: {default: true, searches: 3, until_decided: true, ranges: {triplet: {loss.margin: {low: 0.1, high: 0.2}}}}
primary: {compare: untrained}
reproductions: 2
"""


@pytest.fixture
def objective(tmp_path):
    (tmp_path / "file.yaml").write_text(FILE)
    (tmp_path / "published.yaml").write_text(re.sub("search: .*", "search: {trials: 0}", FILE))

    def make(method="contrastive", experiment="quickstart", **options):
        file = f"{tmp_path}/{experiment}" if experiment.endswith(".yaml") else experiment
        return Objective(file, method, SMALL, store=str(tmp_path / "store.sqlite"), workers=1, **options)

    return make


def once(objective, **study):
    """A study of one trial."""
    made = optuna.create_study(**{"direction": "maximize", **study})
    made.optimize(objective, n_trials=1)
    return made


def test_a_study_of_ones_own_trains_the_folds_through_the_store(objective, tmp_path):
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective(), n_trials=2)
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    folds = store.table("folds").set_index("fingerprint")["best_map_at_r"]
    assert len(folds) == 4
    for trial in study.trials:
        of_folds = folds[trial.user_attrs["trainings"]]
        assert trial.value == pytest.approx(of_folds.mean(), rel=1e-12)
        assert list(trial.intermediate_values.values()) == of_folds.tolist()
        assert set(trial.params) == {"loss.pos_margin", "loss.neg_margin"}
    again = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    again.optimize(objective(), n_trials=2)
    assert [trial.value for trial in again.trials] == [trial.value for trial in study.trials]
    assert len(store.table("folds")) == 4


def test_a_finished_trial_is_evaluated_again_from_the_store(objective, tmp_path):
    """As Optuna documents it: with the trial itself, or with its parameters as a fixed one."""
    own = objective(suggest=lambda trial: {"loss.neg_margin": trial.suggest_float("margin", 0.2, 0.8)})
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(own, n_trials=2)
    best = study.best_trial
    assert own(best) == best.value
    assert own(optuna.trial.FixedTrial(best.params, number=best.number)) == best.value
    other = own(optuna.trial.FixedTrial({"margin": 0.3}, number=5))
    assert 0 <= other <= 1
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    assert len(store.table("folds")) == 6
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 2


def test_a_space_of_ones_own_takes_the_place_of_the_cards(objective, tmp_path):
    setting = {"loss.neg_margin": 0.5, "optimizer.lr": 0.01, "batch.samples_per_class": 2}
    (trial,) = once(objective(suggest=lambda trial: setting)).trials
    assert (trial.params, trial.user_attrs["setting"]) == ({}, setting)
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    methods = [made.spec.method for made in store.fold_results(trial.user_attrs["trainings"]).values()]
    assert [(one.loss.arguments["neg_margin"], one.optimizer.lr, one.batch.samples_per_class) for one in methods] == [
        (0.5, 0.01, 2)
    ] * 2


def test_a_setting_is_tested_as_an_experiment_of_its_own(objective, tmp_path):
    setting = {"loss.neg_margin": 0.5, "optimizer.lr": 0.01}
    own = objective("held", "file.yaml", suggest=lambda trial: setting)
    once(own)
    runs = own.test(setting, "my_setting")
    store = Store(tmp_path / "store.sqlite", tmp_path / "artifacts")
    (start,) = store.starts()
    assert (start.name, start.runs, start.plan.titles) == ("my_setting", 2, {"held": "Held"})
    assert [run.hyperparameters for run in runs] == [setting] * 2
    specs = [spec for run in runs for spec in run.specs]
    assert {(spec.conditions.training.batch_size, spec.method.optimizer.lr) for spec in specs} == {(16, 0.01)}
    assert {spec.method.loss.arguments["pos_margin"] for spec in specs} == {0.0}
    assert len({spec.seed for spec in specs}) == len(store.table("folds")) - 2 == 4
    assert [run.fingerprint for run in own.test(setting, "my_setting")] == [run.fingerprint for run in runs]
    for name, reason in (("my setting", "use letters, digits and underscores"), ("quickstart", "choose another")):
        with pytest.raises(InputError, match=reason):
            own.test(setting, name)
    (stored,) = find_runs(store, "my_setting", "held", run=1)
    assert len(stored.trainings) == 2


@pytest.mark.parametrize(
    ("row", "file", "batch", "searched"),
    [
        ("triplet", "file.yaml", 8, {"loss.margin": (0.1, 0.2)}),
        ("held", "file.yaml", 16, {"loss.neg_margin": (-0.2, 2.0)}),
        (
            "cosface",
            "file.yaml",
            32,
            {"loss_optimizer.lr": (1e-6, 1.0), "loss.margin": (0, 1), "loss.scale": (0.01, 100)},
        ),
        ("contrastive", "published.yaml", 32, {"loss.pos_margin": (-0.2, 2.0), "loss.neg_margin": (-0.2, 2.0)}),
    ],
)
def test_an_objective_opens_any_row_of_any_file_and_further_methods(objective, row, file, batch, searched):
    study = objective(row, file).study
    assert study.method.name == row
    assert study.setup.conditions.training.batch_size == batch
    assert {target: one.ends for target, one in study.row.ranges.items()} == searched
    assert not study.row.enqueue


@pytest.mark.parametrize(
    ("study", "setting", "said"),
    [
        ({"direction": "minimize"}, {}, "the study's directions are minimize; MAP@R is one value to maximise: optuna"),
        ({"direction": None, "directions": ["maximize"] * 2}, {}, "the study's directions are maximize, maximize; "),
        ({}, {"loss.neg_margn": 0.5}, "takes no argument 'neg_margn'; it takes .*; the card searches loss.pos_margin"),
        ({}, {"optimizer.lrr": 0.5}, "has no hyperparameter 'optimizer.lrr'; .*, and optimizer.lr is the network's"),
    ],
)
def test_what_no_trial_can_do_is_said_by_the_first(objective, tmp_path, study, setting, said):
    asked = objective(suggest=lambda trial: setting)
    with pytest.raises(InputError, match=said):
        once(asked, **study)
    assert not (tmp_path / "store.sqlite").exists()


def finished(params):
    """A trial of a study with a wider range."""
    ranges = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in params}
    return optuna.trial.create_trial(params=params, distributions=ranges, value=0.5)


def test_a_function_that_suggests_nothing_is_named(objective):
    with pytest.raises(InputError, match=r"^suggest= returned None; it returns a dict of hyperparameters by target"):
        once(objective(suggest=lambda trial: None))


def enqueued(parameters):
    study = optuna.create_study(direction="maximize")
    study.enqueue_trial(parameters)
    return study.ask()


@pytest.mark.parametrize("make", [optuna.trial.FixedTrial, finished, enqueued])
def test_a_value_outside_its_range_is_not_trained(objective, tmp_path, make):
    own = objective(suggest=lambda trial: {"loss.neg_margin": trial.suggest_float("margin", 0.2, 0.8)})
    with (
        pytest.warns(UserWarning, match=r"out of (the )?range"),
        pytest.raises(InputError, match=r"^margin is 0.95, outside its range from 0.2 to"),
    ):
        own(make({"margin": 0.95}))
    assert not (tmp_path / "store.sqlite").exists()


def test_the_reason_of_a_refused_setting_is_logged(objective, caplog):
    (trial,) = once(objective(suggest=lambda trial: {"batch.samples_per_class": 5})).trials
    assert trial.state.name == "FAIL"
    assert f"trial 0 fails: {trial.user_attrs['reason']}" in caplog.text


def test_a_method_without_a_search_space_needs_a_function(objective):
    with pytest.raises(InputError, match="untrained: has no search space"):
        objective("untrained")


def test_a_daemonic_process_is_told_how_to_start(objective, monkeypatch):
    monkeypatch.setattr(multiprocessing, "current_process", lambda: SimpleNamespace(daemon=True))
    with pytest.raises(InputError, match=r"a daemonic process may start no processes.*; start yours with daemon=False"):
        objective()


class AfterTheFirstFold(optuna.pruners.BasePruner):
    def prune(self, study, trial):
        return trial.number == 1 and trial.last_step == 0


def test_a_pruner_ends_a_trial_between_two_folds(objective, tmp_path):
    study = optuna.create_study(direction="maximize", pruner=AfterTheFirstFold())
    study.optimize(objective(), n_trials=2)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED"]
    assert [len(trial.intermediate_values) for trial in study.trials] == [2, 1]
    assert len(study.trials[1].user_attrs["trainings"]) == 1
    assert len(Store(tmp_path / "store.sqlite", tmp_path / "artifacts").table("folds")) == 3


PROGRAM = """
import optuna
from reproduce.run.objective import Objective
settings = {"training.max_epochs": 1, "training.iterations_per_epoch": 2, "folds": 2}
objective = Objective("quickstart", "contrastive", settings, workers=2, device="cpu")
study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=2, n_jobs=2)
print([len(trial.intermediate_values) for trial in study.trials])
"""


def test_a_program_without_a_guard_trains_in_further_processes_and_several_trials_at_once(tmp_path):
    (tmp_path / "search.py").write_text(PROGRAM)
    command = [sys.executable, "search.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[2, 2]\n"), done.stderr


def test_an_objective_is_not_pickled(objective):
    with pytest.raises(InputError, match=r"^an Objective cannot be pickled; make one in each process"):
        pickle.dumps(objective())
