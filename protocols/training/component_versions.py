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
from protocols.training.build_method import MethodError, component_class, components_of
from protocols.users_files.sources import SourceError, hashed_name
from results.spec.source_names import SourceName
from results.spec.training_spec import MethodSpec, nested_components

UNWRITTEN = {"pytorch-metric-learning": "2.9.0"}
"""Releases in use before fingerprints contained versions: they are left out, so that older fingerprints stay valid."""


def with_versions(method: MethodSpec) -> MethodSpec:
    """Add the versions of a method's classes, including those of nested components.

    A class from a user's file or module has the hash of its source in its name instead of a version.
    """
    parts = {"loss": method.loss, "miner": method.miner, "embedding_regularizer": method.embedding_regularizer}
    try:
        hashed = {key: None if part is None else part.renamed(hashed_name) for key, part in parts.items()}
    except SourceError as error:
        raise MethodError(str(error)) from error
    method = method.model_copy(update=hashed)
    versions = {cls.__name__: component_version(cls) for cls in _classes(method)}
    recorded = {name: version for name, version in sorted(versions.items()) if version is not None}
    return method.model_copy(update={"versions": recorded})


def component_version(cls: type[nn.Module]) -> str | None:
    """The version of a class; None for the one that it had before fingerprints contained versions.

    It is `meaning 2` for a class of the suite, `my-package 1.2` for one of an installed package, and `sha256:` with 16
    digits for one whose source file belongs to no package.
    """
    package = cls.__module__.partition(".")[0]
    if package == "losses":
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


def _classes(method: MethodSpec) -> Iterator[type[nn.Module]]:
    """The classes of all components of a method, without those from users' files and modules."""
    for kind, component in components_of(method).items():
        nested = [part for _, part in nested_components(component.arguments)]
        named = [(str(part.get("kind", "loss")), str(part["name"])) for part in nested]
        for part_kind, name in ((kind, component.name), *named):
            if SourceName.parse(name) is None:
                yield component_class(part_kind, name)
