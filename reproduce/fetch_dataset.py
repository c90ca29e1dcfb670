"""From a publisher's archives to a dataset's folder, with bars for what takes long."""

from pathlib import Path

from protocols import download
from protocols.datasets.dataset import DataError
from protocols.datasets.dataset_registry import DatasetEntry
from protocols.datasets.listing import check_counts
from protocols.datasets.publication import Archive, Publication
from reproduce.errors import InputError
from reproduce.monitoring.bars import Bars


def is_whole(entry: DatasetEntry, folder: Path) -> bool:
    """Whether the published dataset lies in the folder."""
    assert entry.lister is not None
    assert entry.publication is not None
    try:
        check_counts(entry.lister(folder), entry.publication.counts)
    except DataError:
        return False
    return True


def fetch_dataset(name: str, entry: DatasetEntry, to: Path, bars: Bars) -> None:
    """Downloads, verifies and unpacks a dataset's archives into `to`; raises InputError, DataError.

    Archives that lie there already are not fetched again, so those that take a form can be put there by hand.
    """
    assert entry.lister is not None
    assert entry.publication is not None
    by_hand = []
    for archive in entry.publication.archives:
        file = to / archive.name
        if file.is_file():
            download.verify(file, md5=archive.md5, size=archive.size)
        elif archive.url is None:
            by_hand.append(archive.name)
        else:
            _download(archive, archive.url, entry.publication, file, bars)
    if by_hand:
        raise InputError(
            f"{name}: {' and '.join(by_hand)} must be got by hand from {entry.publication.page}; put them into {to} "
            "and use the same command again"
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
