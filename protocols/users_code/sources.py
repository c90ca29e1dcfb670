"""Classes and functions from users' files and modules, found by names that contain the hash of their source.

The hash covers the file and every module that it has imported from its own folder, or from its package, after a first
step. It is taken in a fresh process. What code loads in other ways is not covered (docs/own_loss.md).
"""

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from protocols.machine.processes import EndedProcessError, run_in_subprocess
from results import InputError
from results.spec.component import SourceName

_LONGEST_REASON = 2000
"""Characters that are kept of an error of users' code, which can print whole tensors."""

_CHECKOUT = Path(__file__).resolve().parents[2]
_SUITE = frozenset({"losses", "results", "protocols", "reports", "reproduce"})
_INSTALLED = frozenset({"site-packages", "dist-packages"})


class SourceError(InputError, ValueError):
    """A user's file or module cannot be used. The message is one line with the remedy."""


@dataclass(frozen=True)
class UsersSource:
    """A user's file with the modules that it imports from its own folder or package.

    Attributes:
        root: Folder from which Python finds them: that of the file, or the one that holds its package.
        main: The file that a card or an experiment names, relative to `root`.
        files: All files, `main` included, relative to `root`.
    """

    root: Path
    main: str
    files: tuple[str, ...]

    @property
    def file(self) -> Path:
        """The file that a card or an experiment names."""
        return self.root / self.main

    def digest(self) -> str:
        """The first 16 hexadecimal digits of a SHA-256 of the files as they are now; a missing one is empty."""
        contents = [
            (name, hashlib.sha256(file.read_bytes()) if (file := self.root / name).is_file() else hashlib.sha256())
            for name in sorted(self.files)
        ]
        if len(contents) == 1:
            return contents[0][1].hexdigest()[:16]
        parts = (name.encode() + b"\0" + content.digest() for name, content in contents)
        return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


_known: dict[str, UsersSource] = {}
"""The sources that this process knows, by hash. Names in specifications have no folder: it differs between machines."""

_examined: dict[tuple[Any, ...], tuple[Any, list[tuple[SourceName, UsersSource]]]] = {}
"""What fresh processes have found out, by what they were asked: a value, and the sources with their hashed names."""

_roots: set[Path] = set()
"""Folders from which this process has loaded sources."""


def known_sources() -> dict[str, UsersSource]:
    """Return the sources that this process knows, by hash. A task takes them to its worker."""
    return dict(_known)


def remember_sources(sources: Mapping[str, UsersSource]) -> None:
    """Add sources by their hash, so that `load_source` finds them."""
    _known.update(sources)


def examine(names: Sequence[str], use: Callable[..., Any], *arguments: Any) -> tuple[Any, dict[str, str]]:
    """Import sources in a fresh process and use them there.

    Args:
        names: The sources, without a hash. Names of other things are left out.
        use: A function of a module, called with `arguments` after the import.

    Returns:
        Its value, and the names with the hashes of what was imported.
    """
    sources = {name: parsed for name in names if (parsed := SourceName.parse(name)) and parsed.digest is None}
    for parsed in sources.values():
        _located(parsed)  # A missing file needs no process.
    # Relative names depend on the folder.
    question = (os.getcwd(), tuple(sys.path), tuple(sources), use, repr(arguments))
    value, found = _examined.get(question, (None, []))
    if question not in _examined or any(source.digest() != name.digest for name, source in found):
        try:
            value, found = run_in_subprocess(_examine, list(sources.values()), known_sources(), use, arguments)
        except EndedProcessError as error:
            raise SourceError(f"{', '.join(sources)}: {error}") from error
        _examined[question] = value, found
    remember_sources({str(name.digest): source for name, source in found})
    return value, {name: str(hashed) for name, (hashed, _) in zip(sources, found, strict=True)}


