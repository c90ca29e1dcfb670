"""Checks of methods before anything is trained with them, and the versions of their classes for the fingerprints.

Classes of users and of other packages are imported, built and used for a first step in a process of their own. What
they import there decides their hash. A fingerprint contains the names of the method's classes and their versions, so
that results of an old class are never taken for results of a new one of the same name.
"""

import inspect
from contextlib import nullcontext, suppress
from functools import cache
from importlib import metadata
from typing import Literal, NamedTuple

import numpy as np
from torch import nn

from losses import version_of
from losses.plugin import TrainingPlugin
from protocols.training.build_method import (
    SMALL,
    MethodError,
    check_component,
    component_class,
    refuse_other_numbers,
)
from protocols.training.first_step import loss_falls, try_first_step
from protocols.training.library_versions import LIBRARY
from protocols.users_code.sources import SourceError, examine
from results.spec.component import Component, SourceName
from results.spec.conditions import TrainingSettings
from results.spec.method import Method, all_components, components_of, sources_of

_CLASSES, _DIMENSIONS = 16, 4


class LossFacts(NamedTuple):
    """What a loss shows of itself when it is built; the same for all settings of a card but `falls`.

    Attributes:
        acts_on_validation: Whether it acts on validation scores.
        warmup_passes: Passes with a frozen trunk that it needs.
        parameters: What it trains beside the network, as in `Recipe`.
        numbers: The numbers among its arguments, by name; defaults of its class included.
        falls: Whether it falls in a short trial with the first of the settings; None for classes that come with the
            suite or the library, and where hooks need a larger training.
    """

    acts_on_validation: bool = False
    warmup_passes: int = 0
    parameters: Literal["proxies", "others"] | None = None
    numbers: dict[str, float] = {}  # noqa: RUF012 - nobody changes it.
    falls: bool | None = None


def check_method(*settings: Method) -> tuple[dict[str, str], LossFacts]:
    """Check that all components of a method can be built with each of its settings.

    Returns:
        Names of users' classes with their hashes, by the names in the card, and what the loss shows of itself.

    Raises:
        MethodError: One of them cannot be built; the message is one line.
    """
    names = dict.fromkeys(name for method in settings for name in sources_of(method))
    if not names:
        return {}, _check(settings)
    try:
        facts, hashed = examine(list(names), _check_and_step, settings)
    except SourceError as error:
        raise MethodError(str(error)) from error
    return hashed, facts


def with_versions(method: Method, hashed: dict[str, str] | None = None) -> Method:
    """Add the versions of a method's classes, including those of nested components.

    A class from a user's file or module has the hash of its source in its name instead of a version: the name that
    `check_method` returned, if it is given, else that of the file as it is now.
    """
    named = [(kind, component.name) for kind, component in all_components(method)]
    if any((parsed := SourceName.parse(name)) and not parsed.digest for _, name in named):
        names = check_method(method)[0] if hashed is None else hashed
        method = method.renamed(lambda name: names.get(name, name))
    classes = [component_class(kind, name) for kind, name in named if not SourceName.parse(name)]
    versions = {
        cls.__name__: f"version {version_of(cls)}" if cls.__module__.startswith("losses.") else _library()
        for cls in sorted(classes, key=lambda cls: cls.__name__)
    }
    return method.model_copy(update={"versions": versions})


@cache
def _library() -> str:
    return f"{LIBRARY} {metadata.version(LIBRARY)}"


def _check(settings: tuple[Method, ...]) -> LossFacts:
    facts = []
    for method in settings:
        built = {kind: check_component(kind, component) for kind, component in components_of(method).items()}
        refuse_other_numbers(method)
        if method.loss is not None:
            facts.append(_facts(built["loss"], method.loss))
    return facts[0] if facts else LossFacts()


def _facts(loss: nn.Module, component: Component) -> LossFacts:
    needs = loss.needs if isinstance(loss, TrainingPlugin) else TrainingPlugin.needs
    accepted = inspect.signature(component_class("loss", component.name)).parameters
    values = {name: parameter.default for name, parameter in accepted.items()} | component.arguments
    numbers = {key: v for key, v in values.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    shapes = [parameter.shape for parameter in loss.parameters() if parameter.requires_grad]
    size, classes = SMALL["embedding_size"], SMALL["num_classes"]
    is_proxies = any(len(shape) == 2 and size in shape and shape.numel() // size % classes == 0 for shape in shapes)
    parameters: Literal["proxies", "others"] | None = ("proxies" if is_proxies else "others") if shapes else None
    return LossFacts(needs.validation, needs.warmup_epochs, parameters, numbers)


def _check_and_step(settings: tuple[Method, ...]) -> LossFacts:
    facts = _check(settings)
    for number, method in enumerate(settings):
        if method.loss is None:
            continue
        training = TrainingSettings(batch_size=(method.batch.samples_per_class or 4) * 8)
        targets = np.arange(_CLASSES).repeat(max(4, method.batch.samples_per_class))
        has_hooks = issubclass(component_class("loss", method.loss.name), TrainingPlugin)
        with suppress(Exception) if has_hooks else nullcontext():  # Hooks may need more than so small a training.
            try_first_step(method, training, _DIMENSIONS, targets)
            if number == 0:
                facts = facts._replace(falls=loss_falls(method, training, _DIMENSIONS, targets))
    return facts
