"""Versions of a method's classes, as part of its trainings' fingerprints.

A fingerprint contains the names of the method's classes and their arguments. A class can change under the same name.
Then its version changes, so that results of the old class are never taken for results of the new one.
"""

from collections.abc import Iterable
from functools import cache
from importlib import metadata

from torch import nn

from losses import meaning_of
from protocols.training.build_method import component_class

UNWRITTEN = {"pytorch-metric-learning": "2.9.0"}
"""Releases in use before fingerprints contained versions: they are left out, so that older fingerprints stay valid."""


def versions_of(names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the versions of classes of the suite and of packages, by the names of the classes.

    Args:
        names: Kind and name of each component.
    """
    versions = {cls.__name__: component_version(cls) for cls in (component_class(*name) for name in names)}
    return {name: version for name, version in sorted(versions.items()) if version is not None}


def component_version(cls: type[nn.Module]) -> str | None:
    """The version of a class; None for the one that it had before fingerprints contained versions.

    It is `meaning 2` for a class of the suite and `my-package 1.2` for one of an installed package.
    """
    package = cls.__module__.partition(".")[0]
    if package == "losses":
        meaning = meaning_of(cls)
        return None if meaning == 1 else f"meaning {meaning}"
    name, release = _installed(package)
    return None if UNWRITTEN.get(name) == release else f"{name} {release}"


@cache
def _installed(package: str) -> tuple[str, str]:
    """Name and release of the distribution that brings a package.

    Cached, because looking through all installed distributions takes a third of a second.
    """
    try:
        namesake = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        pass
    else:
        if package in (namesake.read_text("top_level.txt") or "").split():
            return namesake.metadata["Name"], namesake.version
    name = metadata.packages_distributions()[package][0]
    return name, metadata.version(name)
