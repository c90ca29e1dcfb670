"""Loads method cards for a run. Every class and argument in a card is checked by building it."""

from typing import Literal

from protocols.search.method_template import MethodTemplate
from protocols.search.space import SearchParameter
from protocols.training.build_method import MethodError
from protocols.training.check_method import check_method, with_versions
from reproduce.config.method_card import LossOptimizer, MethodCard, card_file, read_card
from reproduce.config.strict_yaml import one_line_errors
from reproduce.errors import InputError
from results.spec.conditions import TrainingSettings
from results.spec.experiment_spec import Variant
from results.spec.hyperparameters import HyperparameterError, method_at
from results.spec.source_names import sources_of
from results.spec.training_spec import MethodSpec

BoundsChoice = Literal["widened", "initial"]


def load_card(name: str) -> MethodCard:
    """Load a method card, given its name or its file, and check that its classes accept its arguments."""
    path = card_file(name)
    card = read_card(path)
    with one_line_errors(str(path), MethodError, HyperparameterError):
        _check(card)
    return card


def load_variant(variant: Variant) -> MethodCard:
    """Load the card of a variant's method and apply the variant's settings.

    Fixed hyperparameters are no longer searched, and published values are removed.
    """
    card = load_card(variant.of)
    if "optimizer.lr" in variant.set:
        raise InputError(
            f"variant {variant.key!r}: the network's learning rate is a condition of a row; write "
            f"`with: {{{variant.key}: {{training.optimizer.lr: ...}}}}`"
        )
    with one_line_errors(f"variant {variant.key!r} of method {variant.of!r}", MethodError, HyperparameterError):
        method = method_at(open_card(card).method, variant.set)
        variant_card = card.model_copy(
            update={
                "key": variant.key,
                "title": variant.title,
                "loss": method.loss,
                "miner": method.miner,
                "embedding_regularizer": method.embedding_regularizer,
                "batch": card.batch.model_copy(update={"samples_per_class": method.samples_per_class}),
                "loss_optimizer": LossOptimizer(lr=method.loss_lr, weight_decay=method.loss_weight_decay),
                "search": {target: choice for target, choice in card.search.items() if target not in variant.set},
                "published": {},
            }
        )
        _check(variant_card)
    return variant_card


def users_sources(card: MethodCard) -> tuple[str, ...]:
    """Return the classes of a card that come from users' files and modules, with the hashes of their sources."""
    return sources_of(with_versions(open_card(card).method))


def open_card(
    card: MethodCard,
    dataset: str = "",
    bounds: BoundsChoice = "widened",
    batch_size: int = TrainingSettings().batch_size,
) -> MethodTemplate:
    """Return the card's method with its default settings and its search space on a dataset.

    The empty string in place of a dataset gives the general ranges. The batch size stands for `$batch_size` in ranges.
    """
    spec = MethodSpec(
        name=card.key,
        loss=card.loss,
        miner=card.miner,
        embedding_regularizer=card.embedding_regularizer,
        samples_per_class=card.batch.samples_per_class,
        whole_passes=card.batch.classes == "once",
        loss_lr=card.loss_optimizer.lr,
        loss_weight_decay=card.loss_optimizer.weight_decay,
        warmup_passes=card.warmup.passes,
        embedder=card.embedder,
    )
    fixed, space = card.fixed.get(dataset, {}), []
    for target, searched in card.search.items():
        low, high = searched.bounds_on(dataset, bounds, batch_size)
        if target not in fixed:
            kept = searched.model_dump(include={"scale", "choices", "exhaustive"})
            space.append(SearchParameter(target=target, low=low, high=high, **kept))
    return MethodTemplate(method=method_at(spec, fixed), space=tuple(space))


def _check(card: MethodCard) -> None:
    """Build the method with every setting of the card; raise MethodError if its classes do not accept one."""
    if card.loss is None:
        if card.search:
            raise MethodError("a card without a loss has nothing to search")
        return
    if card.embedder is not None:
        raise MethodError(f"embedder {card.embedder} is for cards without a loss, since a loss trains the embedder")
    opened = open_card(card)
    middle = {parameter.target: parameter.at(0.5) for parameter in opened.space}
    check_method(*(opened.at(setting) for setting in (middle, *card.published.values(), *card.fixed.values())))
