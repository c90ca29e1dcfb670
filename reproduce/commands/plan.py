"""`plan`: counts the trainings of an experiment and those in the store, and how long the others take."""

from __future__ import annotations

from collections.abc import Mapping
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
from reproduce.errors import InputError
from reproduce.terminal import say, show_rows
from results.wording import in_words, listed

if TYPE_CHECKING:
    from reproduce.run.session import Session
    from reproduce.run.work import RateOf, RowWork
    from results.answer.durations import Expected

_LARGE = 0.1
"""Gigabytes of checkpoints that are worth a word."""

_PER_GPU = 4
"""Trainings at a time on a GPU, as a run has them by default."""


@with_choices
def plan(
    experiment: ExperimentName,
    choices: Choices,
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="Images (or rows of features) per second of one training.", min=1e-9, max=1e9),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Train 20 steps of each method here, to know the speed. Needs the data."),
    ] = False,
    gpus: Annotated[
        int | None,
        typer.Option("--gpus", help="Plan for so many GPUs, whatever this machine has.", min=1),
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option("--difference", help="Say what showing a difference of so many points takes.", min=1e-9, max=1e9),
    ] = None,
    assume_deviation: Annotated[
        float | None,
        typer.Option(
            "--assume-deviation", help="Deviation between searches of a method, in points.", min=1e-9, max=1e9
        ),
    ] = None,
    device: Device = "auto",
    workers: Workers = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Show the trainings of an experiment, how long they take, and what differences they can show.

    The hours are expected from kept records, which are named. The speed is theirs too, unless --measure or --rate says
    it. Without --data the plan uses the dataset's published counts.
    """
    from reproduce.run.devices import check_device, default_workers, spread
    from reproduce.run.ends import in_latest_round, rounds_words
    from reproduce.run.expectation import budget_lines, expectation
    from reproduce.run.open_sessions import open_sessions
    from reproduce.run.work import at_a_time, with_rates, work_of
    from reproduce.storage import existing_store, storage_paths

    if measure and (rate is not None or gpus is not None):
        raise InputError("--measure says the speed of this machine; leave out --rate and --gpus")
    if gpus and device == "cpu":
        raise InputError("--gpus plans for GPUs; leave out --device cpu")
    used = "cuda" if gpus else check_device(device)
    most = workers or (_PER_GPU * gpus if gpus else default_workers(used))
    on_gpus = (gpus or len(spread(used))) if used.startswith("cuda") else 0
    where = storage_paths(store, artifacts, cache)
    opened = existing_store(store, artifacts)
    for opened_session in open_sessions(
        choices.experiments(experiment), where, choices.weights, plan=not measure, device=used if measure else "cpu"
    ):
        *_, session = opened_session.looks()
        session, rounds = in_latest_round(session, opened)
        studies = session.studies(opened.searches if opened else None)
        planned = work_of(studies, session.protocol, opened, session.fingerprint)
        numbers = at_a_time(planned, most)
        measured_at_a_time = numbers["search" if any(row.search.left for row in planned.values()) else "reproductions"]
        rate_of = _rate_of(session, rate, measured_at_a_time, on_gpus, used if measure else None)
        rows = with_rates(planned, most, rate_of)
        show_plan(rows, session, most, on_gpus)
        for line in (*expectation(rows, session.experiment.search, most, on_gpus), *rounds_words(session, rounds)):
            say(line)
        show_needs(session)
        for line in budget_lines(session, opened, rows, most, on_gpus, difference, assume_deviation):
            say(line)


def _rate_of(session: Session, rate: float | None, at_a_time: int, gpus: int, measured_on: str | None) -> RateOf:
    """Return what says the speed of each row: the user, a measurement, or kept records."""
    from reproduce.run.expectation import GIVEN
    from reproduce.run.work import rate_of_records
    from results.answer.durations import Rate

    if rate is not None:
        return lambda search, _: Rate(search.conditions.training.batch_size / rate, GIVEN)
    if measured_on is None:
        return rate_of_records(gpus)
    from reproduce.run.measure import measured_rates

    rates = measured_rates(session, measured_on, at_a_time)
    return lambda search, _: rates[search.key]


def show_plan(rows: Mapping[str, RowWork], session: Session, workers: int, gpus: int) -> None:
    """Print the number of trainings, how many of them are in the store, and the time of each stage if it is known."""
    from reproduce.run.expectation import at_a_time_words
    from reproduce.run.work import STAGES

    counts = ("trainings", "in store", "to do", "steps each, at most", "expected")
    lines = [
        (
            row.search.title,
            *(f"{number:,}" for number in (row.trainings, row.trainings - row.to_do, row.to_do)),
            " / ".join(dict.fromkeys(f"{one.most_steps:,}" for one in (row.search, row.reproductions))),
            _steps(row.reproductions.steps),
        )
        for row in rows.values()
    ]
    title = f"{session.name}: {session.experiment.title}"
    show_rows(title, ("method", *counts), lines, right=counts)
    trials = session.plan.most_trials
    if few := [row for row in session.plan.rows.values() if 0 < row.trials < trials]:
        named = listed([f"{row.title} ({row.trials} of {trials})" for row in few])
        say(f"trials end where no other settings are left: {named}")
    if any(row.to_do for row in rows.values()) and all(one.is_known for row in rows.values() for one in row):
        times = (*STAGES, "in all", "if nothing stops early")
        of_rows = [(row.search.title, *_times(row)) for row in rows.values()]
        speed = f"each at the speed of {at_a_time_words(rows, workers, gpus)}"
        show_rows(f"Expected time of all trainings, added up; {speed}", ("method", *times), of_rows, right=times)


def _steps(expected: Expected) -> str:
    return f"{'~' if expected.of_methods else ''}{expected.value:,.0f}"


def _times(row: RowWork) -> list[str]:
    expected, most = zip(*(one.seconds for one in row), strict=True)
    return [in_words(seconds) for seconds in (*expected, sum(expected), sum(most))]


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
