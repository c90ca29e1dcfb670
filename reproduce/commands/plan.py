"""`plan`: counts the trainings of an experiment and those in the store, and how long the others take at a rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from reproduce.commands.options import (
    STORE,
    Artifacts,
    Cache,
    Choices,
    Device,
    ExperimentName,
    StoreAt,
    Workers,
    with_choices,
)
from reproduce.terminal import say, show_rows
from results.wording import counted, in_words

if TYPE_CHECKING:
    from protocols.datasets.splits import FoldClasses
    from protocols.study import Study
    from reproduce.run.session import Session
    from results.spec.search_settings import SearchSettings
    from results.store.store import Store

_LARGE = 0.1
"""Gigabytes of checkpoints that are worth a word."""


@dataclass(frozen=True)
class MethodPlan:
    """The planned trainings of one method.

    Attributes:
        title: The method's title.
        trainings: Number of trainings of all its trials and reproductions; with racing at most.
        in_store: How many of them are in the store.
        steps: Number of optimizer steps of a training that early stopping does not end; 0 without a loss.
        images: Number of images, or rows of features, in the batches of these steps.
    """

    title: str
    trainings: int
    in_store: int
    steps: int
    images: int

    @property
    def to_do(self) -> int:
        """Number of trainings that are not in the store."""
        return self.trainings - self.in_store


@with_choices
def plan(
    experiment: ExperimentName,
    choices: Choices,
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="Images (or rows of features) per second of one training.", min=1e-9),
    ] = None,
    device: Device = "auto",
    workers: Workers = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Show the trainings of an experiment, how many of them are in the store, and what differences it can show.

    With --rate it says how long the others take at most; a run shows the time left from its own trainings. Without
    --data the plan uses the dataset's published counts.
    """
    from reproduce.run.devices import check_device, default_workers
    from reproduce.run.open_sessions import open_sessions
    from reproduce.storage import existing_store, storage_paths

    at_a_time = workers or default_workers(check_device(device))
    where = storage_paths(store, artifacts, cache)
    opened = existing_store(store, artifacts)
    for opened_session in open_sessions(choices.experiments(experiment), where, choices.weights, plan=True):
        *_, session = opened_session.looks()
        show_plan(plans_of(session, opened), rate, at_a_time, session)
        show_needs(session)
        show_budget(session, opened)


def plans_of(session: Session, store: Store | None) -> list[MethodPlan]:
    """Plan each method of an opened experiment. The store is only read; None where there is none yet."""
    plans = []
    for study in session.studies(store.searches if store else None).values():
        names = [] if store is None else session.protocol.foreseeable(study)
        steps = max(_steps(study, kind) for kind in session.protocol.kinds(study))
        plans.append(
            MethodPlan(
                title=study.row.title,
                trainings=session.protocol.trainings_of(study) - study.skipped(),
                in_store=0 if store is None else len(store.finished_folds(names)),
                steps=steps,
                images=steps * study.setup.conditions.training.batch_size,
            )
        )
    return plans


def expectation(
    plans: Sequence[MethodPlan], search: SearchSettings, rate: float | None = None, workers: int = 1
) -> str:
    """Say how many trainings there are, how many are in the store, and by a rate how long the others take at most."""
    trainings, to_do = sum(method.trainings for method in plans), sum(method.to_do for method in plans)
    most = "at most " if search.racing or search.until_decided else ""
    counts = f"{most}{counted(trainings, 'training')}, {trainings - to_do:,} in the store"
    if not to_do:
        return f"{counts}; nothing is left to do"
    if rate is None:
        return f"{counts}, {to_do:,} to do"
    needed = in_words(math.fsum(method.to_do * method.images for method in plans) / rate / workers)
    return f"{counts}; at most {needed} of training at {rate:g} a second, {workers} at a time"


def _steps(study: Study, classes: FoldClasses) -> int:
    if study.method.loss is None:
        return 0
    training = study.setup.conditions.training
    return training.max_epochs * training.steps_per_epoch(len(study.setup.dataset.images.of_classes(classes.train)))


def show_plan(plans: Sequence[MethodPlan], rate: float | None, workers: int, session: Session) -> None:
    """Print the number of trainings, how many of them are in the store, and the time left at the rate."""
    counts = ("trainings", "in store", "to do", "steps each, at most")
    rows = [
        (one.title, *(f"{number:,}" for number in (one.trainings, one.in_store, one.to_do, one.steps))) for one in plans
    ]
    title = f"{session.name}: {session.experiment.title}"
    show_rows(title, ("method", *counts), rows, right=counts)
    say(expectation(plans, session.experiment.search, rate, workers))


def show_needs(session: Session) -> None:
    """Print what a run downloads or has to be given, and the disk that its checkpoints take, if that is much."""
    import torch

    from protocols.datasets.dataset_registry import DATASETS
    from protocols.trunks.trunk_entry import IMAGENET, TrunkError
    from protocols.trunks.trunk_registry import trunk_entry
    from reproduce.run.open_data import needs_folder
    from results.spec.trunk_spec import NO_TRUNK

    name, trunk, needs = session.experiment.dataset.name, session.experiment.conditions.trunk, []
    if needs_folder(session.experiment) and (publication := DATASETS[name].publication):
        needs.append(f"the images of {name} from {publication.page}, with --data FOLDER")
    try:
        entry = None if trunk.name == NO_TRUNK else trunk_entry(trunk)
        file = entry and entry.file
        if file and file.url and trunk.weights == IMAGENET:
            needs.append(f"{file.name}, the weights of {trunk.name}, downloaded at the first run or given by --weights")
        with torch.device("meta"):
            network = entry.build().state_dict() if entry and not trunk.frozen else {}
    except TrunkError:  # A run says what is missing.
        return
    weights = sum(tensor.numel() * tensor.element_size() for tensor in network.values())
    kept = sum(s.row.runs * s.setup.folds for s in session.studies().values() if s.method.loss is not None)
    if (size := weights * kept / 1e9) >= _LARGE:
        needs.append(f"{size:.1f} GB of disk for {kept} checkpoints")
    if needs:
        say(f"needs {'; '.join(needs)}")


def show_budget(session: Session, store: Store | None) -> None:
    """Print which differences the planned searches or runs can show.

    Nothing is printed for a single method. What the store has of the experiment says how far its searches differ.
    """
    from results.answer.caveats import budget_finding
    from results.answer.planning import detectable
    from results.answer.question import planned_question
    from results.findings.experiment import answer_of
    from results.store.experiment_results import MeasuredExperiment

    methods, question, found = len(session.experiment.comparable_rows()), planned_question(session.experiment), None
    if methods < 2:
        return
    if store is not None and store.experiment_runs(session.fingerprint):
        found = answer_of(MeasuredExperiment.from_store(store, session.fingerprint))
    say(budget_finding(detectable(question, methods, found), question).sentences)
