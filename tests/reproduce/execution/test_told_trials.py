"""A resumed run counts the trainings of earlier runs before its first training."""

import io

import optuna
import pytest
from rich.console import Console

from protocols.search.open_method import OpenMethod
from protocols.search.space import SearchParameter
from protocols.search.study import Budget, Study
from reproduce.execution.told_trials import count_told_trials
from reproduce.monitoring.progress import RunProgress
from reproduce.monitoring.time_left import Forecast
from results.spec.search_settings import SamplerSettings
from results.store.store import Store
from tests.support.sample_records import some_result
from tests.support.small_problem import TRIPLET, UNTRAINED, small_problem

MARGIN = SearchParameter(target="loss.margin", scale="linear", low=0.0, high=1.0)
TRIALS, FOLDS = 5, 2


@pytest.fixture
def studies(tmp_path):
    problem, storage = small_problem(tmp_path), optuna.storages.InMemoryStorage()
    methods = {"triplet": OpenMethod(method=TRIPLET, space=(MARGIN,)), "untrained": OpenMethod(method=UNTRAINED)}
    budget = Budget(trials=TRIALS)
    return {key: Study(problem, method, budget, SamplerSettings(), storage) for key, method in methods.items()}


def test_only_trainings_of_finished_trials_are_counted(studies, tmp_path):
    store = Store(f"sqlite:///{tmp_path}/store.sqlite", tmp_path / "artifacts")
    work = studies["triplet"].best_hyperparameters()
    jobs = next(work)
    for best in (0.7, 0.4):
        results = [some_result(job.spec, best, wall_time=3.0) for job in jobs]
        for job, result in zip(jobs, results, strict=True):
            store.put_fold(job.spec, result)
        jobs = work.send(results)
    # The third trial was interrupted after its first training.
    store.put_fold(jobs[0].spec, some_result(jobs[0].spec, wall_time=1000.0))

    forecast = Forecast({"triplet": TRIALS * FOLDS, "untrained": 0}, workers=1)
    progress = RunProgress(Console(file=io.StringIO()), forecast, {"triplet": "", "untrained": ""}, FOLDS)
    count_told_trials(studies, store, forecast, progress)
    assert progress.notes["triplet"] == "search, 4 of 10 trainings, best fold's validation MAP@R 0.7000"
    assert progress.notes["untrained"] == "waiting"
    assert (forecast.done["triplet"], forecast.n_done) == (2 * FOLDS, 2 * FOLDS)
    assert forecast.made_now == 0
    assert forecast.seconds_left() == pytest.approx(3.0 * 3 * FOLDS)
