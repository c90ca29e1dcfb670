"""The hash of a Python file together with the files beside it that it imports."""

import ast
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

_SUITE = frozenset({"losses", "results", "protocols", "reports", "reproduce"})
"""The suite's packages. Their classes have versions, so their files are not part of a user's source."""


def source_digest(file: Path) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a source.

    If the file imports no file beside it, this is the SHA-256 of the file alone, as `sha256sum` prints it. Otherwise it
    is the SHA-256 of the digests of all these files. Installed packages are not part of it.

    Args:
        file: A Python file.

    Raises:
        OSError: A file cannot be read.
        SyntaxError: A file is not valid Python.
    """
    files = source_files(file)
    digests = {path: hashlib.sha256(path.read_bytes()).digest() for path in files}
    if len(digests) == 1:
        return digests.popitem()[1].hex()[:16]
    folder = file.absolute().parent
    named = sorted((os.path.relpath(path, folder), digest) for path, digest in digests.items())
    return hashlib.sha256(b"".join(name.encode() + b"\0" + digest for name, digest in named)).hexdigest()[:16]


def source_files(file: Path) -> tuple[Path, ...]:
    """Return a file and all files beside it, or in its package, that it imports directly or indirectly.

    Args:
        file: A Python file.

    Raises:
        OSError: A file cannot be read.
        SyntaxError: A file is not valid Python.
    """
    reached: dict[Path, None] = {}
    pending = [file.absolute()]
    while pending:
        path = pending.pop()
        if path not in reached:
            reached[path] = None
            pending += _imported_files(path, ast.parse(path.read_bytes(), filename=str(path)))
    return tuple(reached)


def _imported_files(file: Path, tree: ast.Module) -> Iterator[Path]:
    """Yield the files below the file's folder, or its package's, that the file imports anywhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files_of([file.parent, _package_root(file)], alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            folders = [file.parents[node.level - 1]] if node.level else [file.parent, _package_root(file)]
            module = node.module.split(".") if node.module else []
            for alias in node.names:  # An imported name can be a module too.
                yield from _files_of(folders, [*module, alias.name])


def _files_of(folders: list[Path], module: list[str]) -> Iterator[Path]:
    """Yield the files of a module and of the packages around it, in the first folder that has them."""
    if module[0] in _SUITE:
        return
    for folder in folders:
        steps = [folder.joinpath(*module[: length + 1]) for length in range(len(module))]
        files = [file for step in steps for file in (step.with_name(f"{step.name}.py"), step / "__init__.py")]
        if existing := [file for file in files if file.is_file()]:
            yield from existing
            return


def _package_root(file: Path) -> Path:
    """Return the folder that contains the outermost package around a file; the file's folder without a package."""
    folder = file.absolute().parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder
