"""Classes and functions from users' files and modules, found by names that contain the hash of what they load.

The hash covers every user's file that import, construction and a first step really load. It is taken in a fresh
process.
"""

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from protocols.processes import EndedProcessError, apart
from protocols.users_files.loaded_files import LoadedSource, is_users, loaded_files, sha256_of, watch
from results.spec.source_names import SourceName


class SourceError(ValueError):
    """A user's file or module cannot be used. The message is one line with the remedy."""


_known: dict[str, LoadedSource] = {}
"""The sources that this process knows, by hash. Names in specifications have no folder, since it differs between
machines."""

_examined: dict[tuple[Any, ...], tuple[Any, dict[str, LoadedSource]]] = {}
"""What fresh processes have found out, by what they were asked."""

_imported: set[str] = set()
"""Names of what this process has imported."""


def known_sources() -> dict[str, LoadedSource]:
    """Return the sources that this process knows, by hash. A task takes them to its worker."""
    return dict(_known)


def remember_sources(sources: Mapping[str, LoadedSource]) -> None:
    """Add sources by their hash, so that `load_source` finds them."""
    _known.update(sources)


def has_users_code() -> bool:
    """Whether this process has imported code from users' files and modules. No other training must run in it."""
    return bool(_imported)


def examine(names: Sequence[str], use: Callable[..., Any], *arguments: Any) -> tuple[Any, dict[str, str]]:
    """Import sources in a fresh process and use them there.

    Args:
        names: The sources, without a hash. Names of other things are left out.
        use: A function of a module, called with `arguments` after the import.

    Returns:
        Its value, and the names with the hashes of what was loaded.
    """
    sources = {name: parsed for name in names if (parsed := SourceName.parse(name)) and parsed.digest is None}
    for parsed in sources.values():
        _file_of(parsed)  # A missing file is told without a process.
    # Relative names depend on the folder, and the environment decides where Python looks.
    question = (os.getcwd(), os.environ.get("PYTHONPATH"), tuple(sys.path), tuple(names), use, repr(arguments))
    value, found = _examined.get(question, (None, {}))
    if question not in _examined or any(source.changed() for source in found.values()):
        try:
            value, found = apart(_examine, sources, known_sources(), use, arguments)
        except EndedProcessError as error:
            raise SourceError(f"{', '.join(sources) or 'a loss of a package'}: {error}") from error
        _examined[question] = value, found
    remember_sources({source.digest: source for source in found.values()})
    return value, {name: _hashed(sources[name], source) for name, source in found.items()}


