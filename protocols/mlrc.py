"""The protocol of A Metric Learning Reality Check (Musgrave, Belongie, Lim, ECCV 2020), for one method on one dataset.

The numbers in brackets are sections of the specification that this suite follows, which was written from the authors'
code. The rest of the protocol is elsewhere: the class split and its four folds (2) in `Problem.split`; transforms (3),
network (4), optimizer and batches (5), validation, stopping and checkpoint (6) in `protocols.training.train_fold`; the
search itself (7) in `protocols.search.study`.
"""

from pydantic import JsonValue

from protocols.jobs import TrainJob, Work, evaluation_job, evaluations, trainings
from protocols.search.study import Study
from results.records import RunRecord
from results.training_spec import FoldSpec

PROTOCOL = "mlrc"
SPLIT = "mlrc"


def mlrc(study: Study) -> Work[list[RunRecord]]:
    """Searches the method's hyperparameters on validation classes, reproduces the best setting and tests it.

    Args:
        study: The method, its search space and budget, and the problem that all methods of the experiment share.

    Yields:
        Lists of jobs that may run side by side. Send their outcomes back in the same order.

    Returns:
        One record per reproduction.
    """
    # 7. Bayesian search, one trial after another, each trained on every fold and scored on validation classes.
    hyperparameters = yield from study.best_hyperparameters()

    # 8. The winning setting is trained again from scratch, from fresh seeds, on every fold. The search trial itself is
    # left out of the runs (11.5): it was selected for being lucky.
    runs = reproductions(study, hyperparameters)
    names = [study.problem.run_name(specs) for specs in runs]
    results = yield from trainings(
        [TrainJob(spec, name) for specs, name in zip(runs, names, strict=True) for spec in specs]
    )

    # 8. Test classes appear here for the first time: each fold's model alone (separated), then all of them joined
    # (concatenated).
    jobs = []
    for run, specs in enumerate(runs):
        folds = results[run * len(specs) : (run + 1) * len(specs)]
        named = [(f"fold {spec.fold}", result) for spec, result in zip(specs, folds, strict=True)]
        jobs.append(evaluation_job(study.problem, PROTOCOL, specs, named, hyperparameters, run))
    return (yield from evaluations(jobs))


def reproductions(study: Study, hyperparameters: dict[str, JsonValue]) -> list[tuple[FoldSpec, ...]]:
    """The trainings of every reproduction."""
    method = study.method.at(hyperparameters)
    return [study.problem.fold_specs(method, "reproduction", run) for run in range(study.n_reproductions)]


def trainings_of(study: Study) -> int:
    """Trainings that a method takes in all."""
    return study.problem.folds * (study.n_trials + study.n_reproductions)


def foreseeable(study: Study) -> list[FoldSpec]:
    """The trainings that are settled so far: later trials depend on earlier scores, so nobody can name them yet."""
    hyperparameters = study.settled_hyperparameters()
    asked = [spec for spec, _ in study.asked_specs()]
    runs = [] if hyperparameters is None else reproductions(study, hyperparameters)
    return [*asked, *(spec for specs in runs for spec in specs)]
