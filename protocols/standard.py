"""The protocol of the papers' own tables: one model on the conventional split, its epoch chosen on validation classes.

The papers train on all training classes and evaluate the test classes after every epoch. Most released code reports the
best of these test scores. Here every run first chooses its epoch without test classes: one training per fold, each on
three quarters of the training classes. The epoch with the best mean score on the folds' other quarters is chosen. Then
the run trains on all training classes, as the papers do, and its weights after that epoch are tested. The weights after
the last epoch are tested too and shown beside it. Test curves can be recorded. They show what a choice by test scores
would give, beside the honest number and never instead of it.
"""

from collections.abc import Sequence
from statistics import fmean

from pydantic import JsonValue

from protocols.jobs import Lab, TrainJob
from protocols.study import RunningSearch, Study
from results.records.records import Event, FoldResult, RunRecord
from results.spec.conditions import TrainingSettings
from results.spec.training_spec import FoldSpec

PROTOCOL = "standard"


def choose_epoch(folds: Sequence[FoldResult], settings: TrainingSettings) -> tuple[int, tuple[Event, ...]]:
    """Choose the trained epoch with the best mean validation MAP@R over the folds; of equal scores the earlier one.

    Epochs carry over to the training on all classes; iterations do not. Returns the number of epochs, 0 if no fold was
    validated after its start, and what happened in the folds' trainings.
    """
    # Folds that did not diverge. If all diverged, those that were validated after their start.
    counted = [fold for fold in folds if fold.status == "ok"] or [fold for fold in folds if len(fold.curve) > 1]
    common = min((len(fold.curve) for fold in counted), default=0)
    means = [fmean(fold.curve[number].map_at_r or 0.0 for fold in counted) for number in range(common)]
    # `max` returns the first of equal scores. Number 0 is the network before training, which is never chosen.
    best = max(range(1, common), key=means.__getitem__, default=0)
    events = [
        Event(kind="diverged", fold=fold.spec.fold, iteration=fold.iterations, choosing=True)
        for fold in folds
        if fold.status != "ok"
    ]
    if best and means[best] <= means[0]:
        events.append(Event(kind="no gain", fold=None, choosing=True))
    return min(best * settings.validate_every, settings.max_epochs), tuple(events)


def standard(search: RunningSearch, lab: Lab) -> list[RunRecord]:
    """Run the protocol: search if the method has a search space, choose each run's epoch, train on all classes, test.

    Args:
        search: One search of a method. Its study has the search space, the budget and the setup that all methods share.
        lab: Makes the trainings and the tests.

    Returns:
        One record per reproduction.
    """
    study, hyperparameters = search.study, search.best_hyperparameters(lab)
    setup = study.setup
    # Train every fold of every run on three quarters of the training classes, to choose the run's epoch.
    choosing = choices(study, hyperparameters)
    outcomes = iter(lab.train([TrainJob(spec, chooses_epoch=True) for specs in choosing for spec in specs]))
    folds = [tuple(next(outcomes) for _ in specs) for specs in choosing]
    chosen = [choose_epoch(run, setup.conditions.training) if run else (_only_epoch(study), ()) for run in folds]
    # Train on all training classes.
    finals = [study.final_training(hyperparameters, run, epoch) for run, (epoch, _) in enumerate(chosen)]
    choosers = [tuple(fold.fingerprint for fold in run) for run in folds]
    names = [setup.run_fingerprint((spec,), run) for spec, run in zip(finals, choosers, strict=True)]
    results = lab.train([TrainJob(spec, name) for spec, name in zip(finals, names, strict=True)])
    # Test the model of the chosen epoch, and beside it that of the last epoch.
    return lab.test(
        [
            study.test_job(PROTOCOL, hyperparameters, run, (result,), folds[run], chosen[run][1])
            for run, result in enumerate(results)
        ]
    )


def choices(study: Study, hyperparameters: dict[str, JsonValue]) -> list[tuple[FoldSpec, ...]]:
    """Specify the trainings that choose the epoch."""
    runs = range(study.row.reproductions)
    return [study.trainings(hyperparameters, "reproduction", run) if has_choice(study) else () for run in runs]


def planned_runs(study: Study, hyperparameters: dict[str, JsonValue]) -> list[tuple[FoldSpec, ...]]:
    """Specify the trainings of every reproduction: those that choose the epoch, and the one on all training classes.

    The last epoch stands for one that is to be chosen.
    """
    choosing, epoch = choices(study, hyperparameters), _only_epoch(study)
    return [(*specs, study.final_training(hyperparameters, run, epoch)) for run, specs in enumerate(choosing)]


def has_choice(study: Study) -> bool:
    """Whether a run has several epochs to choose from. The untrained trunk has none."""
    settings = study.setup.conditions.training
    return study.method.loss is not None and settings.max_epochs > settings.validate_every


def _only_epoch(study: Study) -> int:
    """The last epoch, or epoch 0 for the untrained trunk."""
    return 0 if study.method.loss is None else study.setup.conditions.training.max_epochs
