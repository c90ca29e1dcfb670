"""Opens an experiment for a run or a plan: reads its cards, finds its weights, opens and splits its dataset."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, NoReturn

from pydantic import JsonValue

from protocols.datasets.dataset import Dataset
from protocols.datasets.splits import classes_of, drawn_name
from protocols.evaluation.evaluate_run import test_data
from protocols.images.samples import LabelledFeatures
from protocols.protocol_registry import PROTOCOLS, ProtocolEntry
from protocols.search.proposals import build_sampler, try_sampler
from protocols.setup import Setup
from protocols.study import Study
from protocols.training.closed_forms import most_dimensions
from protocols.trunks.embedding_model import check_images_fit, embedding_size_of, trunk_width
from protocols.trunks.trunk_entry import RANDOM
from protocols.trunks.trunk_registry import identified_trunk
from reproduce.config.method_card import Card, card_file, read_card
from reproduce.config.open_method import open_method, variant_card
from reproduce.errors import InputError, all_of, did_you_mean
from reproduce.run.open_data import OpenedData, needs_folder
from reproduce.run.progress import Bars
from reproduce.storage import StoragePaths, open_store
from results.spec.conditions import Conditions
from results.spec.data_choice import DrawnSplit, samples_word
from results.spec.experiment_spec import Experiment
from results.spec.method import LOSS_LR, NETWORK_LR, Method
from results.spec.plan import ExperimentData, Plan, PlannedRow
from results.spec.range import Range, within_budget
from results.spec.search_settings import LOOKS, SearchSettings
from results.spec.trunk_spec import NO_TRUNK
from results.store.searches import Searches
from results.store.store import Store
from results.wording import distinct, listed


@dataclass(frozen=True)
class Session:
    """An opened experiment.

    Attributes:
        name: The experiment's name in the store.
        plan: Its rows, with all that their trainings and tables need.
        setup: The dataset, its split, and the settings that all rows share.
        setups: Setups of the rows that have conditions of their own, by key.
        paths: Paths of the store, the checkpoints, the decoded images and the output.
    """

    name: str
    plan: Plan
    setup: Setup
    setups: Mapping[str, Setup]
    paths: StoragePaths

    @cached_property
    def store(self) -> Store:
        """The store, opened once at its first use and made if there is none."""
        return open_store(self.paths)

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment's settings."""
        return self.plan.experiment

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint under which the store keeps the experiment."""
        return self.experiment.fingerprint(self.name, self.setup.dataset.fingerprint)

    @cached_property
    def protocol(self) -> ProtocolEntry:
        """The protocol of the experiment's runs."""
        return PROTOCOLS[self.experiment.protocol]

    def looks(self) -> Iterator["Session"]:
        """Yield the session at each planned look if it runs until decided, else the session itself."""
        if not self.experiment.search.until_decided:
            yield self
            return
        for searches in LOOKS:
            yield replace(self, plan=self.plan.with_searches(searches))

    def studies(self, log: Searches | None = None) -> dict[str, Study]:
        """Return one study per row, by key. The log has the trials; None if there are none yet."""
        setups, search = self.setups, self.experiment.search
        return {key: Study(row, setups.get(key, self.setup), search, log) for key, row in self.plan.rows.items()}

    def searched(self, log: Searches) -> bool:
        """Whether all searches of all rows are complete, by the trials in the log."""
        studies = self.studies(log).values()
        return all(one.found_hyperparameters() is not None for study in studies for one in study.searches)


def _with_defaults(rows: Mapping[str, PlannedRow], conditions: Mapping[str, Conditions]) -> dict[str, PlannedRow]:
    """Add a row with the card's own settings for every row that is searched. Its search tries them first."""
    searched, defaults = dict(rows), {}
    for key, row in rows.items():
        if not row.ranges:
            continue
        assert row.method is not None
        if own := default_setting(row.method, row.ranges, conditions[key].training.optimizer.lr):
            searched[key] = row.model_copy(update={"enqueue": (own, *row.enqueue)})
        new, method = f"{key}_default", row.method.model_copy(update={"name": f"{key}_default"})
        named = {"key": new, "title": f"{row.title}, default", "method": method, "default_of": key}
        without: dict[str, Any] = {"ranges": {}, "enqueue": (), "printed": {}, "recipe": None}
        defaults[new] = row.model_copy(update={**named, **without})
    return searched | defaults


def _title(row: PlannedRow, own: Experiment) -> str:
    """Return the title of a row. Rows of features come from no trunk of ours, so none was left untrained."""
    return "Features as given" if row.key == "untrained" and own.conditions.trunk.name == NO_TRUNK else row.title


