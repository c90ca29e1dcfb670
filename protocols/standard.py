"""The protocol of the papers' own tables: one model on the conventional split, its epoch chosen on validation classes.

The papers train on all training classes and evaluate the test classes after every epoch. Most released code reports the
best of these test scores. Here every run has two trainings from the same seed. The first trains on three quarters of
the training classes; the other quarter shows which epoch is best. The second trains on all training classes, as the
papers do, and its weights after that epoch are tested. Test curves can be recorded. They show what a choice by test
scores would give, beside the honest number and never instead of it.
"""

from pydantic import JsonValue

from protocols.jobs import TrainJob, Work, evaluation_job, evaluations, trainings
from protocols.search.study import Study
from results.records import FoldResult, RunRecord
from results.training_spec import FoldSpec

PROTOCOL = "standard"
SPLIT = "conventional"


def standard(study: Study) -> Work[list[RunRecord]]:
    """Run the protocol: search if the method has a search space, choose each run's epoch, train on all classes, test.

    Args:
        study: The method, its search space and budget, and the problem that all methods of the experiment share.

    Yields:
        Lists of jobs. The jobs of one list may run in parallel; send their outcomes back in the same order.

    Returns:
        One record per reproduction.
    """
    records: list[RunRecord] = []
    for search in study.searches():
        records += yield from _search_and_reproduce(search)
    return records


def _search_and_reproduce(study: Study) -> Work[list[RunRecord]]:
    """Run the protocol once: one search, if there is one, and the runs of the setting that it found."""
    hyperparameters = yield from study.best_hyperparameters()
    # Train on three quarters of the training classes to choose the epoch.
    choosing = choices(study, hyperparameters)
    chosen = yield from trainings([TrainJob(spec) for spec in choosing])
    # Train on all training classes.
    finals = [final(study, hyperparameters, run, chosen[run] if chosen else None) for run in _runs(study)]
    results = yield from trainings([TrainJob(spec, study.problem.run_name((spec,))) for spec in finals])
    # Test the model of the chosen epoch.
    tests = []
    for run, (spec, result) in enumerate(zip(finals, results, strict=True)):
        choice = [("choosing the epoch", chosen[run])] if chosen else []
        named_results = [*choice, ("training on all classes", result)]
        tests.append(evaluation_job(study.problem, PROTOCOL, (spec,), named_results, hyperparameters, run))
    return (yield from evaluations(tests))


def choices(study: Study, hyperparameters: dict[str, JsonValue]) -> list[FoldSpec]:
    """Specify the trainings that choose the epoch, one per run.

    Args:
        study: The method and its problem.
        hyperparameters: The setting to train, by target (such as `loss.margin`).

    Returns:
        One specification per run; none for the untrained trunk, which has no epochs.
    """
    method = study.method.at(hyperparameters)
    if method.loss is None:
        return []
    return [study.problem.fold_specs(method, "reproduction", run)[0] for run in _runs(study)]


def final(study: Study, hyperparameters: dict[str, JsonValue], run: int, chosen: FoldResult | None) -> FoldSpec:
    """Specify the training on all training classes, whose model is tested.

    Args:
        study: The method and its problem.
        hyperparameters: The setting to train, by target.
        run: Number of the run, from 0.
        chosen: Result of the run's training that chose the epoch; None for the untrained trunk.
    """
    epoch = 0 if chosen is None else best_epoch(study, chosen)
    return study.problem.final_spec(study.method.at(hyperparameters), run, epoch)


def best_epoch(study: Study, chosen: FoldResult) -> int:
    """Find the trained epoch with the best validation score.

    The number of epochs carries over to the training on all classes; the number of iterations does not.

    Args:
        study: The method's study; it has the interval between validations.
        chosen: The training on three quarters of the classes. If it diverged, its validations before that count.

    Returns:
        The epoch, or 0 if the training was not validated after its start.
    """
    settings = study.problem.training
    # Equal scores go to the earlier epoch, as in the training itself.
    scores = [
        (point.map_at_r, -number)
        for number, point in enumerate(chosen.curve)
        if number > 0 and point.map_at_r is not None
    ]
    _, negative_number = max(scores, default=(0.0, 0))
    return min(-negative_number * settings.validate_every, settings.max_epochs)


def trainings_of(study: Study) -> int:
    """Total number of trainings for one method.

    A search has folds x trials trainings, and each of its runs two (one for the untrained trunk).
    """
    stages = 1 if study.method.method.loss is None else 2
    return len(study.searches()) * (study.problem.folds * study.n_trials + stages * study.n_reproductions)


def foreseeable(study: Study) -> list[FoldSpec]:
    """Trainings that are determined now.

    The trainings on all classes are not in the list, because their epochs are not chosen yet.
    """
    specs: list[FoldSpec] = []
    for search in study.searches():
        specs += [spec for spec, _ in search.asked_specs()]
        hyperparameters = search.settled_hyperparameters()
        if hyperparameters is not None:
            specs += choices(search, hyperparameters)
    return specs


def _runs(study: Study) -> range:
    return range(study.n_reproductions)
