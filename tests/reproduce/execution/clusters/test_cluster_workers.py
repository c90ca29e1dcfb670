"""What Ray and SLURM share: workers' environment, marks in shared folders, outcomes that are errors."""

import os
import sys
from pathlib import Path

from protocols.jobs import TrainJob
from protocols.splits import SplitError
from protocols.trunks.weights import WEIGHTS_VARIABLE
from reproduce.execution.clusters.nodes import environment_of_workers, first_line, mark, outcome_of, unseen_folder
from reproduce.execution.tasks import Trained, TrainTask
from tests.support.small_problem import TRIPLET, small_problem


def test_workers_get_the_modules_weights_and_threads_of_this_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCH_HOME", "home")
    monkeypatch.setenv(WEIGHTS_VARIABLE, "own.pth")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    variables = environment_of_workers(3)
    assert variables[WEIGHTS_VARIABLE] == str(tmp_path / "own.pth")
    assert variables["TORCH_HOME"] == str(tmp_path / "home")
    assert variables["OMP_NUM_THREADS"] == variables["MKL_NUM_THREADS"] == "3"
    places = variables["PYTHONPATH"].split(os.pathsep)
    assert places[0] == str(Path(__file__).resolve().parents[4])
    assert str(tmp_path) in places
    assert os.path.dirname(os.__file__) not in places
    monkeypatch.delenv(WEIGHTS_VARIABLE)
    assert WEIGHTS_VARIABLE not in environment_of_workers(3)


def test_an_error_is_the_outcome_of_its_task(tmp_path):
    problem = small_problem(tmp_path)
    first, other = problem.fold_specs(TRIPLET, "search", 0)
    ticks = []
    good = outcome_of(TrainTask(TrainJob(first), problem.training_data(first), None), "cpu", 1, ticks.append)
    assert isinstance(good, Trained)
    # The task begins, then its network without training is validated.
    assert [tick.iterations for tick in ticks] == [0, 0, 3, 6]
    bad = outcome_of(TrainTask(TrainJob(first), problem.training_data(other), None), "cpu", 1, ticks.append)
    assert isinstance(bad, SplitError)


def test_every_mark_is_a_new_file_and_a_missing_one_names_its_folder(tmp_path):
    first, second = mark(tmp_path / "new"), mark(tmp_path / "new")
    assert first != second
    assert first.exists()
    assert unseen_folder(first).startswith(f"does not see {tmp_path / 'new'}; ")


def test_an_error_without_a_message_is_named_by_its_class():
    assert first_line(ValueError("one\ntwo")) == "one"
    assert first_line(ValueError()) == "ValueError"
