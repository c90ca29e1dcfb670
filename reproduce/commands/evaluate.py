"""`evaluate`: scores an exported model, a trunk or features on a dataset that is only for the test."""

from pathlib import Path
from typing import Annotated

import typer

from reproduce.commands.options import (
    STORE,
    Cache,
    DataFolder,
    Device,
    MinImages,
    Skip,
    Weights,
    check_min_images,
)
from reproduce.errors import InputError
from reproduce.terminal import say, show_rows
from results.wording import counted


def evaluate(
    name: Annotated[str, typer.Argument(help="Name of a dataset; `reproduce datasets` lists them.")],
    data: DataFolder = None,
    model: Annotated[Path | None, typer.Option("--model", help="Folder that `export model` or `fit` wrote.")] = None,
    trunk: Annotated[str | None, typer.Option("--trunk", help="A trunk as it is, such as resnet50.")] = None,
    split: Annotated[str | None, typer.Option("--split", help="Only the test classes of mlrc or conventional.")] = None,
    skip_broken_images: Skip = False,
    min_images: MinImages = None,
    weights: Weights = None,
    device: Device = "auto",
    cache: Cache = None,
) -> None:
    """Score an exported model, a trunk, or features as given, on all classes of a dataset.

    The intervals (95 %) are over the classes: they say how much the scores depend on which classes there are, and not
    how much on the training of the model. No store is read or written.
    """
    import torch

    from protocols.datasets.dataset import DataRequest, note_on_queries
    from protocols.datasets.dataset_registry import open_dataset
    from protocols.trunks.frozen_features import with_features
    from protocols.trunks.trunk_registry import identified_trunk
    from reproduce.outputs.evaluate import ExportedModel, data_of_split, raw_rows, scores
    from reproduce.run.devices import check_device, prepare_process
    from reproduce.run.progress import Bars
    from reproduce.storage import storage_paths
    from results.spec.conditions import ImageSettings
    from results.spec.data_choice import FEATURES, DataChoice
    from results.spec.trunk_spec import TrunkSpec

    if [model is not None, trunk is not None, name == FEATURES and model is None].count(True) != 1:
        raise InputError("give either --model or --trunk; features alone need none")
    check_min_images(name, min_images)
    torch_device = check_device(device)
    prepare_process(torch_device)
    exported = None if model is None else ExportedModel.read(model)
    images, folder = exported.images if exported else ImageSettings(), storage_paths(STORE, cache=cache).cache
    with Bars() as bars:
        choice = DataChoice(
            name=name, root=data, subset=True, skip_broken_images=skip_broken_images, min_images=min_images
        )
        dataset = open_dataset(DataRequest(choice, images, folder, bars.of("reading images")))
        if trunk is not None:
            found = identified_trunk(TrunkSpec(name=trunk, frozen=True), weights)
            computing = bars.of("computing the features of the trunk")
            dataset = with_features(dataset, found, images, folder, torch_device, computing)
        tested = data_of_split(dataset, split)
        embeddings = exported.embed(tested, torch.device(torch_device)) if exported else raw_rows(tested)
    measured = scores(embeddings, tested)
    rows = [(key, f"{100 * one.mean:.2f}", f"{100 * (one.half_width or 0):.2f}") for key, one in measured.items()]
    show_rows(str(data or name), ("metric", "score", "±"), rows, right=("score", "±"))
    count, classes = len(tested.images), len(set(tested.images.labels.tolist()))
    interval = "± is half the 95 % interval over these classes, too short where they are confused"
    say(f"{counted(count, 'sample')} of {counted(classes, 'class')}; {interval}")
    for phrase in dataset.left_out:
        say(f"left out: {phrase}")
    if queries := note_on_queries(dataset, tested.images.labels):
        say(queries)
    for note in exported.notes_on_seen(dataset, tested) if exported else ():
        say(note)
