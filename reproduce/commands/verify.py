"""`reproduce verify`: trains a random sample of stored trainings again and compares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reproduce.commands.export import StoredName
from reproduce.commands.options import (
    STORE,
    Artifacts,
    Cache,
    Choices,
    DataFolders,
    Device,
    StoreAt,
    Weights,
    Workers,
    check_workers,
)
from reproduce.commands.terminal import output_console, say
from reproduce.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from reproduce.store_care.train_again import Comparison, Sample, StoredTraining


def verify(
    name: StoredName,
    sample: Annotated[int, typer.Option("--sample", help="Number of trainings to make again.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random draw.")] = 0,
    data: DataFolders = None,
    weights: Weights = None,
    device: Device = "auto",
    workers: Workers = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Train a random sample of an experiment's trainings again and say whether they are equal bit for bit.

    Ends with exit status 1 if a training differs although device, threads, processor and packages are the same. The
    store does not change.
    """
    from reproduce.execution.devices import check_device, default_workers
    from reproduce.execution.local import open_executor
    from reproduce.monitoring.bars import Bars
    from reproduce.outputs.find_runs import find_experiments
    from reproduce.storage import opened_store, storage_paths, with_writable_cache
    from reproduce.store_care.train_again import DataAgain, check_weights, draw_sample, stored_trainings, train_again

    if sample < 1:
        raise InputError(f"--sample {sample}: at least one training is needed")
    check_workers(workers)
    torch_device = check_device(device)
    console, where = output_console(), storage_paths(store, artifacts, cache, None)
    opened = opened_store(store, artifacts)
    stored = [t for found in find_experiments(opened, [name]) for t in stored_trainings(opened, found)]
    drawn = draw_sample(stored, opened, sample, seed)
    _say_start(drawn, name, seed, console)
    datasets = {training.settings.dataset.name for training in stored}
    with with_writable_cache(where) as paths, Bars(console) as bars:
        for spec in {training.spec.trunk: training.spec for training in drawn.drawn}.values():
            check_weights(spec, weights, bars.of("fetching the trunk's weights"))
        folders = Choices(data=data)
        again = DataAgain(
            lambda key: folders.root_of(key, datasets), paths.cache, torch_device, bars.of("reading images")
        )
        count = min(workers or default_workers(torch_device), len(drawn.drawn))
        executor = open_executor(torch_device, count)
        outcomes = []
        for training, compared in train_again(drawn.drawn, again, where.artifacts, executor, bars.of("training again")):
            say(console, f"{training.called}: {_in_words(training, compared)}")
            outcomes.append(compared)
    say(console, _summary(outcomes))
    if any(outcome.differences and not outcome.surroundings for outcome in outcomes):
        raise typer.Exit(1)


def _say_start(drawn: Sample, name: str, seed: int, console: Console) -> None:
    if drawn.other_versions:
        say(
            console,
            f"{drawn.other_versions} training(s) were made by another version of the training or of their classes and "
            "cannot be verified by this one",
        )
    if not drawn.drawn:
        raise InputError(f"{name}: no stored training can be verified; make some with `reproduce run`")
    say(console, f"training {len(drawn.drawn)} of {drawn.of} trainings again (seed {seed})")


def _in_words(training: StoredTraining, compared: Comparison) -> str:
    if not compared.differences:
        what = "record and checkpoint" if compared.checkpoint else "record; no checkpoint is kept"
        return f"equal bit for bit ({what})"
    change = "" if compared.best_change is None else f"; MAP@R {100 * compared.best_change:+z.4f} points"
    where = f"; made with {', '.join(compared.surroundings)}" if compared.surroundings else ""
    return f"differs: {', '.join(compared.differences)}{change}{where}"


def _summary(outcomes: list[Comparison]) -> str:
    equal = sum(not outcome.differences for outcome in outcomes)
    elsewhere = sum(bool(outcome.differences and outcome.surroundings) for outcome in outcomes)
    differing = len(outcomes) - equal - elsewhere
    unknown = sum(bool(o.differences) and not o.surroundings and not o.processor_known for o in outcomes)
    lines = [f"{equal} of {len(outcomes)} equal bit for bit"]
    if differing:
        lines.append(f"{differing} differ, although device, threads, processor and packages are the same")
    if unknown:
        lines.append(
            f"the records of {unknown} of them do not name the processor, so another one, which rounds differently, is "
            "a possible cause"
        )
    if elsewhere:
        lines.append(
            f"{elsewhere} differ from trainings with another device, number of threads, processor or packages; these "
            "round differently, and a training magnifies that, so the differences are only reported"
        )
    return "; ".join(lines)
