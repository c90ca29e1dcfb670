"""Measures how fast the trainings of an experiment are on this machine: `plan --measure`."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from statistics import fmean

from protocols.datasets.splits import FoldClasses
from protocols.jobs import TrainJob
from protocols.study import Study
from reproduce.run.devices import default_workers
from reproduce.run.local import LocalProcesses
from reproduce.run.session import Session
from reproduce.run.tasks import Executor, Trained, TrainTask
from reproduce.terminal import say
from results.answer.durations import Rate
from results.spec.range import middle_of
from results.wording import counted

STEPS = 20
"""Steps that are measured."""

_BEFORE = 10
"""Steps before them: the first ones build what the others use, and a GPU records its graphs in them."""


def measured_rates(session: Session, device: str, workers: int) -> dict[str, Rate]:
    """Train each method with a loss for 30 steps in the middle of its ranges, and return its speed, by key.

    As many trainings run at a time as the run would have, or as this machine has room for, since they share it. A
    training of 10 steps takes away what is no step; one of 10 steps with two validations shows what these take.
    """
    at_a_time = min(workers, default_workers(device))
    say(f"measuring {counted(STEPS, 'step')} of each method, {counted(at_a_time, 'training')} at a time on {device}")
    with closing(LocalProcesses(device, at_a_time)) as executor:
        return {
            key: _measured(study, session, executor)
            for key, study in session.studies().items()
            if study.method.loss is not None
        }


def _measured(study: Study, session: Session, executor: Executor) -> Rate:
    kind = session.protocol.kinds(study)[0]
    alone = FoldClasses(kind.fold, kind.train, ())
    _seconds(study, alone, _BEFORE, executor)  # Its process imports what the others find.
    short = _seconds(study, alone, _BEFORE, executor)
    long = _seconds(study, alone, _BEFORE + STEPS, executor)
    images = len(study.setup.dataset.images.of_classes(kind.validation))
    validated = _seconds(study, kind, _BEFORE, executor) if images else short
    step = max(long - short, 1e-9) / STEPS
    words = f"{counted(STEPS, 'step')} on this machine"
    image = max(validated - short, 1e-9) / 2 / images if images else 0.0
    return Rate(step, words, image=image, training=max(short - _BEFORE * step, 0.0))


def _seconds(study: Study, classes: FoldClasses, steps: int, executor: Executor) -> float:
    """Return the mean seconds of trainings of one epoch with so many steps, as many as run at a time."""
    training = study.setup.conditions.training.model_copy(
        update={"iterations_per_epoch": steps, "max_epochs": 1, "validate_every": 1}
    )
    conditions = study.setup.conditions.model_copy(update={"training": training})
    setup = replace(study.setup, conditions=conditions, reproduction_epochs=None)
    spec = setup.example(study.method.at(middle_of(study.row.ranges)), classes)
    tasks = [TrainTask(TrainJob(spec), setup.training_data(spec), None) for _ in range(executor.workers)]
    results: Sequence[object] = [future.result() for future in [executor.submit(task) for task in tasks]]
    return fmean(result.result.wall_time for result in results if isinstance(result, Trained))
