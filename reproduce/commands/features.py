"""`reproduce features`: writes the features that a trunk computes of a folder of images."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from reproduce.commands.export import new_folder
from reproduce.commands.options import STORE, Cache, Device, MinImages, Skip, Weights
from reproduce.errors import InputError
from reproduce.storage import storage_paths
from reproduce.terminal import say
from results.wording import counted

app = typer.Typer(name="features", help="Compute features of images.", no_args_is_help=True)


@app.command()
def extract(
    trunk: Annotated[str, typer.Option("--trunk", help="Name of a model of timm, or of a trunk as in a file.")],
    data: Annotated[Path, typer.Option("--data", help="Folder with one folder of images per class.")],
    to: Annotated[Path, typer.Option("--to", help="New or empty folder for the features.")],
    weights: Weights = None,
    resize: Annotated[int, typer.Option("--resize", min=8, help="Pixels of the shorter side.")] = 256,
    crop: Annotated[int, typer.Option("--crop", min=8, help="Pixels of the centre crop.")] = 224,
    skip_broken_images: Skip = False,
    min_images: MinImages = None,
    device: Device = "auto",
    cache: Cache = None,
) -> None:
    """Write the features of a frozen trunk as a folder of features, for experiments with `dataset: {name: features}`.

    An interrupted computation is continued by the same command.
    """
    from protocols.datasets.dataset import DataRequest
    from protocols.datasets.dataset_registry import open_dataset
    from protocols.datasets.feature_files import write_labels
    from protocols.images.samples import FEATURES_FILE, LabelledFeatures
    from protocols.trunks.embedding_model import check_images_fit
    from protocols.trunks.frozen_features import with_features
    from protocols.trunks.trunk_registry import TRUNKS, identified_trunk, trunk_entry
    from reproduce.run.devices import check_device, use_gpu
    from reproduce.run.progress import Bars
    from results.spec.conditions import ImageSettings
    from results.spec.data_choice import FOLDER, DataChoice
    from results.spec.trunk_spec import TrunkSpec

    if crop > resize:
        raise InputError(f"--crop {crop} is larger than --resize {resize}; make it smaller, or give a larger --resize")
    name = trunk if trunk in TRUNKS or ":" in trunk else f"timm:{trunk}"
    images = ImageSettings(resize=resize, crop=crop)
    choice = DataChoice(name=FOLDER, root=data, skip_broken_images=skip_broken_images, min_images=min_images)
    where, kept = check_device(device), storage_paths(STORE, cache=cache).cache
    with new_folder(to) as folder, Bars() as bars:
        spec = identified_trunk(TrunkSpec(name=name, frozen=True), weights)
        check_images_fit(spec, crop)
        if note := trunk_entry(spec).note:
            say(f"note: {note}")
        dataset = open_dataset(DataRequest(choice, images, kept, bars.of("decoding images")))
        use_gpu(where)
        featured = with_features(dataset, spec, images, kept, where, bars.of("computing features"))
        features = featured.images
        assert isinstance(features, LabelledFeatures)
        shutil.copyfile(features.path, folder / FEATURES_FILE)
        write_labels(featured, features.rows, folder)
    for phrase in featured.left_out:
        say(f"left out: {phrase}")
    say(
        f"{to}: {counted(len(featured.names), 'row')} of {features.width} features, "
        f"{counted(featured.n_classes, 'class')}, from {name}",
    )
    say(
        f"next: data check features --data {to}; then compare losses with what needs no training: methods: [untrained, "
        "whitened_pca, within_class_whitening, lda, ...] (docs/own_data.md)",
    )