def default_setting(method: Method, ranges: Mapping[str, Range], network_lr: float) -> dict[str, JsonValue]:
    """Return a method's own values of what is searched, without those that are not set or outside their range.

    Args:
        method: The method with a value for every hyperparameter.
        ranges: What is searched, by target.
        network_lr: The network's learning rate where the method has none; parameters of a loss take it too.
    """
    lr = network_lr if method.optimizer.lr is None else method.optimizer.lr
    rates = {NETWORK_LR: lr, LOSS_LR: lr if method.loss_optimizer.lr is None else method.loss_optimizer.lr}
    own = {target: rates.get(target, value) for target, value in method.values_of(ranges).items()}
    return {target: value for target, value in own.items() if ranges[target].holds(value)}


def open_session(
    name: str,
    experiment: Experiment,
    where: StoragePaths,
    bars: Bars | None = None,
    weights: Path | None = None,
    *,
    outline: bool = False,
    device: str = "cpu",
) -> Session:
    """Read the cards, find the trunk's weights, open the dataset and split it.

    An `outline` is only for a plan: it needs no weights, and the published counts replace images without a folder.

    Raises:
        InputError: Something is missing or wrong; the message is one line with the remedy.
    """
    cards = _cards(experiment)
    data, search = OpenedData(where, device, bars, outline), experiment.search
    build_sampler(search.sampler)
    if needs_folder(experiment):
        data.images(experiment)  # Fails before weights are downloaded in vain.
    if experiment.conditions.trunk.name == NO_TRUNK:
        experiment = _with_width(experiment, data.images(experiment))
    if not outline or weights is not None:
        trunk = identified_trunk(experiment.conditions.trunk, weights)
        if trunk.name != NO_TRUNK:
            check_images_fit(trunk, experiment.conditions.images.crop)
        experiment = experiment.with_conditions(trunk=trunk)
    elif experiment.conditions.trunk.name != NO_TRUNK:
        untrained = experiment.conditions.trunk.model_copy(update={"weights": RANDOM})  # A plan needs no weights.
        check_images_fit(untrained, experiment.conditions.images.crop)
    own = {card.key: experiment.for_row(card.key) for card in cards}
    opened = dict(all_of(cards, lambda card: (card.key, open_method(own[card.key], card))))
    _check_search(search, opened)
    images = {key: data.images(own[key]) for key in own}
    for key, setup in {key: setup_of(own[key], images[key]) for key in own}.items():
        check_components(setup, opened[key])
    setup = setup_of(experiment, data.seen_by(experiment))
    setups = {key: setup_of(own[key], data.seen_by(own[key])) for key in own if key in experiment.changes}
    _check_depths(setup, experiment)
    titles = distinct({key: _title(row, own[key]) for key, row in opened.items()})
    rows = {
        key: row.model_copy(update={"title": titles[key], "enqueue": search.enqueue}) for key, row in opened.items()
    }
    if search.default:
        rows = _with_defaults(rows, {key: one.conditions for key, one in own.items()})
        setups |= {key: setups[row.default_of] for key, row in rows.items() if row.default_of in setups}
    drawn = experiment.conditions.trunk.weights == RANDOM
    planned = {
        key: row.with_budget(search, experiment.reproductions, untrained_weights=drawn) for key, row in rows.items()
    }
    return Session(name, Plan(experiment=experiment, rows=planned, data=data_of(setup)), setup, setups, where)


def _check_depths(setup: Setup, experiment: Experiment) -> None:
    """Refuse recall@K that is 1 for every query, since there are no more references than K."""
    test = test_data(setup.dataset, setup.split)
    references = len(test.images) - 1 if test.is_query is None else int((~test.is_query).sum())
    for metric in experiment.metrics:
        # A part of a published dataset keeps the metrics of the whole one.
        if metric.startswith("recall@") and int(metric[7:]) >= references and not experiment.dataset.subset:
            raise InputError(f"{metric}: the test has only {references} references, so every query would be right")


def _check_search(search: SearchSettings, rows: Mapping[str, PlannedRow]) -> None:
    """Let the sampler propose settings of every space, and check that enqueued values are within them."""
    spaces = [within_budget(row.ranges, search.trials)[0] for row in rows.values() if row.ranges]
    if not spaces:
        return
    for setting in search.enqueue:
        _check_setting("search.enqueue", setting, spaces)
    fixed = search.sampler.arguments.get("fixed_params")  # Of Optuna's PartialFixedSampler.
    if isinstance(fixed, dict):
        for target, value in fixed.items():
            _check_setting("search.sampler: fixed_params", {target: value}, spaces)
    if search.sampler.name != "GPSampler":
        for space in spaces:
            try_sampler(space, search.sampler, search.trials)


