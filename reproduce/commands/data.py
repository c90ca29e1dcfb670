"""`reproduce data`: fetches a dataset, checks it against the published counts, and decodes its images in advance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from reproduce.commands.options import STORE, MinImages, Skip, Subset
from reproduce.commands.terminal import output_console, say
from reproduce.errors import InputError
from reproduce.monitoring.bars import Bars
from reproduce.storage import beside

if TYPE_CHECKING:
    from protocols.datasets.dataset import ImageListing
    from protocols.datasets.dataset_registry import DatasetEntry
    from protocols.datasets.listing import CountComparison
    from protocols.datasets.publication import Archive, Publication
    from protocols.progress import Progress

app = typer.Typer(name="data", help="Fetch a dataset, check it, or decode its images in advance.", no_args_is_help=True)

DatasetName = Annotated[str, typer.Argument(help="Name of a dataset; `reproduce datasets` lists them.")]
DataFolder = Annotated[Path | None, typer.Option("--data", help="Folder with the dataset's images.")]

CACHE = beside(STORE) / "cache"
"""Folder where `reproduce run` looks for decoded images by default."""

_MAX_NAMED = 20
"""At most this many missing images are listed by name."""


@app.command()
def check(
    name: DatasetName,
    data: DataFolder = None,
    subset: Subset = False,
    decode: Annotated[bool, typer.Option("--decode", help="Decode every image as well.")] = False,
    skip_broken_images: Skip = False,
    min_images: MinImages = None,
) -> None:
    """Name all faults of a dataset's folder, such as missing images, small classes or other counts than published.

    Without --decode no image is decoded; in a folder of your own, files of equal size are compared. Features are read
    completely.
    """
    from protocols.datasets.dataset import DataError, DataRequest
    from protocols.datasets.dataset_registry import entry_of, open_dataset
    from results.spec.data_choice import FEATURES
    from results.spec.training_spec import ImageSettings

    console = output_console()
    _check_keeps_classes(name, min_images)
    with _data_errors_as_input_errors():
        entry = entry_of(name)
        try:
            if name == FEATURES:
                opened = open_dataset(DataRequest(name, ImageSettings(), CACHE, data))
                return say(console, f"{data}: usable, {len(opened.images):,} rows of {opened.n_classes:,} classes")
            if entry.lister is None:
                return say(console, f"{name} is embedded; there is nothing to check")
            if data is None:
                raise InputError(f"{name}: give the folder of its images with --data FOLDER")
            with Bars(console) as bars:
                looking = bars.of("decoding images") if decode else None
                if entry.publication is None:
                    faults = _faults_of_folder(name, data, min_images, skip_broken_images, looking, console)
                else:
                    faults = _faults_of_published(name, entry, data, subset, skip_broken_images, looking, console)
        except DataError as error:
            faults = error.faults
    if faults:
        _refuse(faults, console)
    part, unread = ", a part of the dataset" if subset else "", "" if decode else "; --decode decodes its images too"
    return say(console, f"{data}: usable{part}{unread}")


def _faults_of_folder(
    name: str, folder: Path, min_images: int | None, skip_broken: bool, looking: Progress | None, console: Console
) -> tuple[str, ...]:
    """Say what is found in a folder of the user's images, and return its faults."""
    from protocols.datasets.data_check import check_folder
    from protocols.datasets.notes_on_data import note_on_queries

    checked = check_folder(folder, min_images, skip_broken, looking)
    listing = checked.listing
    say(console, f"{name}: {len(listing.names):,} images of {len(listing.class_names):,} classes")
    if queries := note_on_queries(listing.labels, listing.is_query, listing.trainval_classes or 0):
        say(console, queries)
    for phrase in listing.left_out:
        say(console, f"left out: {phrase}")
    if checked.equal_files:
        say(console, f"the data have {checked.equal_files}")
    return checked.faults


def _faults_of_published(
    name: str,
    entry: DatasetEntry,
    folder: Path,
    subset: bool,
    skip_broken: bool,
    looking: Progress | None,
    console: Console,
) -> tuple[str, ...]:
    """Show the counts of a published dataset's folder, and return its faults."""
    from protocols.datasets.data_check import check_images
    from protocols.datasets.listing import compare_counts

    assert entry.publication is not None
    listing = _listed(entry, folder, console)
    counts = compare_counts(listing, entry.publication.counts)
    show_counts(name, counts, console)
    checked = check_images(listing, None, skip_broken, looking)
    for phrase in checked.listing.left_out:
        say(console, f"left out: {phrase}")
    differing = [row.what for row in counts if row.found != row.published]
    if subset or not differing:
        return checked.faults
    return (
        f"{name}: the number of {', '.join(differing)} differs from the published one; complete the download, or use "
        "--subset if the folder holds only a part on purpose",
        *checked.faults,
    )


def _refuse(faults: Sequence[str], console: Console) -> NoReturn:
    if len(faults) == 1:
        raise InputError(faults[0])
    for fault in faults:
        say(console, f"  {fault}")
    raise InputError(f"{faults[0]} (and {len(faults) - 1:,} more, named above)")


def _check_keeps_classes(name: str, min_images: int | None) -> None:
    from results.spec.data_choice import FOLDER

    if min_images is not None and name != FOLDER:
        raise InputError(f"--min-images: dataset {name} keeps all its classes; leave the option out")


def _listed(entry: DatasetEntry, folder: Path, console: Console) -> ImageListing:
    from protocols.datasets.listing import MissingImagesError

    assert entry.lister is not None
    try:
        return entry.lister(folder)
    except MissingImagesError as error:
        present = error.listed - len(error.paths)
        say(console, f"{present:,} of the {error.listed:,} images named in {error.named_in} were found; missing:")
        for path in error.paths[:_MAX_NAMED]:
            say(console, f"  {path}")
        raise


