"""Opens method cards, and applies an experiment's settings to them: what is searched, set or published.

Every class and argument in a card is checked by building it.
"""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import JsonValue

from protocols.search.space import MethodTemplate, SearchParameter
from protocols.training.build_method import MethodError
from protocols.training.check_method import LossFacts, check_method, with_versions
from protocols.training.optimizer import check_training
from reproduce.config.method_card import MethodCard, card_file, read_card
from reproduce.config.strict_yaml import one_line_errors
from reproduce.errors import InputError
from results.spec.conditions import TrainingSettings
from results.spec.experiment_spec import Experiment, Variant
from results.spec.hyperparameters import HyperparameterError, method_at
from results.spec.recipe import Recipe
from results.spec.search_settings import ChangedRange
from results.spec.training_spec import MethodSpec
from results.spec.trunk_spec import EmbedderSpec

BoundsChoice = Literal["widened", "initial"]
PROXY_LR = "loss_optimizer.lr"
NETWORK_LR = "optimizer.lr"


def load_card(name: str) -> MethodCard:
    """Load a method card, given its name or its file, and check that its classes accept its arguments."""
    return checked_card(name)[0]


def checked_card(name: str) -> tuple[MethodCard, dict[str, str], Recipe | None]:
    """Load a method card as `load_card` does; return the names of users' classes with hashes and the recipe too."""
    path = card_file(name)
    card = read_card(path)
    with one_line_errors(str(path), MethodError, HyperparameterError):
        return (card, *_check(card))


def load_variant(variant: Variant) -> MethodCard:
    """Load the card of a variant's method, with the variant's settings in place of searched and published values."""
    card = load_card(variant.of)
    if "optimizer.lr" in variant.set:
        raise InputError(
            f"variant {variant.key!r}: the network's learning rate is a condition of a row; write "
            f"`with: {{{variant.key}: {{training.optimizer.lr: ...}}}}`"
        )
    with one_line_errors(f"variant {variant.key!r} of method {variant.of!r}", MethodError, HyperparameterError):
        fixed = {dataset: {**variant.set, **card.fixed.get(dataset, {})} for dataset in ("", *card.fixed)}
        search = {target: choice for target, choice in card.search.items() if target not in variant.set}
        named = card.model_copy(update={"key": variant.key, "title": variant.title})
        variant_card = named.model_copy(update={"fixed": fixed, "search": search, "published": {}, "printed": {}})
        _check(variant_card)
    return variant_card


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
    fixed, space = card.fixed.get(dataset, card.fixed.get("", {})), []
    for target, searched in card.search.items():
        low, high = searched.bounds_on(dataset, bounds, batch_size)
        if target not in fixed:
            kept = searched.model_dump(include={"scale", "choices", "exhaustive"})
            space.append(SearchParameter(target=target, low=low, high=high, **kept))
    return MethodTemplate(method=method_at(spec, fixed), space=tuple(space))


def _check(card: MethodCard) -> tuple[dict[str, str], Recipe | None]:
    """Build the method with every setting of the card; raise MethodError if its classes do not accept one."""
    if card.embedder is not None and card.loss is not None:
        raise MethodError("embedder is for cards without a loss, since a loss trains the embedder")
    if isinstance(card.embedder, EmbedderSpec) and not card.embedder.is_computed:
        raise MethodError(f"embedder: init: {card.embedder.init} is no closed form, and nothing trains it")
    opened = open_card(card)
    settings = (opened.middle(), *card.published.values(), *card.fixed.values())
    names, facts = check_method(*map(opened.at, settings))
    return names, _recipe(opened.method, opened.space, facts)


def _recipe(method: MethodSpec, space: Sequence[SearchParameter], facts: LossFacts) -> Recipe | None:
    if method.loss is None:
        return None
    searched = tuple(parameter.target for parameter in space)
    return Recipe(
        samples_per_class=method.samples_per_class,
        parameters=facts.parameters,
        loss_lr=method.loss_lr,
        searched=searched,
        fixed={name: value for name, value in facts.numbers.items() if f"loss.{name}" not in searched},
        warmup_passes=facts.warmup_passes if method.warmup_passes is None else method.warmup_passes,
        warmup_steps=method.warmup_steps,
        falls=facts.falls,
    )