def _check_setting(place: str, setting: Mapping[str, JsonValue], spaces: Sequence[Mapping[str, Range]]) -> None:
    """Refuse a setting that no method searches, or with a value outside a range."""
    known = {target for space in spaces for target in space}
    if unknown := [target for target in setting if target not in known]:
        _refuse_setting(f"{place}: there is no searched {unknown[0]!r}", did_you_mean(unknown[0], known), known)
    if not any(setting.keys() <= space.keys() for space in spaces):
        _refuse_setting(f"{place}: no method searches {listed([*setting])}", "", known)
    for space in spaces:
        for target, value in setting.items():
            if target in space and not space[target].holds(value):
                what = f"{place}: {target} {value}"
                raise InputError(f"{what} is outside its range; set search.ranges, or take it out")


def _refuse_setting(fault: str, meant: str, known: Iterable[str]) -> NoReturn:
    raise InputError(f"{fault}; {meant}searched here are {', '.join(sorted(known))}; correct it or take it out")


def _with_width(experiment: Experiment, dataset: Dataset) -> Experiment:
    """Write the number of features of a row, which is part of the trainings' specifications, into the experiment."""
    assert isinstance(dataset.images, LabelledFeatures)
    trunk = experiment.conditions.trunk.model_copy(update={"width": dataset.images.width})
    return experiment.with_conditions(trunk=trunk)


def _cards(experiment: Experiment) -> tuple[Card, ...]:
    """Load the cards of an experiment's methods and variants; raise InputError if a method is named twice."""
    cards = (*all_of(experiment.methods, lambda name: read_card(card_file(name))),)
    cards += (*all_of(experiment.variants, variant_card),)
    keys = [card.key for card in cards]
    if repeated := [key for key in keys if keys.count(key) > 1]:
        raise InputError(f"method {repeated[0]!r} is named twice; name it once")
    return cards


def setup_of(experiment: Experiment, dataset: Dataset) -> Setup:
    """Return the setup that all methods of an experiment share."""
    name = experiment.split or PROTOCOLS[experiment.protocol].split
    if isinstance(name, DrawnSplit):
        name = drawn_name(PROTOCOLS[experiment.protocol].split, name.seed)
    split = dataset.split(name)
    # Under `mlrc` with the conventional split there is a single model per run, as in the papers.
    one_model = experiment.protocol == "mlrc" and split.name == "conventional"
    folds = 1 if one_model else len(split.folds[: experiment.folds])
    longer = experiment.reproduction_epochs
    return Setup(
        dataset,
        split,
        folds,
        experiment.conditions,
        experiment.seed,
        experiment.metrics,
        reproduction_epochs=longer,
    )


def data_of(setup: Setup) -> ExperimentData:
    """Return what the store keeps about the data of an experiment."""
    dataset, is_query = setup.dataset, test_data(setup.dataset, setup.split).is_query
    digests = sorted(map(bytes, dataset.hashes))
    return ExperimentData(
        fingerprint=dataset.fingerprint,
        samples=len(dataset.images),
        classes=dataset.n_classes,
        left_out=dataset.left_out,
        equal_files=dataset.oddities(set(setup.split.test)),
        queries=None if is_query is None else int(is_query.sum()),
        content=hashlib.sha256(b"".join(digests)).hexdigest()[:32] if digests and any(digests[0]) else "",
    )


def check_components(setup: Setup, row: PlannedRow) -> None:
    """Check that there are enough images, classes and features for a closed form or for the embedder's start.

    A training or test would notice too, but only after the features of all images are computed.
    """
    method, models = row.method, 1
    assert method is not None
    embedder = method.computed_embedder if method.loss is None else setup.conditions.embedder
    if method.embedder != "test_components" and not embedder.is_computed:
        return
    images, samples = setup.dataset.images, samples_word(setup.dataset.name)
    specs = setup.fold_specs(method, "search", 0)
    if method.embedder == "test_components":
        models, most = setup.folds, len(images.of_classes(setup.split.test)) - 1
        limit = f"the test has only {most + 1} test {samples}, which have at most {most} principal components"
    else:
        width = trunk_width(setup.conditions.trunk)
        counts = [len(images.of_classes(classes_of(spec).train)) for spec in specs]
        most, limit = min(map(most_dimensions, specs, counts, repeat(width), repeat(samples)))
    if (needed := min(map(embedding_size_of, specs)) * models) > most:
        raise InputError(
            f"{method.name}: {limit}, fewer than the {needed} dimensions that are asked; give --set "
            f"embedding_size={max(1, most // models)} or less"
        )
