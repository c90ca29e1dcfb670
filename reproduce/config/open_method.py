"""Opens method cards, and applies an experiment's settings to them: what is searched, set or published.

Every class and argument is checked by building it.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from protocols.training.build_method import MethodError
from protocols.training.check_method import LossFacts, check_method, with_versions
from protocols.training.optimizer import check_training
from reproduce.config.method_card import BoundsChoice, Card, card_file, read_card
from reproduce.config.strict_yaml import one_line_errors
from reproduce.errors import InputError
from results.spec.conditions import TrainingSettings
from results.spec.experiment_spec import Experiment, Variant
from results.spec.method import BATCHES, LOSS_LR, NETWORK_LR, HyperparameterError, Method
from results.spec.plan import PlannedRow, Recipe
from results.spec.range import Range, middle_of
from results.spec.trunk_spec import EmbedderSpec


def load_card(name: str) -> Card:
    """Load a method card, given its name or its file, and check that its classes accept its arguments."""
    return checked_card(name)[0]


def checked_card(name: str) -> tuple[Card, dict[str, str], Recipe | None]:
    """Load a method card as `load_card` does; return the names of users' classes with hashes and the recipe too."""
    path = card_file(name)
    card = read_card(path)
    with one_line_errors(str(path), MethodError, HyperparameterError):
        _check_embedder(card)
        opened = open_card(card)
        assert opened.method is not None
        settings = (middle_of(opened.ranges), *card.published.values(), *card.fixed.values())
        names, facts = check_method(*map(opened.method.at, settings))
    return card, names, _recipe(opened.method, opened.ranges, facts)


def variant_card(variant: Variant) -> Card:
    """Return the card of a variant's method, with the variant's settings in place of searched and published values."""
    if NETWORK_LR in variant.set:
        raise InputError(
            f"variant {variant.key!r}: the network's learning rate is a condition of a row; write "
            f"`with: {{{variant.key}: {{training.optimizer.lr: ...}}}}`"
        )
    card = read_card(card_file(variant.of))
    fixed = {dataset: {**variant.set, **card.fixed.get(dataset, {})} for dataset in ("", *card.fixed)}
    search = {target: choice for target, choice in card.search.items() if target not in variant.set}
    changed = {"key": variant.key, "title": variant.title, "fixed": fixed, "search": search}
    method = card.method.model_copy(update={"name": variant.key})
    return card.model_copy(update={**changed, "method": method, "published": {}, "printed": {}})


def open_card(
    card: Card, dataset: str = "", bounds: BoundsChoice = "widened", batch_size: int = TrainingSettings().batch_size
) -> PlannedRow:
    """Return the card's method with its default settings and its search space on a dataset.

    The empty string in place of a dataset gives the general ranges. The batch size stands for `$batch_size` in ranges.
    """
    fixed = card.fixed_on(dataset)
    ranges = {key: one.on(dataset, bounds).whole(batch_size) for key, one in card.search.items() if key not in fixed}
    return PlannedRow(key=card.key, title=card.title, method=card.method.at(fixed), ranges=ranges)


def _check_embedder(card: Card) -> None:
    """Raise MethodError if nothing computes the embedder of a card."""
    embedder = card.method.embedder
    if embedder is not None and card.method.loss is not None:
        raise MethodError("embedder is for cards without a loss, since a loss trains the embedder")
    if isinstance(embedder, EmbedderSpec) and not embedder.is_computed:
        raise MethodError(f"embedder: init: {embedder.init} is no closed form, and nothing trains it")


def _recipe(method: Method, ranges: Mapping[str, Range], facts: LossFacts) -> Recipe | None:
    if method.loss is None:
        return None
    passes = method.warmup.passes
    return Recipe(
        samples_per_class=method.batch.samples_per_class,
        parameters=facts.parameters,
        loss_lr=method.loss_optimizer.lr,
        searched=tuple(ranges),
        fixed={name: value for name, value in facts.numbers.items() if f"loss.{name}" not in ranges},
        warmup_passes=facts.warmup_passes if passes is None else passes,
        warmup_steps=method.warmup.steps,
        falls=facts.falls,
    )


