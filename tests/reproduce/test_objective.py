"""The objective for a study of one's own: its trials are trainings of the suite, kept in the store."""

import multiprocessing
import subprocess
import sys
from types import SimpleNamespace

import optuna
import pytest

from reproduce.errors import InputError
from reproduce.run.objective import Objective
from results.store.store import Store
from tests.support.command_line import environment

SMALL = {"training.max_epochs": 1, "training.iterations_per_epoch": 2, "folds": 2}


@pytest.fixture
def objective(tmp_path):
    def make(method="contrastive", **options):
        return Objective("quickstart", method, SMALL, store=str(tmp_path / "store.sqlite"), workers=1, **options)

    return make


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


def test_a_space_of_ones_own_takes_the_place_of_the_cards(objective, tmp_path):
    study = optuna.create_study(direction="maximize")
    study.optimize(objective(suggest=lambda trial: {"loss.neg_margin": 0.5, "loss.pos_margin": 0.1}), n_trials=1)
    (trial,) = study.trials
    assert trial.params == {}
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    specs = [made.spec for made in store.fold_results(trial.user_attrs["trainings"]).values()]
    assert [spec.method.loss.arguments["neg_margin"] for spec in specs] == [0.5, 0.5]


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
