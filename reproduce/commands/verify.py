"""`reproduce verify`: trains a random sample of stored trainings again and compares."""

from __future__ import annotations

from typing import Annotated

import typer

from reproduce.commands.options import (
    STORE,
    Artifacts,
    Cache,
    Choices,
    DataFolders,
    Device,
    StoreAt,
    StoredName,
    Weights,
)
from reproduce.errors import InputError
from reproduce.terminal import say


def verify(
    name: StoredName,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Number of trainings to make again.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random sample.")] = 0,
    data: DataFolders = None,
    weights: Weights = None,
    device: Device = "auto",
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Train a random sample of an experiment's trainings again; say whether they are equal.

    Ends with exit status 1 if a training differs although device, threads, processor and packages are the same. The
    store does not change.
    """
    from reproduce.outputs.find_runs import find_experiments, own_folders
    from reproduce.outputs.train_again import random_sample, stored_trainings, train_again
    from reproduce.run.devices import check_device, prepare_process
    from reproduce.run.open_data import OpenedData, check_weights
    from reproduce.run.progress import Bars
    from reproduce.storage import opened_store, storage_paths

    torch_device = check_device(device)
    where = storage_paths(store, artifacts, cache)
    opened = opened_store(store, artifacts)
    stored = [t for found in find_experiments(opened, [name]) for t in stored_trainings(opened, found)]
    taken = random_sample(opened, stored, sample, seed)
    if not taken:
        raise InputError(f"{name}: this version of the code made no training of it; make some with `reproduce run`")
    say(f"training {len(taken)} of {len(stored)} trainings again (seed {seed})")
    prepare_process(torch_device)
    datasets, outcomes = {training.start.summary.dataset for training in stored}, []
    own = own_folders(name, stored[0].start.name)
    roots = {dataset: Choices(data=data).root_of(dataset, datasets) or own.get(dataset) for dataset in datasets}
    with Bars() as bars:
        for spec in {training.result.spec.conditions.trunk: training.result.spec for training in taken}.values():
            check_weights(spec, weights)
        again = OpenedData(where, torch_device, bars, roots=roots)
        progress = bars.of("training again")
        for number, training in enumerate(taken, start=1):
            outcomes.append(train_again(training, again, where.artifacts))
            progress(number, len(taken))
            say(f"{training.called}: {outcomes[-1]}")
    say(f"{sum(not one.difference for one in outcomes)} of {len(outcomes)} equal")
    if differing := sum(bool(one.difference) and not one.machines for one in outcomes):
        say(f"{differing} differ, although device, threads, processor and packages are the same")
        raise typer.Exit(1)
