"""The protocol of A Metric Learning Reality Check (Musgrave, Belongie, Lim, ECCV 2020), for one method on one dataset.

The numbers in brackets are the sections of the specification that this suite follows, which was read off the authors'
code. Everything else the protocol consists of is in the values handed in: the class split and its four folds (2) in
`Problem.split`, transforms (3), network (4), optimizer and batches (5), validation, stopping and checkpoint (6) in
`protocols.training`.
"""

from dataclasses import dataclass

import optuna

from protocols.hyperparameters import OpenMethod
from protocols.problem import Problem
from protocols.search import SamplerSettings, Search, settled
from protocols.work import EvaluateJob, TrainJob, Work, evaluations, trainings
from results.records import RunRecord, run_fingerprint

PROTOCOL = "mlrc"


@dataclass(frozen=True)
class Budget:
    """How much is spent on one method: MLRC's 50 trials and 10 reproductions (7, 8)."""

    trials: int = 50
    reproductions: int = 10


def mlrc(
    problem: Problem,
    method: OpenMethod,
    budget: Budget,
    sampler: SamplerSettings,
    storage: optuna.storages.BaseStorage,
) -> Work[list[RunRecord]]:
    """Searches the method's hyperparameters on validation classes, reproduces the best setting, tests it."""
    # 7. Bayesian search, one trial after another. A trial is one setting, trained on every fold; its score is the mean
    # over folds of the best validation MAP@R. Only training and validation classes are in a FoldSpec.
    hyperparameters = {}
    if method.space:
        search, trials = open_search(problem, method, budget, sampler, storage)
        while search.trials_told() < trials:
            trial = search.ask()
            specs = problem.fold_specs(method.at(trial.hyperparameters), "search", trial.position)
            folds = yield from trainings([TrainJob(spec) for spec in specs])
            search.tell(trial, folds)
        hyperparameters = search.best(trials).hyperparameters

    # 8. The winning setting is trained again from scratch, from fresh seeds, on every fold. The search trial itself is
    # left out of the runs (11.5): it was selected for being lucky.
    runs = [
        problem.fold_specs(method.at(hyperparameters), "reproduction", run)
        for run in range(reproductions_of(problem, method, budget))
    ]
    names = [run_fingerprint(tuple(spec.fingerprint for spec in specs)) for specs in runs]
    results = yield from trainings(
        [TrainJob(spec, name) for specs, name in zip(runs, names, strict=True) for spec in specs]
    )

    # 8. Test classes appear here for the first time: each fold's model alone (separated), then all of them joined
    # (concatenated).
    jobs = []
    for run, specs in enumerate(runs):
        folds = results[run * len(specs) : (run + 1) * len(specs)]
        flags = tuple(f"fold {spec.fold}: {r.flag}" for spec, r in zip(specs, folds, strict=True) if r.flag)
        seconds = sum(fold.wall_time for fold in folds)
        jobs.append(EvaluateJob(specs, PROTOCOL, hyperparameters, run, problem.seed, seconds, flags))
    return (yield from evaluations(jobs))


def open_search(
    problem: Problem,
    method: OpenMethod,
    budget: Budget,
    sampler: SamplerSettings,
    storage: optuna.storages.BaseStorage,
) -> tuple[Search, int]:
    """The study of a method on a problem, new or continued, and its number of trials."""
    space, trials = settled(method.space, budget.trials)
    identity = {**problem.identity(), "method": method.method.model_dump(mode="json")}
    label = f"{problem.dataset.name}/{method.method.name}"
    return Search(storage, label, identity, space, sampler, problem.seed), trials


def trainings_of(problem: Problem, method: OpenMethod, budget: Budget) -> int:
    """Trainings that a method takes in all."""
    trials = settled(method.space, budget.trials)[1] if method.space else 0
    return problem.folds * (trials + reproductions_of(problem, method, budget))


def reproductions_of(problem: Problem, method: OpenMethod, budget: Budget) -> int:
    """Runs to be made: an untrained trunk with downloaded weights is the same in every run, so one is enough."""
    always_the_same = method.method.loss is None and problem.trunk.weights != "random"
    return min(1, budget.reproductions) if always_the_same else budget.reproductions