def open_method(experiment: Experiment, card: MethodCard) -> MethodTemplate:
    """Return a card's method with the settings and the search space of an experiment."""
    opened = open_card(
        card, experiment.dataset.name, experiment.search.bounds, experiment.conditions.training.batch_size
    )
    given = given_hyperparameters(experiment, card)
    searched = [] if experiment.search.trials == 0 else [*opened.space]
    if (rates := experiment.search.network_lr) is not None and card.loss is not None and experiment.search.trials:
        searched.append(SearchParameter(target=NETWORK_LR, scale="log", low=rates.low, high=rates.high))
    space = tuple(p for p in _with_ranges(experiment, card, searched) if p.target not in given)
    if experiment.proxies is not None and trains_proxies(card):
        warmup = {"warmup.passes": experiment.proxies.warmup_passes, "warmup.steps": experiment.proxies.warmup_steps}
        opened = opened.model_copy(update={"method": opened.at(warmup)})
    with one_line_errors(f"settings of method {card.key!r}", HyperparameterError, MethodError):
        method = opened.at(given)
        middle = MethodTemplate(method=method, space=space)
        names, facts = check_method(middle.at(middle.middle()), method)
        if method.loss is not None:
            check_training(experiment.conditions.training, experiment.conditions.trunk)
    if experiment.protocol == "standard" and facts.acts_on_validation:
        # CCP starts a new problem when the validation score stops rising, and would never leave its first.
        raise InputError(
            f"method {card.key!r} acts on validation scores, which the final training of protocol standard does not "
            "have; use protocol mlrc"
        )
    recipe = _recipe(method, space, facts)
    return MethodTemplate(method=with_versions(method, names), space=space, given=given, recipe=recipe)


def _with_ranges(
    experiment: Experiment, card: MethodCard, parameters: Sequence[SearchParameter]
) -> list[SearchParameter]:
    """Return search parameters with the ranges of the experiment in place of the card's; name all faults at once."""
    ranges = experiment.search.ranges.get(card.key, {})
    known = dict.fromkeys([*card.search, *(parameter.target for parameter in parameters)])
    replaced = []
    searched = f"searched are {', '.join(known) or 'none'}"
    faults = [f"there is no searched {target!r}; {searched}" for target in ranges if target not in known]
    for parameter in parameters:
        try:
            with one_line_errors(parameter.target, ValueError):
                replaced.append(_changed(parameter, ranges.get(parameter.target)))
        except InputError as error:
            faults.append(str(error))
    if faults:
        raise InputError(f"search.ranges of method {card.key!r}: {'; '.join(faults)}")
    return replaced


def _changed(parameter: SearchParameter, change: ChangedRange | None) -> SearchParameter:
    changed = parameter
    if change is not None:
        whole: dict[str, Any] = (
            {"target": parameter.target, "scale": "choice"} if change.choices else parameter.model_dump()
        )
        if change.scale is not None:
            whole["choices"] = None  # A scale of numbers takes their place.
        whole |= change.model_dump()
        whole["exhaustive"] = parameter.exhaustive and whole["scale"] == "int" and change.step is None
        changed = SearchParameter.model_validate(whole)
    low, high = changed.low, changed.high
    if changed.choices is None and (low is None or high is None or low >= high):
        batch = "" if change else "with this batch size "
        ends = " to ".join("nothing" if end is None else f"{end:g}" for end in (low, high))
        raise ValueError(f"{batch}the range is {ends}; give low < high")
    return changed


def given_hyperparameters(experiment: Experiment, card: MethodCard) -> dict[str, JsonValue]:
    """Return the hyperparameters that are set instead of searched, by target.

    Later values replace earlier ones: published values if the experiment searches nothing, the learning rate of the
    proxies, and the experiment's settings for this method.
    """
    given: dict[str, JsonValue] = {}
    if experiment.search.trials == 0:
        name = experiment.search.published
        if name is not None and card.published and name not in card.published:
            known = ", ".join(card.published)
            raise InputError(f"search.published {name!r}: method {card.key!r} has published values for {known}")
        given |= card.published.get(name or experiment.dataset.name, {})
    if experiment.proxies is not None and trains_proxies(card):
        given[PROXY_LR] = experiment.conditions.training.optimizer.lr * experiment.proxies.lr_multiplier
    return given | experiment.settings.get(card.key, {})


def trains_proxies(card: MethodCard) -> bool:
    """Return whether the loss has parameters with a separate learning rate, such as proxies."""
    return card.loss_optimizer.lr is not None or PROXY_LR in {**card.search, **card.fixed.get("", {})}
