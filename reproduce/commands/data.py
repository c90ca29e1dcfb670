"""`reproduce data`: get a dataset, hold it against what was published, decode its images beforehand."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from reproduce.errors import InputError

app = typer.Typer(name="data", help="Get a dataset, check it, decode its images beforehand.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of a dataset; `reproduce datasets` lists them.")]
Data = Annotated[Path | None, typer.Option("--data", help="Folder where the dataset's images lie.")]
Subset = Annotated[bool, typer.Option("--subset", help="The folder holds a part of the published dataset on purpose.")]

CACHE = Path("runs") / "cache"
"""Where `reproduce run` looks for decoded images unless told otherwise."""

_NAMED = 20
"""Missing images that are told by name."""


@app.command()
def check(name: Name, data: Data = None, subset: Subset = False) -> None:
    """Count what is there, beside what was published, and name what is missing. Reads no image."""
    from protocols.datasets.dataset import check_listing
    from protocols.datasets.dataset_registry import entry_of
    from protocols.datasets.listing import MissingImagesError, compare_counts

    console = _console()
    with _one_line():
        entry = entry_of(name)
        if entry.lister is None:
            return console.print(f"{name} is embedded; there is nothing to check")
        if data is None:
            raise InputError(f"{name}: say where it lies with --data FOLDER")
        try:
            listing = entry.lister(data)
        except MissingImagesError as error:
            there = error.listed - len(error.paths)
            _say(console, f"{there:,} of the {error.listed:,} images named in {error.named_in} are there; missing:")
            for path in error.paths[:_NAMED]:
                _say(console, f"  {path}")
            raise
        if entry.publication is None:
            _say(console, f"{name}: {len(listing.names):,} images of {len(listing.class_names):,} classes")
        else:
            counts = compare_counts(listing, entry.publication.counts)
            drawn = Table(title=name)
            drawn.add_column("")
            for column in ("found", "published"):
                drawn.add_column(column, justify="right")
            for row in counts:
                drawn.add_row(row.what, f"{row.found:,}", f"{row.published:,}")
            console.print(drawn)
            differing = [row.what for row in counts if row.found != row.published]
            if differing and not subset:
                raise InputError(
                    f"{name}: not the published number of {', '.join(differing)}; complete the download, or use "
                    "--subset if this is a part on purpose"
                )
        check_listing(listing)
    return _say(console, f"{data}: usable" + (", a part" if subset else ""))


@app.command()
def fetch(name: Name, to: Annotated[Path, typer.Option("--to", help="Folder to put the dataset into.")]) -> None:
    """Download a dataset from its publisher and unpack it, or say which files to get from whom."""
    from protocols.datasets.dataset_registry import entry_of
    from reproduce.fetch_dataset import fetch_dataset, is_whole
    from reproduce.monitoring.bars import Bars

    console = _console()
    with _one_line():
        entry = entry_of(name)
        if entry.publication is None or entry.lister is None:
            return _say(console, f"{name}: {entry.description}; there is nothing to fetch")
        if not is_whole(entry, to):
            _say(console, entry.publication.source)
            with Bars(console) as bars:
                fetch_dataset(name, entry, to, bars)
        counts = entry.publication.counts
    return _say(console, f"{to}: {name} is whole, {counts.images:,} images of {counts.classes:,} classes")


@app.command()
def prepare(
    name: Name,
    data: Data = None,
    cache: Annotated[Path, typer.Option("--cache", help="Folder of decoded images.")] = CACHE,
    resize: Annotated[str, typer.Option("--resize", help="Shorter side in pixels, or full: as stored.")] = "256",
    subset: Subset = False,
    skip_broken_images: Annotated[
        bool, typer.Option("--skip-broken-images", help="Leave out images that cannot be decoded.")
    ] = False,
) -> None:
    """Decode all images of a dataset into the cache, as a run would at its start; stop and repeat it as you like."""
    from protocols.datasets.dataset import DataRequest
    from protocols.datasets.dataset_registry import open_dataset
    from reproduce.monitoring.bars import Bars
    from results.training_spec import ImageSettings

    console = _console()
    images = ImageSettings(resize=_pixels(resize))
    with _one_line(), Bars(console) as bars:
        request = DataRequest(name, images, cache, data, subset, skip_broken_images, bars.of("decoding images"))
        dataset = open_dataset(request)
    pack = dataset.images.images
    size = sum(file.stat().st_size for file in pack.folder.iterdir())
    _say(console, f"{name}: {len(dataset.images):,} images of {dataset.n_classes:,} classes decoded")
    for left_out in dataset.skipped[:_NAMED]:
        _say(console, f"  left out: {left_out}")
    _say(console, f"place: {pack.folder}")
    _say(console, f"size: {size / 1e9:.2f} GB")
    _say(console, f"checksum: {pack.description['content']}")


def _pixels(text: str) -> int | None:
    if text == "full":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"--resize {text!r}: use a number of pixels, or full")
    return int(text)


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=140)


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def _one_line() -> Iterator[None]:
    """What is wrong with data is told as any bad input is."""
    from protocols.datasets.dataset import DataError
    from protocols.download import DownloadError
    from protocols.images.packing import BrokenImageError

    try:
        yield
    except (DataError, BrokenImageError, DownloadError) as error:
        raise InputError(str(error)) from error
