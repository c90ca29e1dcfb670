"""One job of an array, called in this process: what it writes, what it leaves out, and which nodes it refuses."""

import pickle
from contextlib import nullcontext

import pytest

from protocols.jobs import TrainJob
from reproduce.errors import InputError
from reproduce.execution.clusters import slurm_job
from reproduce.execution.clusters.nodes import CodeVersion, code_version, mark
from reproduce.execution.clusters.slurm_job import SlurmBatch, outcome_path, progress_path
from reproduce.execution.executor import WorkerDiedError
from reproduce.execution.tasks import Trained, TrainTask
from tests.support.scheduling import without_time
from tests.support.small_problem import TRIPLET, small_problem

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")
submitit_errors = pytest.importorskip("submitit.core.utils", reason="submitit is not installed: pip install submitit")


def batch(folder, **changes):
    problem = small_problem(folder / "cache")
    specs = problem.fold_specs(TRIPLET, "search", 0)
    tasks = {7 + i: TrainTask(TrainJob(spec), problem.training_data(spec), None) for i, spec in enumerate(specs)}
    (folder / "jobs").mkdir(exist_ok=True)
    fields = {
        "tasks": tasks,
        "folder": folder / "jobs",
        "marks": (mark(folder / "cache"),),
        "version": code_version(),
        "device": "cpu",
        "threads": 1,
        "minutes": 60,
    }
    return SlurmBatch(**{**fields, **changes})


def outcomes(member):
    paths = [outcome_path(member.folder, number) for number in member.tasks]
    return [pickle.loads(path.read_bytes()) if path.exists() else None for path in paths]


def test_every_task_has_an_outcome_and_its_progress(tmp_path):
    member = batch(tmp_path)
    member()
    results = outcomes(member)
    names = [task.job.spec.fingerprint for task in member.tasks.values()]
    assert [trained.result.fingerprint for trained in results] == names
    assert progress_path(member.folder, 8).read_text() == "".join(f"{names[1]} {n}\n" for n in (0, 0, 3, 6))


def test_a_requeued_job_leaves_out_what_is_finished(tmp_path):
    member = batch(tmp_path)
    outcome_path(member.folder, 7).write_bytes(pickle.dumps("finished before"))
    again = member.checkpoint().function
    again()
    first, second = outcomes(again)
    assert first == "finished before"
    assert isinstance(second, Trained)


def test_a_node_that_does_not_see_a_folder_trains_nothing(tmp_path):
    member = batch(tmp_path, marks=(tmp_path / "cache" / ".seen-elsewhere",))
    member()
    for outcome in outcomes(member):
        assert isinstance(outcome, InputError)
        assert f"does not see {tmp_path / 'cache'};" in str(outcome)


def test_a_node_with_other_code_trains_nothing(tmp_path):
    member = batch(tmp_path, version=CodeVersion("another hash", code_version().origin))
    member()
    for outcome in outcomes(member):
        assert isinstance(outcome, InputError)
        assert "has other code (its files of the suite are not those of this run)" in str(outcome)


def test_at_the_time_limit_the_option_is_named_and_the_other_tasks_are_left(tmp_path, monkeypatch):
    def ends_in_the_middle(task, device, threads, report):
        return submitit_errors.UncompletedJobError("Job not requeued because: timed-out too many times.")

    monkeypatch.setattr(slurm_job, "outcome_of", ends_in_the_middle)
    member = batch(tmp_path)
    member()
    first, second = outcomes(member)
    assert isinstance(first, InputError)
    assert str(first) == "--slurm time=60: a training needs more than 60 minutes; use a longer time"
    assert second is None


def test_on_a_gpu_a_job_trains_its_batch_side_by_side(tmp_path):
    """The pool of processes has no GPU here; the numbers are those of one after another."""
    alone, together = batch(tmp_path), batch(tmp_path, side_by_side=2)
    alone()
    apart = outcomes(alone)
    for path in alone.folder.iterdir():
        path.unlink()
    together()
    assert without_time([each.result for each in outcomes(together)]) == without_time([each.result for each in apart])
    assert progress_path(together.folder, 8).read_text().endswith(" 6\n")


@pytest.mark.parametrize("requeued", [False, True])
def test_side_by_side_the_end_of_a_job_is_heard_in_its_main_thread(tmp_path, monkeypatch, requeued):
    """At the time limit submitit's handler raises its error, or after it has queued the job again, SystemExit."""
    member = batch(tmp_path, side_by_side=2)
    outcome_path(member.folder, 7).write_bytes(pickle.dumps("finished before"))
    handled = SystemExit(-1) if requeued else submitit_errors.UncompletedJobError("timed-out too many times")

    def signalled(*_, **__):
        raise handled

    monkeypatch.setattr(slurm_job, "wait", signalled)
    with pytest.raises(SystemExit) if requeued else nullcontext():
        member()
    first, second = outcomes(member)
    assert first == "finished before"
    assert second is None if requeued else "a training needs more than 60 minutes" in str(second)


class PickyError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def test_an_error_that_cannot_be_unpickled_keeps_its_name_and_message(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_job, "outcome_of", lambda *_: PickyError("one", "two"))
    member = batch(tmp_path)
    member()
    for outcome in outcomes(member):
        assert isinstance(outcome, WorkerDiedError)
        assert str(outcome) == "PickyError: one and two"