def open_method(experiment: Experiment, card: Card) -> PlannedRow:
    """Return a card's method as a row of an experiment, with the experiment's settings and ranges."""
    given = given_hyperparameters(experiment, card)
    ranges = {target: one for target, one in _ranges(experiment, card).items() if target not in given}
    warmup: dict[str, JsonValue] = {}
    if experiment.proxies is not None and trains_proxies(card):
        warmup = {"warmup.passes": experiment.proxies.warmup_passes, "warmup.steps": experiment.proxies.warmup_steps}
    with one_line_errors(f"settings of method {card.key!r}", HyperparameterError, MethodError):
        _check_embedder(card)
        method = card.method.at({**card.fixed_on(experiment.dataset.name), **warmup, **given})
        # The values that a search replaces are the method's too: a trial keeps them where its ranges leave them out.
        settings = (method.at(middle_of(ranges)), method) if ranges else (method,)
        names, facts = check_method(*settings)
        if method.loss is not None:
            check_training(experiment.conditions.training, experiment.conditions.trunk)
    if experiment.protocol == "standard" and facts.acts_on_validation:
        # CCP starts a new problem when the validation score stops rising, and would never leave its first.
        raise InputError(
            f"method {card.key!r} acts on validation scores, which the final training of protocol standard does not "
            "have; use protocol mlrc"
        )
    return PlannedRow(
        key=card.key,
        title=card.title,
        method=with_versions(method, names),
        ranges=ranges,
        given=given,
        transductive=method.embedder == "test_components",
        printed={str(metric): score for metric, score in card.printed.get(experiment.dataset.name, {}).items()},
        recipe=_recipe(method, ranges, facts),
    )


def _ranges(experiment: Experiment, card: Card) -> dict[str, Range]:
    """Return what an experiment searches, with its ranges in place of the card's; name all faults at once."""
    search, dataset = experiment.search, experiment.dataset.name
    searched: dict[str, Range] = {}
    if search.trials:
        fixed = card.fixed_on(dataset)
        searched = {key: one.on(dataset, search.bounds) for key, one in card.search.items() if key not in fixed}
        if search.network_lr is not None and card.method.loss is not None:
            searched[NETWORK_LR] = search.rates()
        if search.equal_spaces and card.method.loss is not None:
            searched |= {key: one.on(dataset, search.bounds) for key, one in card.search_of_base.items()}
            # Margin loss trains a margin and no proxies: its card draws four images, and one would be no pair.
            alone = trains_proxies(card) and card.method.batch.samples_per_class != 4
            searched[BATCHES] = Range(scale="choice", choices=(1, 2, 4) if alone else (2, 4))
            searched = {key: one for key, one in searched.items() if key not in fixed}
    changes = search.ranges.get(card.key, {})
    known = dict.fromkeys([*card.search, *searched])
    names = f"searched are {', '.join(known) or 'none'}"
    faults = [f"there is no searched {target!r}; {names}" for target in changes if target not in known]
    ranges = {}
    for target, one in searched.items():
        try:
            with one_line_errors(target, ValueError):
                changed = one.changed(changes[target]) if target in changes else one
                ranges[target] = changed.whole(experiment.conditions.training.batch_size)
        except InputError as error:
            faults.append(str(error))
    if faults:
        raise InputError(f"search.ranges of method {card.key!r}: {'; '.join(faults)}")
    return ranges


def given_hyperparameters(experiment: Experiment, card: Card) -> dict[str, JsonValue]:
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
        given[LOSS_LR] = experiment.conditions.training.optimizer.lr * experiment.proxies.lr_multiplier
    return given | experiment.settings.get(card.key, {})


def trains_proxies(card: Card) -> bool:
    """Return whether the loss has parameters with a separate learning rate, such as proxies."""
    return card.method.loss_optimizer.lr is not None or LOSS_LR in {**card.search, **card.fixed.get("", {})}
