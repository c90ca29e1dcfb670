"""`reproduce data`: checks a dataset against the published counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from reproduce.commands.options import STORE, DataFolder, MinImages, Skip, Subset, check_min_images
from reproduce.errors import InputError
from reproduce.storage import storage_paths
from reproduce.terminal import say, show_rows
from results.wording import counted

if TYPE_CHECKING:
    from protocols.datasets.dataset import Dataset
    from protocols.datasets.dataset_registry import DatasetEntry
    from protocols.datasets.listing import ImageListing
    from protocols.datasets.splits import ClassSplit
    from protocols.images.packing import Progress
    from results.spec.data_choice import DataChoice

app = typer.Typer(name="data", help="Check a dataset.", no_args_is_help=True)

DatasetName = Annotated[str, typer.Argument(help="Name of a dataset; `reproduce datasets` lists them.")]

_MOST_FAULTS = 20
"""At most this many faults are listed."""

_MANY_ROWS = 20_000
"""So many test rows of 1,280 features took 18 seconds of one core."""


@app.command()
def check(
    name: DatasetName,
    data: DataFolder = None,
    subset: Subset = False,
    skip_broken_images: Skip = False,
    min_images: MinImages = None,
) -> None:
    """Name all faults of a dataset's folder, such as missing images, small classes or other counts than published.

    Every image is opened and every row of features read. Images that are equal, or nearly so within a class, are named,
    and masks beside photographs.
    """
    from protocols.datasets.dataset import DataRequest
    from protocols.datasets.dataset_registry import entry_of, open_dataset
    from protocols.datasets.listing import DataError
    from reproduce.run.progress import Bars
    from results.spec.conditions import ImageSettings
    from results.spec.data_choice import FEATURES, DataChoice

    check_min_images(name, min_images)
    with Bars() as bars:
        entry = entry_of(name)
        if entry.lister is None and name != FEATURES:
            return say(f"{name} is embedded; there is nothing to check")
        try:
            if name == FEATURES:
                cache = storage_paths(STORE).cache  # Where `reproduce run` looks for copies of features.
                choice, reading = DataChoice(name=name, root=data), bars.of("reading features")
                opened = open_dataset(DataRequest(choice, ImageSettings(), cache, reading))
                _check_features(opened, bars.of("scoring the test rows"))
                return say(
                    f"{data}: usable, {counted(len(opened.images), 'row')} of {counted(opened.n_classes, 'class')}"
                )
            if data is None:
                raise InputError(f"{name}: give the folder of its images with --data FOLDER")
            choice = DataChoice(name=name, subset=subset, skip_broken_images=skip_broken_images, min_images=min_images)
            faults = _faults(choice, entry, data, bars.of("opening images"))
        except DataError as error:
            faults = list(error.faults)
    if faults:
        _refuse(faults)
    return say(f"{data}: usable{', a part of the dataset' if subset else ''}")


def _faults(choice: DataChoice, entry: DatasetEntry, folder: Path, opening: Progress) -> list[str]:
    """Say what is found in a folder of images, and return its faults."""
    from protocols.datasets.dataset_registry import check_images
    from protocols.datasets.published import compare_counts
    from protocols.datasets.splits import SplitError

    differing: list[str] = []
    assert entry.lister is not None
    listing = entry.lister(folder)
    if entry.publication is not None:
        counts = compare_counts(listing, entry.publication)
        rows = [(what, f"{here:,}", f"{there:,}") for what, here, there in counts]
        show_rows(choice.name, ("", "found", "published"), rows, right={"found", "published"})
        differing = [what for what, here, there in counts if here != there]
    left, found, oddities = check_images(listing, choice.min_images, choice.skip_broken_images, opening)
    say(f"{choice.name}: {counted(len(left.names), 'image')} of {counted(len(left.class_names), 'class')}")
    for phrase in left.left_out:
        say(f"left out: {phrase}")
    if oddities:
        say(f"the data have {oddities}")
    unlike = (
        f"{choice.name}: not the published number of {', '.join(differing)}; complete the download, "
        "or use --subset if the folder holds only a part on purpose"
    )
    faults = [*([unlike] if differing and not choice.subset else []), *found]
    try:
        left.split("mlrc")
        if not found:  # A run would refuse the data, so it tests nothing.
            _say_split(left)
    except SplitError as error:
        faults += [str(error)] if entry.publication is None else []
    return faults


def _say_split(listing: ImageListing, width: int | None = None) -> ClassSplit:
    """Say which classes and how many samples a run would train, validate and test on; raise SplitError if none can.

    `width` is the number of features of a sample, where the data are features.
    """
    import numpy as np

    from protocols.datasets.dataset import note_on_queries
    from protocols.datasets.listing import note_on_test_classes

    split = listing.split("mlrc")
    counts, fold = np.bincount(listing.labels, minlength=listing.n_classes), split.folds[0]
    fewest = min(int(counts[list(each.train)].sum()) for each in split.folds)
    samples = int(counts[list(split.test)].sum())
    say(
        f"a run tests {counted(len(split.test), 'class')} ({counted(samples, 'sample')}); a fold trains on "
        f"{counted(len(fold.train), 'class')} and validates on {len(fold.validation):,}, with "
        f"{counted(fewest, 'training sample')} at least",
    )
    say(note_on_test_classes(listing, split))
    if queries := note_on_queries(listing, split.test):
        say(queries)
    most = min(fewest - 1, width or fewest)
    say(f"embedders that start at principal components can have {most:,} dimensions at most")
    return split


def _check_features(dataset: Dataset, scoring: Progress) -> None:
    """Say what is odd about the rows of a file of features, and what they score as they are."""
    from protocols.evaluation.evaluate_run import test_data
    from protocols.images.samples import LabelledFeatures
    from reproduce.outputs.evaluate import raw_rows, scores

    assert isinstance(dataset.images, LabelledFeatures)
    split = _say_split(dataset, dataset.images.width)
    if oddities := dataset.oddities(set(split.test)):
        say(f"the data have {oddities}")
    tested = test_data(dataset, split)
    if len(tested.images) >= _MANY_ROWS:
        say(f"comparing {counted(len(tested.images), 'test row')} with one another, which can take minutes")
    found = {name: 100 * one.mean for name, one in scores(raw_rows(tested), tested, scoring).items()}
    say(
        f"the features as given have P@1 {found['precision_at_1']:.1f} % and MAP@R {found['map_at_r']:.1f} % on these "
        "test classes: what a trained method must beat",
    )


def _refuse(faults: Sequence[str]) -> NoReturn:
    if len(faults) == 1:
        raise InputError(faults[0])
    for fault in faults[:_MOST_FAULTS]:
        say(f"  {fault}")
    unnamed = f", of which {_MOST_FAULTS} are named above" if len(faults) > _MOST_FAULTS else ""
    raise InputError(f"{counted(len(faults), 'fault')}{unnamed}; the first: {faults[0]}")
