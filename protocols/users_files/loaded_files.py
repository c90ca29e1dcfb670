"""The files of users' code that this process has loaded: all Python files and compiled modules that are outside the
standard library, the installed packages and the suite.

`watch` notes what Python executes, however the file was found. A process that runs users' code calls it first.
"""

import hashlib
import os
import site
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

_ROOMS = frozenset({"losses", "results", "protocols", "reports", "reproduce"})
"""The suite's packages. Their classes have versions, so their files are no user's code."""

_CHECKOUT = Path(__file__).resolve().parents[2]
_OF_THE_START = ("__main__", "__mp_main__", "sitecustomize", "usercustomize")
"""Modules that every process has: the program itself and what belongs to the environment."""

_GENERATED = ("torchinductor_", ".triton")
"""Beginnings of the folders in which torch keeps code that it has generated."""


@dataclass(frozen=True)
class LoadedSource:
    """A user's file with all users' files that it loads.

    Attributes:
        file: The file that a card or an experiment names.
        files: Path and SHA-256 of each file, that one included, by the name under which Python imports it.
        in_file: Whether the source is named by its path; a module otherwise.
    """

    file: Path
    files: Mapping[str, tuple[Path, str]]
    in_file: bool = True

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of a SHA-256: of the file if it is alone, else of the names and hashes."""
        if len(self.files) == 1:
            return next(iter(self.files.values()))[1][:16]
        named = sorted((name, bytes.fromhex(digest)) for name, (_, digest) in self.files.items())
        return hashlib.sha256(b"".join(name.encode() + b"\0" + digest for name, digest in named)).hexdigest()[:16]

    def changed(self) -> Path | None:
        """Return a file that is not as it was, or is gone; None if there is none."""
        return next((path for path, digest in self.files.values() if sha256_of(path) != digest), None)


def sha256_of(file: Path) -> str | None:
    """Return the SHA-256 of a file; None if it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None


_noted: dict[str, None] = {}
_watching: list[bool] = []


def watch() -> None:
    """Note every file that is executed from now on, and compile users' files anew.

    Python takes a compiled copy of a file whose second of change and size are the same, even if its text is not.
    """
    if not _watching:
        _watching.append(True)
        sys.addaudithook(_note)
        read_stats = SourceFileLoader.path_stats

        def path_stats(self: SourceFileLoader, path: str) -> Any:
            if is_users(str(path)):
                raise OSError("a user's file is compiled anew")
            return read_stats(self, path)

        SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign]


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "exec":  # Importing a module executes its code; so do `runpy` and loaders that users call.
        code = arguments[0]
        if isinstance(code, CodeType) and code.co_name == "<module>" and not code.co_filename.startswith("<"):
            _noted[os.path.abspath(code.co_filename)] = None
    elif event == "open":  # A module without its source.
        name = str(arguments[0])
        if name.endswith(".pyc") and "__pycache__" not in name:
            _noted[os.path.abspath(name)] = None
    elif event == "import" and isinstance(arguments[1], str):  # A compiled module; it has no code.
        _noted[os.path.abspath(arguments[1])] = None


def loaded_files(packages: frozenset[str] = frozenset()) -> dict[str, Path]:
    """Return the users' files that this process has loaded, by the names under which Python imports them.

    The files of `packages` are among them even if they are installed.

    Such a name is `helper.py` or `package/inner.py`, wherever the file is. A file that was loaded by its path alone has
    its own name.
    """
    modules = list(sys.modules.items())
    for name, module in modules:
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and name.partition(".")[0] not in _OF_THE_START:
            _noted.setdefault(os.path.abspath(file))
    starters = {_file_of(sys.modules[name]) for name in _OF_THE_START if name in sys.modules}
    named = {_file_of(module): _import_name(name, module) for name, module in modules}
    files: dict[str, Path] = {}
    for path in _noted:
        name = named.get(path, "")
        counts = name.partition("/")[0].removesuffix(".py") in packages or is_users(path)
        if counts and path not in starters and (file := _existing(Path(path))) is not None:
            # A module in an archive has no file, but the archive is one.
            key = name if name and str(file) == path else file.name
            while files.get(key, file) != file:
                key += "~"
            files[key] = file
    return files


def _file_of(module: Any) -> str:
    file = getattr(module, "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) else ""


def _import_name(name: str, module: Any) -> str:
    *folders, last = name.split(".")
    file = Path(_file_of(module)).name
    return "/".join([*folders, last, file] if hasattr(module, "__path__") else [*folders, file])


def _existing(path: Path) -> Path | None:
    """Return a file, or the archive that it is in; None for names that are no files."""
    return next((place for place in (path, *path.parents) if place.is_file()), None)


@cache
def is_users(path: str) -> bool:
    """Whether a file is neither of the standard library, nor of an installed package, nor of the suite."""
    place = Path(os.path.realpath(path))
    if {"site-packages", "dist-packages"} & set(place.parts) or any(
        part.startswith(start) for part in place.parts for start in _GENERATED
    ):
        return False
    if any(place.is_relative_to(folder) for folder in _installed_folders()):
        return False
    return not (place.is_relative_to(_CHECKOUT) and place.relative_to(_CHECKOUT).parts[0] in _ROOMS)


@cache
def _installed_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {*map(sysconfig.get_path, names), *site.getsitepackages(), site.getusersitepackages()}
    return tuple(os.path.realpath(folder) for folder in folders)