def _examine(
    names: Sequence[SourceName], known: Mapping[str, UsersSource], use: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Any, list[tuple[SourceName, UsersSource]]]:
    remember_sources(known)
    for name in names:
        load_source(name)
    value = use(*arguments)
    sources = [_with_imports(_located(name)) for name in names]
    hashed = [
        replace(name, source=source.main if name.in_file else name.source, digest=source.digest())
        for name, source in zip(names, sources, strict=True)
    ]
    return value, list(zip(hashed, sources, strict=True))


def _with_imports(source: UsersSource) -> UsersSource:
    """Add the modules of the source's own folder or package that this process has imported."""
    package, _, inside = source.main.partition("/")
    own = source.root / package if inside else source.root
    if own.name in _INSTALLED:  # A module without a package, among other people's.
        return source
    standard = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    files = {source.main}
    for name, module in list(sys.modules.items()):
        path = os.path.abspath(getattr(module, "__file__", None) or "")
        # Texts first: thousands of modules are elsewhere.
        if name in ("__main__", "__mp_main__") or not path.startswith(f"{own}{os.sep}") or not os.path.isfile(path):
            continue
        file = Path(path)
        of_suite = file.is_relative_to(_CHECKOUT) and file.relative_to(_CHECKOUT).parts[0] in _SUITE
        installed = bool(_INSTALLED & set(file.relative_to(own).parts))
        if not (of_suite or installed or any(file.resolve().is_relative_to(folder) for folder in standard)):
            files.add(file.relative_to(source.root).as_posix())
    return replace(source, files=tuple(sorted(files)))


def hashed_name(name: str, use: Callable[[SourceName], Any] = str) -> str:
    """Add the hash of its source to a name, and remember the source. Names without a source stay as they are.

    `path/my_losses.py:Class` becomes `my_losses.py:Class (sha256 0123456789abcdef)`. `use` is called with the name in
    the process that takes the hash; by default the source is only imported.
    """
    parsed = SourceName.parse(name)
    return name if parsed is None or parsed.digest is not None else examine([name], use, parsed)[1][name]


def load_source(name: SourceName) -> Any:
    """Import a user's file or module and return the class or function that a name means, with or without a hash.

    Its folder stays at the end of `sys.path`, since a class can import a module in its first step.

    Raises:
        SourceError: There is no such class, it cannot be imported, or it is not the one that was hashed.
    """
    source = _located(name)
    if name.digest is not None and source.digest() != name.digest:
        raise SourceError(
            f"{source.file}, or a module that it imports, has changed or is gone: this run began with sha256 "
            f"{name.digest}; undo the change to continue, or run the command again to train with the changed file"
        )
    sys.dont_write_bytecode = True  # A compiled copy of a file is taken if second and size are the same.
    sys.path += [folder for folder in map(str, (source.root, source.file.parent)) if folder not in sys.path]
    with explained(source.file, ""), chdir(os.getcwd()):  # Other paths are relative to this folder.
        module = _imported(source, by_path=name.in_file)
    _check_hidden(source)
    try:
        return getattr(module, name.attribute)
    except AttributeError:
        defined = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        raise SourceError(
            f"{source.main} has no {name.attribute!r}; it defines {', '.join(defined) or 'no class and no function'}"
        ) from None


def _located(name: SourceName) -> UsersSource:
    """Find the files that a name means. Those of a name without a hash are not known before it was imported."""
    if name.digest is not None:
        if name.digest not in _known:
            raise SourceError(f"{name}: this file is not known here; run its experiment again with the method's card")
        return _known[name.digest]
    if not name.in_file:
        return locate_module(name.source)
    file = Path(os.path.abspath(name.source))  # Without "..", or modules beside it would seem to be elsewhere.
    if not file.is_file():
        raise SourceError(f"{file}: no such file; a path in a card or an experiment file is relative to that file")
    root = next(folder for folder in file.parents if not (folder / "__init__.py").is_file())
    main = file.relative_to(root).as_posix()
    return UsersSource(root, main, (main,))


