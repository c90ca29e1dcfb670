"""Code of users reaches no other training, and only code that the hash covers gives results."""

from contextlib import closing
from pathlib import Path

import pytest

from protocols.jobs import TrainJob
from protocols.problem import Problem
from protocols.training.check_method import check_method, with_versions
from protocols.users_files.sources import SourceError
from reproduce.execution.clusters.nodes import outcome_of
from reproduce.execution.executor import Executor, in_order
from reproduce.execution.local import InProcess, LocalProcesses
from reproduce.execution.tasks import Trained, TrainTask
from results.records.records import FoldResult
from results.spec.training_spec import Component, FoldSpec, MethodSpec
from tests.support.scheduling import without_time
from tests.support.small_problem import TRIPLET, small_problem

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")

SPREADING = """\
import torch
from pytorch_metric_learning.losses import TripletMarginLoss
from torch import nn

TripletMarginLoss.compute_loss = lambda self, *arguments: self.zero_losses()
torch.nn.functional.normalize = lambda x, *arguments, **options: x.round()


class Mine(nn.Module):
    def forward(self, embeddings, labels, indices_tuple=None):
        torch.set_default_dtype(torch.float64)
        torch.use_deterministic_algorithms(False)
        torch.set_grad_enabled(True)
        return embeddings.square().mean()
"""

LATE = """\
from torch import nn


class Mine(nn.Module):
    calls = 0

    def forward(self, embeddings, labels, indices_tuple=None):
        self.calls += 1
        if self.calls > 5:
            import late_helper
        return embeddings.square().mean()
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return small_problem(tmp_path_factory.mktemp("cache"))


def own(folder: Path, text: str, name: str = "mine.py") -> MethodSpec:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return with_versions(MethodSpec(name="mine", loss=Component(name=f"{folder / name}:Mine")))


def task(problem: Problem, spec: FoldSpec) -> TrainTask:
    return TrainTask(TrainJob(spec), problem.training_data(spec), None)


def trained(executor: Executor, problem: Problem, methods: list[MethodSpec]) -> list[FoldResult]:
    """Train a fold of each method, one after another."""
    tasks = [task(problem, problem.fold_specs(method, "search", 0)[0]) for method in methods]
    with closing(executor):
        futures = [executor.submit(each) for each in tasks]
        done = [future.result() for future in in_order(executor, futures)]
    return [outcome.result for outcome in done if isinstance(outcome, Trained)]


@pytest.mark.parametrize("executor", [InProcess, lambda device: LocalProcesses(device, 1)])
def test_what_foreign_code_changes_reaches_no_other_training(problem, tmp_path, executor) -> None:
    spreading, other = own(tmp_path / "one", SPREADING), own(tmp_path / "two", SPREADING.replace("square", "abs"))
    (alone,), (other_alone,) = (trained(InProcess("cpu"), problem, [method]) for method in (TRIPLET, other))
    results = trained(executor("cpu"), problem, [spreading, TRIPLET, other, TRIPLET])
    assert without_time(results[1:]) == without_time([alone, other_alone, alone])


def test_a_node_of_a_cluster_keeps_foreign_code_apart(problem, tmp_path) -> None:
    specs = [problem.fold_specs(method, "search", 0)[0] for method in (own(tmp_path, SPREADING), TRIPLET)]
    ticks: list[object] = []
    outcomes = [outcome_of(task(problem, spec), "cpu", 1, ticks.append) for spec in specs]
    assert all(isinstance(outcome, Trained) for outcome in outcomes)
    assert {tick.fingerprint for tick in ticks} == {spec.fingerprint for spec in specs}
    (alone,) = trained(InProcess("cpu"), problem, [TRIPLET])
    assert without_time([outcomes[1].result]) == without_time([alone])


def test_code_that_is_loaded_late_gives_no_result(problem, tmp_path, monkeypatch) -> None:
    (tmp_path / "late_helper.py").write_text("x = 1\n")
    method = own(tmp_path, LATE)
    with pytest.raises(SourceError, match=r"late_helper\.py was loaded late, .* import it at the top of that file$"):
        trained(InProcess("cpu"), problem, [method])
    at_the_top = own(tmp_path, "import late_helper\n" + LATE, "other.py")
    assert trained(InProcess("cpu"), problem, [at_the_top])[0].status == "ok"


def test_a_helper_that_changes_during_a_run_is_refused(problem, tmp_path) -> None:
    (tmp_path / "helper.py").write_text("x = 1\n")
    method = own(tmp_path, "import helper\n" + LATE.replace("if self.calls > 5", "if False"))
    (tmp_path / "helper.py").write_text("x = 2\n")
    with pytest.raises(ValueError, match=r"helper\.py has changed: this run began with sha256 "):
        trained(InProcess("cpu"), problem, [method])


def test_methods_without_foreign_code_are_checked_without_a_process(monkeypatch) -> None:
    def start(*_: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("protocols.users_files.sources.apart", start)
    check_method(TRIPLET)
    with_versions(TRIPLET)
