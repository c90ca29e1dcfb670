"""Names of the files that show an experiment: each carries the experiment's identity, and a link leads to the latest.

Experiments of one name that differ in methods, trials or anything else have files of their own. `NAME-IDENTITY.csv` and
`NAME-IDENTITY/index.html` belong to one experiment; `NAME.csv` and `NAME/index.html` lead to the one started last.
"""

from html import escape
from pathlib import Path
from urllib.parse import quote

from results.store.store import Store
from results.values import identity_of
from results.whole_files import file_name, partial_name, put_in_place, write_whole

_LONGEST_NAME = 180
"""Most bytes of an experiment's name in a file name, so that identity, suffix and a partial file's name fit in 255."""

_LEADS_ON = """<!DOCTYPE html>
<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}">
<title>The latest page</title><a href="{url}">The latest page</a>
"""


def latest_name(name: str) -> str:
    """Return how the files of the latest experiment of a name are called, without their suffix."""
    return file_name(name).encode()[:_LONGEST_NAME].decode(errors="ignore")


def own_name(name: str, fingerprint: str) -> str:
    """Return how the files of one experiment are called, without their suffix."""
    return f"{latest_name(name)}-{identity_of(fingerprint)}"


def link_latest(name: str, fingerprint: str, store: Store, paths: list[Path]) -> None:
    """Let the names without identity lead to files or folders of an experiment, if it is the latest of its name."""
    if store.latest_experiments().get(name) == fingerprint:
        for path in paths:
            lead_to(path.with_name(latest_name(name) + path.suffix), path)


def lead_to(link: Path, target: Path) -> None:
    """Make a link to a file or folder beside it, in place of an earlier link.

    Where the file system has no links, or a folder that is no link has its name, a file is copied, and a folder gets an
    `index.html` that leads on.
    """
    partial = partial_name(link)
    try:
        partial.symlink_to(target.name, target_is_directory=target.is_dir())
        put_in_place(partial, link)
    except OSError:
        partial.unlink(missing_ok=True)
        if link.is_symlink():
            link.unlink()
        if target.is_dir():
            url = escape(quote(f"../{target.name}/index.html"))
            write_whole(link / "index.html", _LEADS_ON.format(url=url))
        else:
            write_whole(link, target.read_bytes())