def locate_module(module: str) -> UsersSource:
    """Find the file of a module without importing the packages around it."""
    try:
        spec = importlib.util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        spec = None
    places = [] if spec is None else [*(spec.submodule_search_locations or []), spec.origin or ""]
    for root in (Path(place).parent for place in places):
        stem = root.joinpath(*module.split("."))
        for file in (stem / "__init__.py", *sorted(stem.parent.glob(f"{stem.name}.*"))):
            if file.is_file() and inspect.getmodulename(file.name) in (stem.name, "__init__"):
                main = file.relative_to(root).as_posix()
                return UsersSource(root.absolute(), main, (main,))
    raise SourceError(
        f"there is no Python module {module!r}; install its package, or give the path of a file, such as "
        "./my_losses.py:MyLoss"
    )


def _imported(source: UsersSource, *, by_path: bool) -> ModuleType:
    importlib.invalidate_caches()
    if not by_path or "/" in source.main:
        parts = Path(source.main).with_name(inspect.getmodulename(source.main) or "").parts
        if parts[0] in _SUITE and source.root != _CHECKOUT:
            raise SourceError(f"{source.root / parts[0]} has the name of a package of this suite; rename it")
        module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
        if Path(module.__file__ or "").absolute() != source.file:
            raise SourceError(f"{source.file} is hidden by {module.__file__}, which has the same name; rename it")
        return module
    # A name of its own, so that files of the same name in other folders can be loaded too.
    name = f"source_{hashlib.sha256(f'{source.file} {source.digest()}'.encode()).hexdigest()[:16]}_{source.file.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, source.file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # Dataclasses look their module up.
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _check_hidden(source: UsersSource) -> None:
    """Raise SourceError if a module of another source has the name of one beside this source, which is hidden then."""
    _roots.add(source.root)
    others = tuple(f"{root}{os.sep}" for root in _roots if not source.root.is_relative_to(root))
    for name, module in list(sys.modules.items()):
        taken = getattr(module, "__file__", None) or ""  # Texts: there are thousands of modules.
        if taken.startswith(others) and not taken.startswith(f"{source.root}{os.sep}"):
            own = source.root / name.partition(".")[0]
            for neighbour in (own.with_name(f"{own.name}.py"), own / "__init__.py"):
                if neighbour.is_file():
                    raise SourceError(f"{neighbour} is hidden by {taken}, which has the same name; rename one of them")


def words_of(error: BaseException, lines: int | None = None) -> str:
    """Return the message of an error, or its first lines, as one line of printable characters; a long one is cut."""
    try:
        words = " ".join(" ".join(str(error).splitlines()[:lines]).split())
    except Exception:  # The code of users' errors can fail too.
        words = "its message cannot be made"
    return "".join(letter if letter.isprintable() else "?" for letter in words[:_LONGEST_REASON])


def _last_line(error: BaseException, files: Collection[Path]) -> str:
    """Return "FILE, line N" for the last line of these files in an error's traceback, or nothing."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if Path(one.filename) in files]
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""


def place_of(error: BaseException) -> str:
    """Return " (FILE, line N)" for the last line of users' files in an error's traceback, or nothing."""
    place = _last_line(error, {source.root / name for source in _known.values() for name in source.files})
    return f" ({place})" if place else ""


@contextmanager
def explained(source: Any, start: str, kind: type[ValueError] = SourceError) -> Iterator[None]:
    """Turn an error of a user's file, class or function into one line with the place in the file."""
    try:
        yield
    except SourceError:
        raise
    except (Exception, SystemExit) as error:  # A script may call sys.exit.
        file = source if isinstance(source, Path) else Path(getattr(inspect.getmodule(source), "__file__", None) or "")
        where, what = _last_line(error, [file.absolute()]) or file.name, f"{type(error).__name__}: {words_of(error)}"
        if isinstance(error, SyntaxError):
            where, what = f"{Path(error.filename or file).name}, line {error.lineno or 1}", error.msg
        raise kind(f"{start}{': ' if start else ''}{where}: {what}") from error
