"""The protocol of the papers' own tables: one model on the conventional split, its epoch chosen on validation classes.

The papers train on all training classes and evaluate the test classes after every epoch. Most released code reports the
best of these test scores. Here every run first chooses its epoch without test classes: one training per fold, each on
three quarters of the training classes. The epoch with the best mean score on the folds' other quarters is chosen. Then
the run trains on all training classes, as the papers do, and its weights after that epoch are tested. The weights after
the last epoch are tested too and shown beside it. Test curves can be recorded. They show what a choice by test scores
would give, beside the honest number and never instead of it.
"""

from pydantic import JsonValue

from protocols.jobs import Lab, TrainJob, evaluation_job
from protocols.search.study import Study
from results.records.epoch_choice import EpochChoice, choose_epoch
from results.records.records import RunRecord
from results.spec.training_spec import FoldSpec

PROTOCOL = "standard"
SPLIT = "conventional"


def standard(study: Study, lab: Lab) -> list[RunRecord]:
    """Run the protocol: search if the method has a search space, choose each run's epoch, train on all classes, test.

    Args:
        study: One search of a method: its search space and budget, and the problem that all methods share.
        lab: Makes the trainings and the tests.

    Returns:
        One record per reproduction.
    """
    problem, hyperparameters = study.problem, study.best_hyperparameters(lab)
    method = study.method.at(hyperparameters)
    # Train every fold of every run on three quarters of the training classes, to choose the run's epoch.
    choosing = choices(study, hyperparameters)
    outcomes = iter(lab.train([TrainJob(spec, chooses_epoch=True) for specs in choosing for spec in specs]))
    folds = [tuple(next(outcomes) for _ in specs) for specs in choosing]
    chosen = [choose_epoch(run, problem.conditions.training) if run else _only_choice(study) for run in folds]
    # Train on all training classes.
    finals = [problem.final_spec(method, run, choice.epoch) for run, choice in enumerate(chosen)]
    choosers = [tuple(fold.fingerprint for fold in run) for run in folds]
    names = [problem.run_name((spec,), run) for spec, run in zip(finals, choosers, strict=True)]
    results = lab.train([TrainJob(spec, name) for spec, name in zip(finals, names, strict=True)])
    # Test the model of the chosen epoch, and beside it that of the last epoch.
    tests = []
    for run, (spec, result) in enumerate(zip(finals, results, strict=True)):
        named_results = [("training on all classes", result)]
        given = (problem, PROTOCOL, (spec,), named_results, hyperparameters, run, study.name)
        tests.append(evaluation_job(*given, chosen_by=folds[run], flags=chosen[run].flags))
    return lab.test(tests)


def choices(study: Study, hyperparameters: dict[str, JsonValue]) -> list[tuple[FoldSpec, ...]]:
    """Specify the trainings that choose the epoch."""
    method = study.method.at(hyperparameters)
    runs = range(study.n_reproductions)
    return [study.problem.fold_specs(method, "reproduction", run) if _has_choice(study) else () for run in runs]


def trainings_of(study: Study) -> int:
    """Total number of trainings for one method.

    A search has folds x trials trainings, and each of its runs has one per fold that chooses the epoch and a final one.
    Racing makes it smaller.
    """
    per_run = study.problem.folds + 1 if _has_choice(study) else 1
    per_search = study.problem.folds * study.n_trials + per_run * study.n_reproductions
    return len(study.searches()) * per_search


def foreseeable(study: Study) -> list[FoldSpec]:
    """Trainings that are determined now.

    The trainings on all classes are in the list only if there is no choice of their epochs.
    """
    specs: list[FoldSpec] = []
    for search in study.searches():
        specs += search.known_specs()
        hyperparameters = search.found_hyperparameters()
        if hyperparameters is None:
            continue
        if _has_choice(search):
            specs += [spec for run in choices(search, hyperparameters) for spec in run]
        else:
            method, epoch = search.method.at(hyperparameters), _only_choice(search).epoch
            specs += [search.problem.final_spec(method, run, epoch) for run in range(search.n_reproductions)]
    return specs


def kinds(study: Study) -> list[FoldSpec]:
    """One example of each kind of training: on three quarters of the training classes, and on all of them."""
    method, last_epoch = study.method.method, study.problem.conditions.training.max_epochs
    folds = study.problem.fold_specs(method, "reproduction", 0)[:1] if _has_choice(study) or study.n_trials else ()
    return [*folds, study.problem.final_spec(method, 0, last_epoch)]


def _has_choice(study: Study) -> bool:
    """Whether a run has several epochs to choose from. The untrained trunk has none."""
    settings = study.problem.conditions.training
    return study.method.method.loss is not None and settings.max_epochs > settings.validate_every


def _only_choice(study: Study) -> EpochChoice:
    """The last epoch, or epoch 0 for the untrained trunk."""
    return EpochChoice(0 if study.method.method.loss is None else study.problem.conditions.training.max_epochs)
