"""The fingerprint of a page: of its material, and of the code and the packages that draw it.

A run that is called again leaves its page as it is while the fingerprint beside the page is the same.
"""

import hashlib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

import reports
import results
from reports.page.material import Material
from results.whole_files import write_whole

_PACKAGES = ("matplotlib", "numpy", "scipy", "pandas", "scikit-learn", "jinja2", "pillow")
_FILE = "inputs.sha256"


def page_fingerprint(material: Material, folders: tuple[Path, ...] | None = None) -> str:
    """Return a hash of everything that a page shows, and of everything that draws it.

    Args:
        material: The material of the page. The date of the page does not count.
        folders: Folders of the code, the templates and the published values. Default: those of the suite.

    Returns:
        A SHA-256 as hexadecimal digits.
    """
    digest = hashlib.sha256()
    for field in fields(material):
        if field.name != "made":
            for part in (field.name.encode(), *_parts(getattr(material, field.name))):
                digest.update(len(part).to_bytes(8, "big") + part)
    for folder in folders if folders is not None else _suite_folders():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(folder).as_posix().encode() + hashlib.sha256(path.read_bytes()).digest())
    for package in _PACKAGES:
        digest.update(f"{package} {metadata.version(package)}".encode())
    return digest.hexdigest()


def _suite_folders() -> tuple[Path, ...]:
    rooms = [Path(path) for room in (reports, results) for path in room.__path__]
    return (*rooms, Path(__file__).parent)


def _parts(value: Any) -> Iterator[bytes]:
    """Yield a value as bytes that are equal in every process for equal values."""
    if isinstance(value, BaseModel):
        yield value.model_dump_json().encode()
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif is_dataclass(value):
        for field in fields(value):
            yield field.name.encode()
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield f"mapping of {len(value)}".encode()
        for key, item in value.items():
            yield repr(key).encode()
            yield from _parts(item)
    elif isinstance(value, tuple | list):
        yield f"sequence of {len(value)}".encode()
        for item in value:
            yield from _parts(item)
    elif isinstance(value, AbstractSet):
        yield repr(sorted(value, key=repr)).encode()
    else:
        yield repr(value).encode()


def is_current(page_folder: Path, fingerprint: str) -> bool:
    """Return whether a folder holds the page of this fingerprint, with all its figures."""
    try:
        written, *names = (page_folder / _FILE).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return False
    return written == fingerprint and all((page_folder / name).is_file() for name in names)


def forget(page_folder: Path) -> None:
    """Remove the fingerprint of a page before the page is written, so that a broken page counts as outdated."""
    (page_folder / _FILE).unlink(missing_ok=True)


def remember(page_folder: Path, fingerprint: str, names: list[str]) -> None:
    """Write the fingerprint of a complete page, and the names of its files."""
    write_whole(page_folder / _FILE, "\n".join([fingerprint, *names]) + "\n")
