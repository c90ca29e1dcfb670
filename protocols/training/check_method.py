"""Checks of methods before anything is trained with them, and the versions of their classes for the fingerprints.

Classes of users and of other packages are imported, built and used for a few steps in a process of their own. What they
load there decides their hash.
"""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import nn

from losses import Schedule
from losses.plugin import TrainingPlugin
from protocols.training.build_method import (
    MethodError,
    build_method,
    check_component,
    component_class,
    components_of,
    has_foreign_code,
    is_taken,
    named_components,
    plugin_points,
)
from protocols.training.component_versions import versions_of
from protocols.users_files.sources import SourceError, examine, users_module
from results.spec.source_names import SourceName
from results.spec.training_spec import MethodSpec

_CLASSES, _PER_CLASS, _INPUTS, _DIMENSIONS, _STEPS = 8, 4, 16, 8, 4


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
    settings = tuple(_with_outside_packages(method) for method in settings)
    if not any(map(has_foreign_code, settings)):
        return MethodFacts({}, _check(settings))
    names = [name for method in settings for _, name in named_components(method)]
    try:
        acts_on_validation, hashed = examine(list(dict.fromkeys(names)), _check_and_step, settings)
    except SourceError as error:
        raise MethodError(str(error)) from error
    return MethodFacts(hashed, acts_on_validation)


def with_versions(method: MethodSpec) -> MethodSpec:
    """Add the versions of a method's classes, including those of nested components.

    A class from a user's file or module has the hash of its source in its name instead of a version.
    """
    method = _with_outside_packages(method)
    own = [name for _, name in named_components(method) if (parsed := SourceName.parse(name)) and not parsed.digest]
    if own:
        names = check_method(method).names
        method = _renamed(method, lambda name: names.get(name, name))
    others = tuple((kind, name) for kind, name in named_components(method) if SourceName.parse(name) is None)
    if all(is_taken(kind, name) for kind, name in others):
        versions = versions_of(others)
    else:
        try:
            versions = examine([], versions_of, others)[0]
        except SourceError as error:
            raise MethodError(str(error)) from error
    return method.model_copy(update={"versions": versions})


def _with_outside_packages(method: MethodSpec) -> MethodSpec:
    """Name a package's class by its module where its files lie outside the installed ones, so that it gets a hash."""

    def module_of(name: str) -> str:
        if SourceName.parse(name) is not None or is_taken("loss", name):
            return name
        point = next(iter(plugin_points(name)), None)
        return name if point is None or not users_module(point.module) else point.value

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
        # Only for what the steps load: a loss may need more than so small a training.
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _step(method)
    return acts_on_validation


def _step(method: MethodSpec) -> None:
    """Train a linear layer for a few steps with all hooks of the loss."""
    labels = torch.arange(_CLASSES).repeat(_PER_CLASS)
    inputs = torch.randn(len(labels), _INPUTS)
    built = build_method(method, _CLASSES, _DIMENSIONS, len(labels))
    model = nn.Sequential(nn.Linear(_INPUTS, _DIMENSIONS), nn.Identity())
    schedule = Schedule(
        *(built.plugin, model, labels, len(labels)), trunk=model[0], images=lambda rows: inputs[rows], warmup_epochs=0
    )
    groups = [{"params": model.parameters()}, *built.plugin.param_groups(0.01, 0.0)]
    optimizer = torch.optim.SGD(groups, lr=0.01)
    schedule.evaluated({"map_at_r": 0.0, "precision_at_1": 0.0, "r_precision": 0.0})
    for _ in range(_STEPS):
        schedule.start_step()
        optimizer.zero_grad()
        built(model(inputs), labels).backward()
        if schedule.gradients_ready():
            optimizer.step()
        schedule.evaluated({"map_at_r": 0.0, "precision_at_1": 0.0, "r_precision": 0.0})