def _examine(
    names: Mapping[str, SourceName],
    known: Mapping[str, LoadedSource],
    use: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> tuple[Any, dict[str, LoadedSource]]:
    watch()
    remember_sources(known)
    files = {name: _file_of(parsed) for name, parsed in names.items()}
    packages = _packages(names.values())
    loaded: dict[str, Path] = {}
    own: dict[str, dict[str, Path]] = {}
    with findable(files.values()):
        for name, parsed in names.items():
            load_source(parsed)
            now = loaded_files(packages)
            own[name] = {key: path for key, path in now.items() if key not in loaded}
            loaded |= now
        value = use(*arguments)
    # What is loaded later belongs to all of them, since it cannot be told whose code asked for it.
    later = {key: path for key, path in loaded_files(packages).items() if key not in loaded}
    return value, {name: _source(names[name], files[name], own[name] | later) for name in names}


def _source(name: SourceName, file: Path, loaded: Mapping[str, Path]) -> LoadedSource:
    package = "" if name.in_file else name.source.rpartition(".")[0].replace(".", "/")
    files = {os.path.relpath(key, package or "."): path for key, path in loaded.items() if path != file}
    hashed = {key: (path, sha256_of(path) or "") for key, path in {file.name: file, **files}.items()}
    return LoadedSource(file.absolute(), hashed, name.in_file)


def hashed_name(name: str, use: Callable[..., Any] | None = None) -> str:
    """Add the hash of its source to a name, and remember the source. Names without a source stay as they are.

    `path/my_losses.py:Class` becomes `my_losses.py:Class (sha256 0123456789abcdef)`. `use` is called with the name in
    the process that takes the hash; by default the source is only imported.
    """
    parsed = SourceName.parse(name)
    if parsed is None or parsed.digest is not None:
        return name
    return examine([name], use or _no_use, parsed)[1][name]


def _no_use(_name: SourceName) -> None:
    """Use a source no further than to import it."""


def _hashed(name: SourceName, source: LoadedSource) -> str:
    return str(SourceName(source.file.name if name.in_file else name.source, name.attribute, source.digest))


def load_source(name: SourceName) -> Any:
    """Import a user's file or module and return the class or function that a name means, with or without a hash."""
    file = _file_of(name)
    source = None if name.digest is None else _known.get(name.digest)
    if source is not None and (changed := source.changed()) is not None:
        raise SourceError(
            f"{changed} has changed: this run began with sha256 {name.digest}, and the file is now another; undo the "
            "change to continue, or start the run again to train with the changed file"
        )
    _imported.add(name.source)
    module = _module_of_file(file) if name.in_file else _imported_module(name.source)
    try:
        return getattr(module, name.attribute)
    except AttributeError:
        defined = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        called = Path(name.source).name if name.in_file else name.source
        raise SourceError(
            f"{called} has no {name.attribute!r}; it defines {', '.join(defined) or 'no class and no function'}"
        ) from None


def _file_of(name: SourceName) -> Path:
    known = None if name.digest is None else _known.get(name.digest)
    if not name.in_file:
        return _file_of_module(name.source) if known is None else known.file
    if name.digest is not None and known is None:
        raise SourceError(f"{name}: this file is not known here; run its experiment again with the method's card")
    file = Path(name.source) if known is None else known.file
    if not file.is_file():
        raise SourceError(f"{file}: no such file; a path in a card or an experiment file is relative to that file")
    return file.absolute()


def _file_of_module(module: str) -> Path:
    """Find a module without importing the packages around it."""
    top, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        spec = None
    places = [] if spec is None else list(map(Path, spec.submodule_search_locations or []))
    if spec is not None and not inner and spec.origin is not None and Path(spec.origin).is_file():
        return Path(spec.origin)
    for place in (folder.joinpath(*inner) for folder in places if inner):
        candidates = (place / "__init__.py", *sorted(place.parent.glob(f"{place.name}.*")))
        for file in candidates:
            if file.is_file() and inspect.getmodulename(file.name) in (place.name, "__init__"):
                return file
    raise SourceError(
        f"there is no Python module {module!r}; install its package, or give the path of a file, such as "
        "./my_losses.py:MyLoss"
    )


def users_module(module: str) -> bool:
    """Whether a module lies outside the installed packages, as one of a package that is installed for editing."""
    try:
        return is_users(str(_file_of_module(module)))
    except SourceError:
        return False


@contextmanager
def findable(files: Iterable[Path]) -> Iterator[None]:
    """Let Python find the modules beside users' files within the block, after all others."""
    folders = [str(folder) for folder in dict.fromkeys(file.absolute().parent for file in files)]
    sys.path += folders
    try:
        yield
    finally:
        for folder in folders:
            if folder in sys.path:
                sys.path.remove(folder)


def _module_of_file(file: Path) -> ModuleType:
    """Import a file under a name of its own. The files beside it can be imported while it runs."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SourceError(f"{file}: cannot be read ({error.strerror})") from error
    name = f"source_{hashlib.sha256(str(file).encode() + content).hexdigest()[:16]}_{file.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Before it runs, since dataclasses look their module up.
    try:
        with findable([file]):
            # Not through the loader, which may take a compiled copy of an older text.
            exec(compile(content, str(file), "exec", dont_inherit=True), vars(module))
        _check_neighbours(file)
    except SourceError:
        del sys.modules[name]
        raise
    except SyntaxError as error:
        del sys.modules[name]
        where = f"{Path(error.filename or file).name}, line {error.lineno or 1}"
        raise SourceError(f"{where}: {error.msg}") from error
    except (Exception, SystemExit) as error:  # A script may call sys.exit.
        del sys.modules[name]
        raise SourceError(raised_in(file, error)) from error
    return module


def _check_neighbours(file: Path) -> None:
    """Raise SourceError if a module has the name of a file's neighbour, which Python would not find then."""
    for name, taken in loaded_files().items():
        top = Path(name).parts[0]
        neighbour = file.parent / (top if "/" not in name else f"{top}/__init__.py")
        imported = sys.modules.get(Path(top).stem)
        inside = taken.absolute().is_relative_to(file.parent)
        if imported is not None and not inside and neighbour != taken and neighbour.is_file():
            raise SourceError(f"{neighbour} is hidden by {taken}, which has the same name; rename one of them")


def _imported_module(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
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


def check_loaded(names: Iterable[str]) -> None:
    """Check that the hashes of names cover all users' code that this process has loaded.

    Raises:
        SourceError: It holds a file that was not loaded when the hashes were taken, or that has changed since.
    """
    parsed = [name for name in map(SourceName.parse, names) if name is not None and name.digest is not None]
    known = {name: source for name in parsed if (source := _known.get(str(name.digest))) is not None}
    covered = {digest for source in known.values() for _, digest in source.files.values()}
    others = {key: path for key, path in loaded_files(_packages(parsed)).items() if sha256_of(path) not in covered}
    for name in (name for name in parsed if name not in known):
        # A module of a stored training: its name alone says which files it had.
        source = _source(name, _file_of(name), others)
        if source.digest != name.digest:
            raise SourceError(f"{name}: the module has changed: its sha256 is now {source.digest}")
        others = {}
    for key, path in others.items():
        before = next((source for source in known.values() if key in source.files), None)
        if before is not None:
            raise SourceError(f"{path} has changed since this run began; run the command again to train with it")
        whose = ", ".join(dict.fromkeys(name.source for name in parsed)) or "the file that a card names"
        raise SourceError(
            f"{path} was loaded late, so the hash of {whose} does not cover it and the result is thrown away; import "
            f"it at the top of that file"
        )


def _packages(names: Iterable[SourceName]) -> frozenset[str]:
    """Return the packages of modules that names mean. All their files count, even of an installed package."""
    return frozenset(name.source.partition(".")[0] for name in names if not name.in_file)
