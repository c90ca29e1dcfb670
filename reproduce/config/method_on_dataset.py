"""Method cards as an experiment opens them: what is searched, what is set, what is taken from a publication."""

from pydantic import JsonValue

from protocols.search.open_method import HyperparameterError, OpenMethod
from protocols.training.build_method import MethodError, check_method
from protocols.training.component_versions import with_versions
from reproduce.config.checked_card import open_card
from reproduce.config.method_card import MethodCard
from reproduce.config.protocol_limits import check_protocol
from reproduce.errors import InputError
from results.experiment_spec import Experiment

PROXY_LR = "loss_optimizer.lr"


def open_method(experiment: Experiment, card: MethodCard) -> OpenMethod:
    """A method on an experiment's dataset; raises InputError for a setting that the method has no place for."""
    opened = open_card(card, experiment.dataset.name, experiment.search.bounds)
    given = given_hyperparameters(experiment, card)
    ranges = experiment.search.ranges.get(card.key, {})
    searched = () if experiment.search.trials == 0 else opened.space
    space = tuple(
        parameter.model_copy(update=dict(ranges[parameter.target])) if parameter.target in ranges else parameter
        for parameter in searched
        if parameter.target not in given
    )
    check_protocol(experiment, card)
    try:
        method = opened.at(given)
        check_method(method)
    except (HyperparameterError, MethodError) as error:
        raise InputError(f"settings of method {card.key!r}: {error}") from error
    if experiment.proxies is not None and trains_proxies(card):
        method = method.model_copy(
            update={"warmup_passes": experiment.proxies.warmup_passes, "warmup_steps": experiment.proxies.warmup_steps}
        )
    return OpenMethod(method=with_versions(method), space=space, given=given)


def given_hyperparameters(experiment: Experiment, card: MethodCard) -> dict[str, JsonValue]:
    """What is not searched, by target: published values where nothing is, the proxies' rate, the experiment's own."""
    given: dict[str, JsonValue] = {}
    if experiment.search.trials == 0:
        given.update(published_hyperparameters(experiment, card))
    if experiment.proxies is not None and trains_proxies(card):
        given[PROXY_LR] = experiment.training.optimizer.lr * experiment.proxies.lr_multiplier
    given.update(experiment.settings.get(card.key, {}))
    return given


def published_hyperparameters(experiment: Experiment, card: MethodCard) -> dict[str, JsonValue]:
    """The values that the method's source published, by target.

    Raises:
        InputError: If the experiment names published values that the card does not have.
    """
    wanted = experiment.search.published
    if wanted is not None and card.published and wanted not in card.published:
        known = ", ".join(card.published)
        raise InputError(f"search.published {wanted!r}: method {card.key!r} has published values for {known}")
    return card.published.get(wanted or experiment.dataset.name, {})


def trains_proxies(card: MethodCard) -> bool:
    """Whether the loss has parameters with a learning rate of their own."""
    return card.loss_optimizer.lr is not None or PROXY_LR in card.search
