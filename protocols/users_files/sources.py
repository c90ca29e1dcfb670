"""Classes and functions from users' files and modules, found by names that contain the hash of their source.

Copies of the files are kept beside the checkpoints, so that stored models can be used after the files are gone.
"""

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from protocols.users_files.digest import digest_of, read_source, source_digest
from results.spec.source_names import SourceName
from results.whole_files import write_whole

_KEPT = "sources"
"""Folder of the kept copies below that of the checkpoints."""

_files: dict[str, Path] = {}
"""The files that this process knows, by the hash of their source. Names in specifications have no folder, since the
folder differs between machines."""


class SourceError(ValueError):
    """A user's file or module cannot be used. The message is one line with the remedy."""


def known_files() -> dict[str, Path]:
    """Return the users' files that this process knows, by hash. A task takes them to its worker."""
    return dict(_files)


def remember_files(files: Mapping[str, Path]) -> None:
    """Add users' files by the hash of their source, so that `load_source` finds them."""
    _files.update(files)


def hashed_name(name: str) -> str:
    """Add the hash of its source to a name, and remember the file. Names without a source stay as they are.

    `path/my_losses.py:Class` becomes `my_losses.py:Class (sha256 0123456789abcdef)`.
    """
    parsed = SourceName.parse(name)
    if parsed is None or parsed.digest is not None:
        return name
    file = _file_of(parsed)
    digest = _digest(file)
    if not parsed.in_file:
        return str(SourceName(parsed.source, parsed.attribute, digest))
    _files[digest] = file.absolute()
    return str(SourceName(file.name, parsed.attribute, digest))


def load_source(name: SourceName) -> Any:
    """Import a user's file or module and return the class or function that a name means, with or without a hash."""
    file = _file_of(name)
    digest = _digest(file)
    if name.digest not in (None, digest):
        raise SourceError(
            f"{file} has changed: this run began with sha256 {name.digest}, the file now has {digest}; undo the change "
            "to continue, or start the run again to train with the changed file"
        )
    module = _module_of_file(file, digest) if name.in_file else _imported(name.source)
    try:
        return getattr(module, name.attribute)
    except AttributeError:
        defined = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        source = Path(name.source).name if name.in_file else name.source
        raise SourceError(
            f"{source} has no {name.attribute!r}; it defines {', '.join(defined) or 'no class and no function'}"
        ) from None


def _file_of(name: SourceName) -> Path:
    if not name.in_file:
        return _file_of_module(name.source)
    file = Path(name.source) if name.digest is None else _files.get(name.digest)
    if file is None:
        raise SourceError(f"{name}: this file is not known here; run its experiment again with the method's card")
    if not file.is_file():
        raise SourceError(f"{file}: no such file; a path in a card or an experiment file is relative to that file")
    return file


def _file_of_module(module: str) -> Path:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        spec = None
    except Exception as error:  # A package around the module can raise anything when it is imported.
        raise SourceError(f"module {module!r} cannot be imported: {type(error).__name__}: {error}") from error
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise SourceError(
            f"there is no Python module {module!r}; install its package, or give the path of a file, such as "
            "./my_losses.py:MyLoss"
        )
    return Path(spec.origin)


def _digest(file: Path) -> str:
    try:
        return source_digest(file)
    except SyntaxError as error:
        where = Path(error.filename or file).name
        raise SourceError(f"{where}, line {error.lineno}: {error.msg}") from error
    except ValueError as error:  # A file with null bytes.
        raise SourceError(f"{file}: not valid Python ({error})") from error
    except OSError as error:
        raise SourceError(f"{file}: cannot be read ({error.strerror})") from error


def _module_of_file(file: Path, digest: str) -> ModuleType:
    """Import a file under a name of its own. The files beside it can be imported while it runs."""
    name = f"source_{digest}_{file.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Before it runs, since dataclasses look their module up.
    beside = str(file.absolute().parent)
    sys.path.append(beside)
    try:
        spec.loader.exec_module(module)
        _check_neighbours(file)
    except SourceError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:  # A script may call sys.exit.
        del sys.modules[name]
        raise SourceError(raised_in(file, error)) from error
    finally:
        sys.path.remove(beside)
    return module


def _check_neighbours(file: Path) -> None:
    """Raise SourceError if an import of a file's neighbour gave another file, whose content is not in the hash."""
    folder = file.absolute().parent
    for neighbour in (path for path in read_source(file) if path.is_relative_to(folder)):
        module = sys.modules.get(".".join(neighbour.relative_to(folder).with_suffix("").parts))
        taken = getattr(module, "__file__", None)
        if taken is not None and Path(taken).absolute() != neighbour:
            raise SourceError(f"{neighbour} is hidden by {taken}, which has the same name; rename one of them")


def _imported(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise SourceError(f"module {module!r} cannot be imported: {type(error).__name__}: {error}") from error


def raised_in(file: Path, error: BaseException) -> str:
    """Describe an error that a user's file raised, in one line with the last line of that file that took part."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == file.absolute()
    ]
    where = f"{file.name}, line {lines[-1]}" if lines else file.name
    return f"{where}: {type(error).__name__}: {' '.join(str(error).split())}"


@contextmanager
def explained(source: Any, start: str, kind: type[ValueError] = SourceError) -> Iterator[None]:
    """Turn an error that a user's class or function raises into one line with the place in the user's file."""
    try:
        yield
    except Exception as error:
        file = getattr(inspect.getmodule(source), "__file__", None) or ""
        raise kind(f"{start}: {raised_in(Path(file), error)}") from error


def keep_sources(artifacts: Path) -> None:
    """Copy the users' files that this process knows to `sources/HASH` in the folder of the artifacts.

    A file that has changed or is gone since its hash was taken is left out, and a copy from before stays as it is. No
    training uses such a file: `load_source` refuses it.
    """
    for digest, file in _files.items():
        try:
            contents = read_source(file)
        except (OSError, SyntaxError, ValueError):  # ValueError: a file with null bytes.
            continue
        if digest_of(file, contents) != digest:
            continue
        folder = artifacts / _KEPT / digest
        for path, content in contents.items():
            target = folder / path.relative_to(os.path.commonpath([other.parent for other in contents]))
            if not target.is_file() or target.read_bytes() != content:
                write_whole(target, content)


def remember_kept_sources(artifacts: Path, names: Iterable[str]) -> None:
    """Remember the kept copies of the files that names with hashes mean. Files without a copy are left out."""
    for name in names:
        parsed = SourceName.parse(name)
        if parsed is not None and parsed.digest is not None and parsed.in_file:
            for file in (artifacts / _KEPT / parsed.digest).rglob(parsed.source):
                if source_digest(file) == parsed.digest:
                    remember_files({parsed.digest: file.absolute()})
