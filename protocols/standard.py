"""The protocol of the papers' own tables: one model on the conventional split, with the epoch chosen honestly.

The papers train on all training classes, evaluate the test classes after every epoch and, in most released code, report
the best of these scores. Here the epoch is chosen on validation classes: a first training on three quarters of the
training classes says after which epoch the others are recognised best; a second, from the same seed, trains on all of
them, as the papers do, and its weights after that epoch are tested. What choosing by the test scores would have given
can be shown from recorded test curves, beside the honest number and never instead of it.
"""

from pydantic import JsonValue

from protocols.jobs import TrainJob, Work, evaluation_job, evaluations, trainings
from protocols.search.study import Study
from results.records import FoldResult, RunRecord
from results.training_spec import FoldSpec

PROTOCOL = "standard"
SPLIT = "conventional"


def standard(study: Study) -> Work[list[RunRecord]]:
    """Searches if there is anything to search, chooses the epoch of every run, trains on all classes and tests.

    Args:
        study: The method, its search space and budget, and the problem that all methods of the experiment share.

    Yields:
        Lists of jobs that may run side by side. Send their outcomes back in the same order.

    Returns:
        One record per reproduction.
    """
    hyperparameters = yield from study.best_hyperparameters()
    choosing = choices(study, hyperparameters)
    chosen = yield from trainings([TrainJob(spec) for spec in choosing])
    finals = [final(study, hyperparameters, run, chosen[run] if chosen else None) for run in _runs(study)]
    results = yield from trainings([TrainJob(spec, study.problem.run_name((spec,))) for spec in finals])
    jobs = []
    for run, (spec, result) in enumerate(zip(finals, results, strict=True)):
        choice = [("choosing the epoch", chosen[run])] if chosen else []
        named = [*choice, ("training on all classes", result)]
        jobs.append(evaluation_job(study.problem, PROTOCOL, (spec,), named, hyperparameters, run))
    return (yield from evaluations(jobs))


def choices(study: Study, hyperparameters: dict[str, JsonValue]) -> list[FoldSpec]:
    """The trainings that choose the epoch of every run; none for the untrained trunk, which has no epochs."""
    method = study.method.at(hyperparameters)
    if method.loss is None:
        return []
    return [study.problem.fold_specs(method, "reproduction", run)[0] for run in _runs(study)]


def final(study: Study, hyperparameters: dict[str, JsonValue], run: int, chosen: FoldResult | None) -> FoldSpec:
    """The training whose model is tested, on all training classes."""
    epoch = 0 if chosen is None else best_epoch(study, chosen)
    return study.problem.final_spec(study.method.at(hyperparameters), run, epoch)


def best_epoch(study: Study, chosen: FoldResult) -> int:
    """The trained epoch with the best validation score: epochs carry over to all classes, iterations do not.

    Args:
        study: The method's study, for the rhythm of validation.
        chosen: The training on three quarters of the classes. If it diverged, the validations before that count.

    Returns:
        The epoch, or 0 if the training was never validated after its start.
    """
    settings = study.problem.training
    # Equal scores go to the earlier epoch, as in the training itself.
    validated = [
        (point.map_at_r, -number)
        for number, point in enumerate(chosen.curve)
        if number > 0 and point.map_at_r is not None
    ]
    _, earlier = max(validated, default=(0.0, 0))
    return min(-earlier * settings.validate_every, settings.max_epochs)


def trainings_of(study: Study) -> int:
    """Trainings that a method takes in all."""
    stages = 1 if study.method.method.loss is None else 2
    return study.problem.folds * study.n_trials + stages * study.n_reproductions


def foreseeable(study: Study) -> list[FoldSpec]:
    """The trainings that are settled so far; the final ones wait for their epochs."""
    hyperparameters = study.settled_hyperparameters()
    asked = [spec for spec, _ in study.asked_specs()]
    return asked if hyperparameters is None else [*asked, *choices(study, hyperparameters)]


def _runs(study: Study) -> range:
    return range(study.n_reproductions)
