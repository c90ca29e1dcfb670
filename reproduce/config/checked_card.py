"""Method cards that are opened for a run: every class and argument they name is checked by building it."""

from typing import Literal

from pydantic import ValidationError

from protocols.search.open_method import HyperparameterError, OpenMethod
from protocols.search.space import SearchParameter
from protocols.training.build_method import MethodError, check_method
from reproduce.config.method_card import Batch, LossOptimizer, MethodCard, card_file, read_card
from reproduce.config.yaml_files import describe
from reproduce.errors import InputError
from results.experiment_spec import Variant
from results.training_spec import MethodSpec

BoundsChoice = Literal["widened", "initial"]


def load_card(name: str) -> MethodCard:
    """The card of that name or path; raises InputError for anything its classes would not accept."""
    path = card_file(name)
    card = read_card(path)
    try:
        _check(card)
    except (MethodError, HyperparameterError) as error:
        raise InputError(f"{path}: {error}") from error
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}") from error
    return card


def load_variant(variant: Variant) -> MethodCard:
    """The card that a variant is of, with its settings; raises InputError."""
    card = load_card(variant.of)
    try:
        method = open_card(card).method
        method = OpenMethod(method=method).at(variant.set)
        varied = card.model_copy(
            update={
                "key": variant.key,
                "title": variant.title,
                "loss": method.loss,
                "miner": method.miner,
                "embedding_regularizer": method.embedding_regularizer,
                "batch": Batch(samples_per_class=method.samples_per_class),
                "loss_optimizer": LossOptimizer(lr=method.loss_lr, weight_decay=method.loss_weight_decay),
                "search": {target: choice for target, choice in card.search.items() if target not in variant.set},
                "published": {},
            }
        )
        _check(varied)
    except (MethodError, HyperparameterError) as error:
        raise InputError(f"variant {variant.key!r} of method {variant.of!r}: {error}") from error
    return varied


def open_card(card: MethodCard, dataset: str = "", bounds: BoundsChoice = "widened") -> OpenMethod:
    """The card's method at its defaults, with its search space on a dataset.

    Args:
        card: the method.
        dataset: key of the dataset; empty takes the ranges for datasets without bounds of their own.
        bounds: MLRC's search ranges as they ended or as they began.
    """
    spec = MethodSpec(
        name=card.key,
        loss=card.loss,
        miner=card.miner,
        embedding_regularizer=card.embedding_regularizer,
        samples_per_class=card.batch.samples_per_class,
        loss_lr=card.loss_optimizer.lr,
        loss_weight_decay=card.loss_optimizer.weight_decay,
        warmup_passes=card.warmup.passes,
    )
    fixed = card.fixed.get(dataset, {})
    space = tuple(_parameter(card, target, dataset, bounds) for target in card.search if target not in fixed)
    return OpenMethod(method=OpenMethod(method=spec).at(fixed), space=space)


def _parameter(card: MethodCard, target: str, dataset: str, bounds: BoundsChoice) -> SearchParameter:
    """One hyperparameter as it is searched on a dataset."""
    searched = card.search[target]
    low, high = searched.bounds_on(dataset, bounds)
    return SearchParameter(
        target=target,
        scale=searched.scale,
        low=low,
        high=high,
        choices=searched.choices,
        exhaustive=searched.exhaustive,
    )


def _check(card: MethodCard) -> None:
    """Every argument, searched or fixed, must be one that the classes take."""
    if card.loss is None:
        if card.search:
            raise MethodError("a card without a loss has nothing to search")
        return
    middle = {target: _parameter(card, target, "", "widened").at(0.5) for target in card.search}
    settings = [middle, *card.published.values(), *card.fixed.values()]
    for setting in settings:
        check_method(open_card(card).at(setting))
