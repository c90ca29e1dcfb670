"""Trainings handed to a scheduler or an executor, and what an observer was told of them."""

import torch

from protocols.evaluation.test_data import test_data
from protocols.jobs import EvaluateJob, TrainJob, evaluations, trainings
from reproduce.execution.executor import in_order
from reproduce.execution.tasks import EvaluateTask, TrainTask
from results.records.artifacts import weights_path
from results.records.records import run_fingerprint
from tests.support.small_problem import COSFACE, TRIPLET, UNTRAINED


class Observer:
    def __init__(self, executor=None):
        self.executor, self.seen, self.ticked, self.not_needed = executor, [], [], []

    def job_done(self, method, job, outcome, *, from_store):
        self.seen.append((method, outcome.fingerprint, from_store))

    def spared(self, method, fingerprints):
        self.not_needed += fingerprints

    def ticks(self, ticks):
        self.ticked += ticks


def reproduction(problem, method=TRIPLET, run=0):
    """A protocol of one reproduction: trainings, then their test."""
    specs = problem.fold_specs(method, "reproduction", run)
    name = run_fingerprint(tuple(spec.fingerprint for spec in specs))
    folds = yield from trainings([TrainJob(spec, name) for spec in specs])
    assert [fold.fingerprint for fold in folds] == [spec.fingerprint for spec in specs]
    return (yield from evaluations([EvaluateJob(specs, "mlrc", {}, run, 5, 1.0)]))


def specs_of(problem):
    return [spec for method in (TRIPLET, COSFACE, UNTRAINED) for spec in problem.fold_specs(method, "reproduction", 0)]


def carry_out_all(executor, problem, folder):
    """The results of all methods' trainings and tests, and the checkpoints' bytes."""
    try:
        specs = specs_of(problem)
        tasks = [TrainTask(TrainJob(s, "r"), problem.training_data(s), weights_path(folder, s)) for s in specs]
        folds = [future.result().result for future in in_order(executor, [executor.submit(task) for task in tasks])]
        jobs = [EvaluateJob(tuple(specs[i : i + 2]), "mlrc", {}, 0, 5, 1.0) for i in range(0, len(specs), 2)]
        tests = [
            EvaluateTask(
                job, test_data(problem.dataset, problem.split), tuple(weights_path(folder, spec) for spec in job.specs)
            )
            for job in jobs
        ]
        runs = [future.result() for future in in_order(executor, [executor.submit(task) for task in tests])]
    finally:
        executor.close()
    weights = [torch.load(weights_path(folder, spec), weights_only=True) for spec in specs]
    return folds, runs, weights


def without_time(records):
    return [record.model_dump(exclude={"wall_time", "provenance"}) for record in records]
