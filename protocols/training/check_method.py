"""Checks of methods before anything is trained with them, and the versions of their classes for the fingerprints.

Classes of users and of other packages are imported, built and used for a first step in a process of their own. What
they import there decides their hash. A fingerprint contains the names of the method's classes and their versions, so
that results of an old class are never taken for results of a new one of the same name.
"""

from collections.abc import Callable
from contextlib import nullcontext, suppress
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
    named_components,
)
from protocols.training.first_step import try_first_step
from protocols.users_code.sources import SourceError, examine
from results.spec.conditions import TrainingSettings
from results.spec.source_names import SourceName
from results.spec.training_spec import MethodSpec

_CLASSES, _DIMENSIONS = 16, 4


def check_method(*settings: MethodSpec) -> tuple[dict[str, str], bool]:
    """Check that all components of a method can be built with each of its settings.

    Returns:
        Names of users' classes with their hashes, by the names in the card; whether its loss acts on validation scores.

    Raises:
        MethodError: One of them cannot be built; the message is one line.
    """
    if not any(map(has_foreign_code, settings)):
        return {}, _check(settings)
    names = dict.fromkeys(name for method in settings for _, name in named_components(method))
    try:
        acts_on_validation, hashed = examine(list(names), _check_and_step, settings)
    except SourceError as error:
        raise MethodError(str(error)) from error
    return hashed, acts_on_validation


def with_versions(method: MethodSpec) -> MethodSpec:
    """Add the versions of a method's classes, including those of nested components.

    A class from a user's file or module has the hash of its source in its name instead of a version.
    """
    if any((parsed := SourceName.parse(name)) and not parsed.digest for _, name in named_components(method)):
        names, _ = check_method(method)
        method = _renamed(method, lambda name: names.get(name, name))
    others = [component_class(kind, name) for kind, name in named_components(method) if not SourceName.parse(name)]
    versions = {cls.__name__: component_version(cls) for cls in sorted(others, key=lambda cls: cls.__name__)}
    return method.model_copy(update={"versions": versions})


def component_version(cls: type[nn.Module]) -> str:
    """The version of a class: `version 2` in the suite, `pytorch-metric-learning 2.9.0` in the library."""
    return f"version {version_of(cls)}" if cls.__module__.startswith("losses.") else _library()


@cache
def _library() -> str:
    return f"pytorch-metric-learning {metadata.version('pytorch-metric-learning')}"


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