def show_counts(name: str, counts: Sequence[CountComparison], console: Console) -> None:
    """Print the counts of the folder beside the published ones."""
    table = Table(title=name)
    table.add_column("")
    for column in ("found", "published"):
        table.add_column(column, justify="right")
    for row in counts:
        table.add_row(row.what, f"{row.found:,}", f"{row.published:,}")
    console.print(table)


@app.command()
def fetch(name: DatasetName, to: Annotated[Path, typer.Option("--to", help="Folder to put the dataset into.")]) -> None:
    """Download a dataset from its publisher and unpack it.

    If the publisher does not allow a direct download, the command says which files you need and where to get them.
    """
    from protocols.datasets.dataset_registry import entry_of

    console = output_console()
    with _data_errors_as_input_errors():
        entry = entry_of(name)
        if entry.publication is None or entry.lister is None:
            return say(console, f"{name}: {entry.description}; there is nothing to fetch")
        if not is_whole(entry, to):
            say(console, entry.publication.source)
            with Bars(console) as bars:
                fetch_dataset(name, entry, to, bars)
        counts = entry.publication.counts
    return say(console, f"{to}: {name} is complete, {counts.images:,} images of {counts.classes:,} classes")


def is_whole(entry: DatasetEntry, folder: Path) -> bool:
    """Return whether the folder contains the complete published dataset."""
    from protocols.datasets.dataset import DataError
    from protocols.datasets.listing import check_counts

    assert entry.lister is not None
    assert entry.publication is not None
    try:
        check_counts(entry.lister(folder), entry.publication.counts)
    except DataError:
        return False
    return True


def fetch_dataset(name: str, entry: DatasetEntry, to: Path, bars: Bars) -> None:
    """Download, verify and unpack a dataset's archives.

    Archives that are already in the folder are verified, but not downloaded again. Archives that cannot be downloaded
    directly can be put there by hand.
    """
    from protocols import download
    from protocols.datasets.listing import check_counts

    assert entry.lister is not None
    assert entry.publication is not None
    archives = entry.publication.archives
    # Told before anything large is downloaded.
    if missing := [archive.name for archive in archives if archive.url is None and not (to / archive.name).is_file()]:
        raise InputError(
            f"{name}: download {' and '.join(missing)} by hand from {entry.publication.page}, put them into {to}, "
            "and run the same command again"
        )
    for archive in archives:
        file = to / archive.name
        if archive.url is None or file.is_file():
            download.verify(file, md5=archive.md5, size=archive.size)
        else:
            _download(archive, archive.url, entry.publication, file, bars)
    for archive in archives:
        if download.is_archive(archive.name):
            download.unpack(to / archive.name, to / archive.folder, bars.of(f"unpacking {archive.name}"))
    check_counts(entry.lister(to), entry.publication.counts)


def _download(archive: Archive, url: str, publication: Publication, file: Path, bars: Bars) -> None:
    from protocols import download

    try:
        download.download(url, file, md5=archive.md5, size=archive.size, progress=bars.of(archive.name))
    except download.DownloadError as error:
        raise InputError(f"{error}; or put {archive.name} from {publication.page} into {file.parent}") from error


@app.command()
def prepare(
    name: DatasetName,
    data: DataFolder = None,
    cache: Annotated[Path, typer.Option("--cache", help="Folder of decoded images.")] = CACHE,
    resize: Annotated[
        str, typer.Option("--resize", help="Shorter side of the decoded images in pixels, or `full` for no resizing.")
    ] = "256",
    subset: Subset = False,
    skip_broken_images: Skip = False,
    min_images: MinImages = None,
) -> None:
    """Decode all images of a dataset into the cache. A run does the same when it starts.

    You can stop the command at any time; when you repeat it, it continues.
    """
    from protocols.datasets.dataset import DataRequest
    from protocols.datasets.dataset_registry import open_dataset
    from protocols.features.feature_rows import LabelledFeatures
    from results.spec.data_choice import DataChoice
    from results.spec.training_spec import ImageSettings

    console = output_console()
    _check_keeps_classes(name, min_images)
    choice = DataChoice(name=name, subset=subset, skip_broken_images=skip_broken_images, min_images=min_images)
    images = ImageSettings(resize=_pixels(resize))
    with _data_errors_as_input_errors(), Bars(console) as bars:
        dataset = open_dataset(DataRequest.of(choice, images, cache, data, bars.of("decoding images")))
    if isinstance(dataset.images, LabelledFeatures):
        return say(console, f"{name}: there is nothing to decode")
    pack = dataset.images.images
    size = sum(file.stat().st_size for file in pack.folder.iterdir())
    say(console, f"{name}: {len(dataset.images):,} images of {dataset.n_classes:,} classes decoded")
    for phrase in dataset.left_out:
        say(console, f"left out: {phrase}")
    say(console, f"folder: {pack.folder}")
    say(console, f"size: {size / 1e9:.2f} GB")
    say(console, f"checksum: {pack.description['content']}")


def _pixels(text: str) -> int | None:
    if text == "full":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"--resize {text!r}: use a number of pixels, or `full`")
    return int(text)


@contextmanager
def _data_errors_as_input_errors() -> Iterator[None]:
    from protocols.datasets.dataset import DataError
    from protocols.download import DownloadError
    from protocols.images.decoding import BrokenImageError

    try:
        yield
    except (DataError, BrokenImageError, DownloadError) as error:
        raise InputError(str(error)) from error
