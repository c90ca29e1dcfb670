"""Names of the files that show an experiment: each carries the experiment's identity, and a link leads to the latest.

Experiments of one name that differ in methods, trials or anything else have files of their own. `NAME-IDENTITY.csv` and
`NAME-IDENTITY/index.html` belong to one experiment; `NAME.csv` and `NAME/index.html` lead to the one started last.
"""

from contextlib import suppress
from pathlib import Path

from results.atomic_files import file_name, partial_name, put_in_place
from results.store.store import Store
from results.values import identity_of

_LONGEST_NAME = 180
"""Most bytes of an experiment's name in a file name, so that identity, suffix and a partial file's name fit in 255."""


def latest_name(name: str) -> str:
    """Return how the files of the latest experiment of a name are called, without their suffix."""
    return file_name(name).encode()[:_LONGEST_NAME].decode(errors="ignore")


def own_name(name: str, fingerprint: str) -> str:
    """Return how the files of one experiment are called, without their suffix."""
    return f"{latest_name(name)}-{identity_of(fingerprint)}"


def link_latest(name: str, fingerprint: str, store: Store, paths: list[Path]) -> None:
    """Let the names without identity lead to files or folders of an experiment, if it is the latest of its name.

    There is no link where the file system has none, or where a folder has its name.
    """
    if store.latest_experiments().get(name) != fingerprint:
        return
    for path in paths:
        link = path.with_name(latest_name(name) + path.suffix)
        partial = partial_name(link)
        with suppress(OSError):
            partial.symlink_to(path.name, target_is_directory=path.is_dir())
            put_in_place(partial, link)
        partial.unlink(missing_ok=True)
