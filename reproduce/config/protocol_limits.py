"""Refuses methods that a protocol cannot run correctly."""

from losses.plugin import TrainingPlugin
from protocols.training.build_method import component_class
from reproduce.config.method_card import MethodCard
from reproduce.errors import InputError
from results.experiment_spec import Experiment


def check_protocol(experiment: Experiment, card: MethodCard) -> None:
    """Refuse a method that needs validation scores if the experiment's protocol has none.

    In the final training of protocol `standard` there are no validation classes. CCP starts a new problem when the
    validation score stops rising, so it would never leave its first problem.

    Args:
        experiment: The experiment with its protocol.
        card: The method card.

    Raises:
        InputError: The protocol is `standard`, and the loss acts on validation scores.
    """
    if experiment.protocol == "standard" and _acts_on_validation(card):
        raise InputError(
            f"method {card.key!r} acts on validation scores, which the final training of protocol standard does not "
            "have; use protocol mlrc"
        )


def _acts_on_validation(card: MethodCard) -> bool:
    if card.loss is None:
        return False
    loss = component_class("loss", card.loss.name)
    return issubclass(loss, TrainingPlugin) and loss.needs.validation
