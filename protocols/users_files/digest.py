"""The hash of a Python file together with the files beside it that it imports."""

import ast
import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

_SUITE = frozenset({"losses", "results", "protocols", "reports", "reproduce"})
"""The suite's packages. Their classes have versions, so their files are not part of a user's source."""


def source_digest(file: Path) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a source.

    If the file imports no file beside it, this is the SHA-256 of the file alone, as `sha256sum` prints it. Otherwise it
    is the SHA-256 of the digests of all these files. Installed packages are not part of it.
    """
    return digest_of(file, read_source(file))


def digest_of(file: Path, contents: Mapping[Path, bytes]) -> str:
    """Return the digest of a source whose files have been read, as `source_digest` does."""
    digests = {path: hashlib.sha256(content).digest() for path, content in contents.items()}
    if len(digests) == 1:
        return digests.popitem()[1].hex()[:16]
    folder = file.absolute().parent
    named = sorted((os.path.relpath(path, folder), digest) for path, digest in digests.items())
    return hashlib.sha256(b"".join(name.encode() + b"\0" + digest for name, digest in named)).hexdigest()[:16]


def read_source(file: Path) -> dict[Path, bytes]:
    """Read a file and all files beside it, or in its package, that it imports directly or indirectly."""
    contents: dict[Path, bytes] = {}
    pending = [file.absolute()]
    while pending:
        path = pending.pop()
        if path not in contents:
            contents[path] = path.read_bytes()
            pending += _imported_files(path, contents[path])
    return contents


@lru_cache(maxsize=4096)
def _imported_files(file: Path, content: bytes) -> tuple[Path, ...]:
    files: list[Path] = []
    for node in ast.walk(ast.parse(content, filename=str(file))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                files += _files_of(_package_root(file), alias.name.split("."), file)
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            for alias in node.names:  # An imported name can be a module too.
                if node.level:
                    files += _existing(file.parents[node.level - 1], [*module, alias.name])
                else:
                    files += _files_of(_package_root(file), [*module, alias.name], file)
    return tuple(files)


def _files_of(root: Path, module: list[str], importer: Path) -> list[Path]:
    """Return the files of an absolute import; none for the suite's packages and for packages other than the file's."""
    # An installed module without a package has all installed packages beside it.
    installed = root.name in ("site-packages", "dist-packages") and root == importer.parent
    other_package = installed or (root != importer.parent and module[0] != importer.relative_to(root).parts[0])
    return [] if module[0] in _SUITE or other_package else _existing(root, module)


def _existing(folder: Path, module: list[str]) -> list[Path]:
    steps = [folder.joinpath(*module[: length + 1]) for length in range(len(module))]
    return [f for step in steps for f in (step.with_name(f"{step.name}.py"), step / "__init__.py") if f.is_file()]


def _package_root(file: Path) -> Path:
    """Return the folder that contains the outermost package around a file; the file's folder without a package."""
    folder = file.absolute().parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder
