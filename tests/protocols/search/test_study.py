"""The study of one method on one problem: what decides it, its seeds, and what earlier runs left of it."""

from dataclasses import replace
from typing import Any

import optuna
import pytest

from protocols.jobs import TrainJob
from protocols.problem import Problem
from protocols.search.open_method import OpenMethod
from protocols.search.space import SearchParameter
from protocols.search.study import Budget, Study
from protocols.splits import mlrc_split
from results.spec.search_settings import SamplerSettings
from results.spec.training_spec import ImageSettings, TrainingSettings
from results.spec.trunk_spec import TrunkSpec
from results.values import derive_seed
from tests.support.small_problem import COSFACE, TRIPLET, small_problem
from tests.support.toys import made_up_result

MARGIN = SearchParameter(target="loss.margin", scale="linear", low=0.0, high=1.0)
OPEN = OpenMethod(method=TRIPLET, space=(MARGIN,))


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return small_problem(tmp_path_factory.mktemp("cache"))


def study_of(problem: Problem, storage: optuna.storages.BaseStorage | None = None, **changes: Any) -> Study:
    fields: dict[str, Any] = {"method": OPEN, "budget": Budget(trials=4), "sampler": SamplerSettings()}
    return Study(problem, storage=storage or optuna.storages.InMemoryStorage(), **{**fields, **changes})


CHANGES: dict[str, dict[str, Any]] = {
    "split": {"split": replace(mlrc_split(16), name="another")},
    "folds": {"folds": 1},
    "images": {"images": ImageSettings(resize=None, crop=8)},
    "trunk": {"trunk": TrunkSpec(name="small_conv", weights="random", batch_norm="frozen")},
    "embedding_size": {"embedding_size": 4},
    "training": {"training": TrainingSettings()},
    "seed": {"seed": 6},
    "embedder_bias": {"embedder_bias": False},
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_shared_condition_makes_another_study(problem: Problem, change: str) -> None:
    changed = replace(problem, **CHANGES[change])
    assert study_of(changed).open().fingerprint != study_of(problem).open().fingerprint


@pytest.mark.parametrize("change", [{"fingerprint": "d" * 32}, {"name": "another"}])
def test_other_data_make_another_study(problem: Problem, change: dict[str, str]) -> None:
    changed = replace(problem, dataset=replace(problem.dataset, **change))
    assert study_of(changed).open().fingerprint != study_of(problem).open().fingerprint


def test_another_method_makes_another_study_and_a_longer_budget_does_not(problem: Problem) -> None:
    margin = OpenMethod(method=COSFACE, space=(MARGIN,))
    assert study_of(problem, method=margin).open().fingerprint != study_of(problem).open().fingerprint
    assert study_of(problem, budget=Budget(trials=50)).open().fingerprint == study_of(problem).open().fingerprint


def test_seeds_come_from_the_trials_position_and_not_from_its_number(problem: Problem) -> None:
    study = study_of(problem)
    # An earlier run died between the start of a trial and its first hyperparameter: its number is used up.
    study.open().study.ask()
    work = study.best_hyperparameters()
    jobs = next(work)
    for position in range(2):
        assert all(isinstance(job, TrainJob) for job in jobs)
        specs = [job.spec for job in jobs]
        assert [spec.seed for spec in specs] == [derive_seed(5, "search", position, fold) for fold in (0, 1)]
        assert study.open().asked()[position].number == position + 1
        jobs = work.send([made_up_result(spec.fingerprint, 0.5) for spec in specs])


def test_what_was_asked_is_said_in_order_with_what_is_over(problem: Problem) -> None:
    study = study_of(problem)
    study.open().study.ask()
    work = study.best_hyperparameters()
    asked, jobs = [], next(work)
    for _ in range(2):
        asked += [(job.spec, True) for job in jobs]
        jobs = work.send([made_up_result(job.spec.fingerprint, 0.5) for job in jobs])
    asked += [(job.spec, False) for job in jobs]
    assert study.asked_specs() == asked
    assert len(asked) == 6
