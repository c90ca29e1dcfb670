"""Versions of a method's classes, as part of its trainings' fingerprints.

A fingerprint contains the names of the method's classes and their arguments. A class can change under the same name.
Then its version changes, so that results of the old class are never taken for results of the new one.
"""

import hashlib
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from torch import nn

from losses import meaning_of
from protocols.training.build_method import MethodError, component_class
from protocols.users_files.sources import SourceError, hashed_name
from results.spec.source_names import SourceName
from results.spec.training_spec import MethodSpec, nested_components

SUITE_PACKAGE = "losses"
"""The package of the suite's own classes. A class has its version in the attribute `MEANING`; the default is 1."""

UNWRITTEN = {"pytorch-metric-learning": "2.9.0"}
"""Releases in use before fingerprints contained versions: they are left out, so that older fingerprints stay valid."""


def with_versions(method: MethodSpec) -> MethodSpec:
    """Add the versions of a method's classes, including those of nested components.

    A class from a user's file or module has the hash of its source in its name instead of a version.
    """
    method = _with_hashes(method)
    versions = {cls.__name__: component_version(cls) for cls in _classes(method)}
    recorded = {name: version for name, version in sorted(versions.items()) if version is not None}
    return method.model_copy(update={"versions": recorded})


def component_version(cls: type[nn.Module]) -> str | None:
    """The version of a class.

    Returns:
        `meaning 2` for a class of the suite, `my-package 1.2` for a class of an installed package, and `sha256:` with
        16 digits for a class whose source file belongs to no package. None for the version that the class had before
        fingerprints contained versions.
    """
    package = cls.__module__.partition(".")[0]
    if package == SUITE_PACKAGE:
        meaning = meaning_of(cls)
        return None if meaning == 1 else f"meaning {meaning}"
    if (installed := _installed(package)) is not None:
        name, release = installed
        return None if UNWRITTEN.get(name) == release else f"{name} {release}"
    source = Path(inspect.getfile(cls)).read_bytes()
    return f"sha256:{hashlib.sha256(source).hexdigest()[:16]}"


@cache
def _installed(package: str) -> tuple[str, str] | None:
    """Name and release of the distribution that brings a package; None for a user's own module.

    Cached, because looking through all installed distributions takes a third of a second.
    """
    try:
        namesake = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        pass
    else:
        if package in (namesake.read_text("top_level.txt") or "").split():
            return namesake.metadata["Name"], namesake.version
    distributions = metadata.packages_distributions().get(package)
    return (distributions[0], metadata.version(distributions[0])) if distributions else None


def _with_hashes(method: MethodSpec) -> MethodSpec:
    parts = {"loss": method.loss, "miner": method.miner, "embedding_regularizer": method.embedding_regularizer}
    try:
        settled = {key: None if part is None else part.renamed(hashed_name) for key, part in parts.items()}
    except SourceError as error:
        raise MethodError(str(error)) from error
    return method.model_copy(update=settled)


def _classes(method: MethodSpec) -> Iterator[type[nn.Module]]:
    """The classes of all components of a method, without those from users' files and modules."""
    parts = (("loss", method.loss), ("miner", method.miner), ("regularizer", method.embedding_regularizer))
    for kind, component in parts:
        if component is not None:
            if SourceName.parse(component.name) is None:
                yield component_class(kind, component.name)
            for _, nested in nested_components(component.arguments):
                if SourceName.parse(str(nested["name"])) is None:
                    yield component_class(str(nested.get("kind", "loss")), str(nested["name"]))
