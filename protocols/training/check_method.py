"""Checks of methods before anything is trained with them, and the versions of their classes for the fingerprints.

Classes of users and of other packages are imported, built and used for a first step in a process of their own. What
they import there decides their hash. A fingerprint contains the names of the method's classes and their versions, so
that results of an old class are never taken for results of a new one of the same name.
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata

import numpy as np
from torch import nn

from losses import version_of
from losses.plugin import TrainingPlugin
from protocols.training.build_method import (
    MethodError,
    check_component,
    component_class,
    components_of,
    has_foreign_code,
    is_taken,
    named_components,
    plugin_points,
)
from protocols.training.first_step import try_first_step
from protocols.users_code.sources import SourceError, examine, is_installed, locate_module
from results.spec.conditions import TrainingSettings
from results.spec.source_names import SourceName
from results.spec.training_spec import MethodSpec

_CLASSES, _DIMENSIONS = 16, 4


@dataclass(frozen=True)
class MethodFacts:
    """What is known about a method after its classes were built.

    Attributes:
        names: Names of users' classes with their hashes, by the names in the card.
        acts_on_validation: Whether its loss acts on validation scores.
    """

    names: dict[str, str]
    acts_on_validation: bool


def check_method(*settings: MethodSpec) -> MethodFacts:
    """Check that all components of a method can be built with each of its settings.

    Raises:
        MethodError: One of them cannot be built; the message is one line.
    """
    settings = tuple(_with_editable_packages(method) for method in settings)
    if not any(map(has_foreign_code, settings)):
        return MethodFacts({}, _check(settings))
    names = dict.fromkeys(name for method in settings for _, name in named_components(method))
    try:
        acts_on_validation, hashed = examine(list(names), _check_and_step, settings)
    except SourceError as error:
        raise MethodError(str(error)) from error
    return MethodFacts(hashed, acts_on_validation)


def with_versions(method: MethodSpec) -> MethodSpec:
    """Add the versions of a method's classes, including those of nested components.

    A class from a user's file or module has the hash of its source in its name instead of a version.
    """
    method = _with_editable_packages(method)
    if any((parsed := SourceName.parse(name)) and not parsed.digest for _, name in named_components(method)):
        names = check_method(method).names
        method = _renamed(method, lambda name: names.get(name, name))
    others = tuple((kind, name) for kind, name in named_components(method) if SourceName.parse(name) is None)
    try:
        known = all(is_taken(kind, name) for kind, name in others)
        versions = versions_of(others) if known else examine([], versions_of, others)[0]
    except SourceError as error:
        raise MethodError(str(error)) from error
    return method.model_copy(update={"versions": versions})


def versions_of(names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the versions of classes of the suite and of packages, by the names of the classes.

    Args:
        names: Kind and name of each component.
    """
    classes = {cls.__name__: cls for cls in (component_class(*name) for name in names)}
    return {name: component_version(cls) for name, cls in sorted(classes.items())}


def component_version(cls: type[nn.Module]) -> str:
    """The version of a class: `version 2` in the suite, and `my-package 1.2` in an installed package."""
    package = cls.__module__.partition(".")[0]
    return f"version {version_of(cls)}" if package == "losses" else _installed(package)


@cache
def _installed(package: str) -> str:
    """Name and release of the distribution that brings a package. To look through all takes a third of a second."""
    with suppress(metadata.PackageNotFoundError):
        namesake = metadata.distribution(package)
        if package in (namesake.read_text("top_level.txt") or "").split():
            return f"{namesake.metadata['Name']} {namesake.version}"
    name = metadata.packages_distributions()[package][0]
    return f"{name} {metadata.version(name)}"


def _with_editable_packages(method: MethodSpec) -> MethodSpec:
    """Name the class of a package that is installed for editing by its module, so that it gets a hash."""

    def module_of(name: str) -> str:
        point = None if SourceName.parse(name) or is_taken("loss", name) else next(iter(plugin_points(name)), None)
        with suppress(SourceError):
            if point is not None and not is_installed(locate_module(point.module)):
                return point.value
        return name

    return _renamed(method, module_of)


def _renamed(method: MethodSpec, rename: Callable[[str], str]) -> MethodSpec:
    parts = {"loss": method.loss, "miner": method.miner, "embedding_regularizer": method.embedding_regularizer}
    return method.model_copy(update={key: part and part.renamed(rename) for key, part in parts.items()})


def _check(settings: tuple[MethodSpec, ...]) -> bool:
    for method in settings:
        for kind, component in components_of(method).items():
            check_component(kind, component)
    losses = [component_class("loss", method.loss.name) for method in settings if method.loss is not None]
    return any(issubclass(loss, TrainingPlugin) and loss.needs.validation for loss in losses)


def _check_and_step(settings: tuple[MethodSpec, ...]) -> bool:
    acts_on_validation = _check(settings)
    for method in settings:
        if method.loss is None:
            continue
        training = TrainingSettings(batch_size=(method.samples_per_class or 4) * 8)
        targets = np.arange(_CLASSES).repeat(max(4, method.samples_per_class))
        has_hooks = issubclass(component_class("loss", method.loss.name), TrainingPlugin)
        with suppress(Exception) if has_hooks else nullcontext():  # Hooks may need more than so small a training.
            try_first_step(method, training, _DIMENSIONS, targets)
    return acts_on_validation
