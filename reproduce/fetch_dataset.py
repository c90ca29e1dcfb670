"""Downloads and unpacks a dataset's published archives, with progress bars."""

from pathlib import Path

from protocols import download
from protocols.datasets.dataset import DataError
from protocols.datasets.dataset_registry import DatasetEntry
from protocols.datasets.listing import check_counts
from protocols.datasets.publication import Archive, Publication
from reproduce.errors import InputError
from reproduce.monitoring.bars import Bars


def is_whole(entry: DatasetEntry, folder: Path) -> bool:
    """Return whether the folder contains the complete published dataset."""
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

    Args:
        name: Name of the dataset.
        entry: The dataset's entry in the registry; it must have a publication.
        to: Folder for the archives and the dataset.
        bars: Shows the progress.

    Raises:
        InputError: An archive cannot be downloaded; the message says where to get it.
        DataError: The unpacked dataset differs from the published counts.
    """
    assert entry.lister is not None
    assert entry.publication is not None
    missing = []
    for archive in entry.publication.archives:
        file = to / archive.name
        if file.is_file():
            download.verify(file, md5=archive.md5, size=archive.size)
        elif archive.url is None:
            missing.append(archive.name)
        else:
            _download(archive, archive.url, entry.publication, file, bars)
    if missing:
        raise InputError(
            f"{name}: download {' and '.join(missing)} by hand from {entry.publication.page}, put them into {to}, "
            "and run the same command again"
        )
    for archive in entry.publication.archives:
        if download.is_archive(archive.name):
            download.unpack(to / archive.name, to / archive.folder, bars.of(f"unpacking {archive.name}"))
    check_counts(entry.lister(to), entry.publication.counts)


def _download(archive: Archive, url: str, publication: Publication, file: Path, bars: Bars) -> None:
    try:
        download.download(url, file, md5=archive.md5, size=archive.size, progress=bars.of(archive.name))
    except download.DownloadError as error:
        raise InputError(f"{error}; or put {archive.name} from {publication.page} into {file.parent}") from error
