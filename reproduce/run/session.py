"""Opens an experiment for a run or a plan: reads its cards, finds its weights, opens and splits its dataset."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from pathlib import Path

from protocols.datasets.dataset import Dataset
from protocols.datasets.splits import classes_of, drawn_name
from protocols.evaluation.evaluate_run import test_data
from protocols.images.samples import LabelledFeatures
from protocols.protocol_registry import PROTOCOLS, ProtocolEntry
from protocols.search.proposals import build_sampler, try_sampler
from protocols.search.space import MethodTemplate, searched_ranges, within_budget
from protocols.setup import Setup
from protocols.study import Budget, Study
from protocols.training.closed_forms import most_dimensions
from protocols.trunks.embedding_model import check_images_fit, embedding_size_of, trunk_width
from protocols.trunks.trunk_entry import RANDOM
from protocols.trunks.trunk_registry import identified_trunk
from reproduce.config.method_card import MethodCard
from reproduce.config.open_method import load_card, load_variant, open_method
from reproduce.errors import InputError, all_of, did_you_mean
from reproduce.run.open_data import OpenedData, needs_folder
from reproduce.run.progress import Bars
from reproduce.storage import StoragePaths, open_store
from results.records.experiment_summary import ExperimentData, ExperimentSummary
from results.spec.data_choice import DrawnSplit, samples_word
from results.spec.experiment_spec import Experiment
from results.spec.search_settings import LOOKS, SearchSettings
from results.spec.training_spec import MethodSpec
from results.spec.trunk_spec import NO_TRUNK
from results.store.searches import Searches
from results.store.store import Store
from results.wording import distinct, listed


@dataclass(frozen=True)
class Session:
    """An opened experiment.

    Attributes:
        name: The experiment's name in the store.
        experiment: The experiment's settings.
        setup: The dataset, its split, and the settings that all methods share.
        titles: Titles of its methods, by key, in the order of the tables' rows.
        planned: The study of each method before it has trials, by key.
        paths: Paths of the store, the checkpoints, the decoded images and the output.
        printed: The scores that the methods' sources print for the dataset, in percent, by method and metric.
        defaults: The method of each row with default settings, by the row's key.
    """

    name: str
    experiment: Experiment
    setup: Setup
    titles: Mapping[str, str]
    planned: Mapping[str, Study]
    paths: StoragePaths
    printed: Mapping[str, dict[str, float]] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def store(self) -> Store:
        """The store, opened once at its first use and made if there is none."""
        return open_store(self.paths)

    @property
    def fingerprint(self) -> str:
        """The fingerprint under which the store keeps the experiment."""
        return self.experiment.fingerprint(self.name, self.setup.dataset.fingerprint)

    @property
    def protocol(self) -> ProtocolEntry:
        """The protocol of the experiment's runs."""
        return PROTOCOLS[self.experiment.protocol]

    def looks(self) -> Iterator["Session"]:
        """Yield the session at each planned look if it runs until decided, else the session itself."""
        if not self.experiment.search.until_decided:
            yield self
            return
        for searches in LOOKS:
            yield replace(self, experiment=self.experiment.with_search(searches=searches))

    def studies(self, log: Searches | None = None) -> dict[str, Study]:
        """Return one study per method, by key. The log has the trials; None if there are none yet."""
        searches = {key: 1 if key in self.defaults else self.experiment.search.searches for key in self.planned}
        return {
            key: replace(study, log=log, budget=replace(study.budget, searches=searches[key]))
            for key, study in self.planned.items()
        }

    def summary(self) -> ExperimentSummary:
        """Return the experiment's summary for the store. It is enough to draw the tables without torch."""
        studies = self.studies()
        return ExperimentSummary(
            methods=dict(self.titles),
            runs={key: study.n_runs for key, study in studies.items()},
            experiment=self.experiment,
            data=data_of(self.setup),
            transductive=tuple(
                key for key, study in studies.items() if study.method.method.embedder == "test_components"
            ),
            ranges={key: ranges for key, study in studies.items() if (ranges := searched_ranges(study.method.space))},
            printed={key: scores for key, scores in self.printed.items() if scores},
            defaults=dict(self.defaults),
            recipes={
                key: recipe
                for key, study in studies.items()
                if (recipe := study.method.recipe) and key not in self.defaults
            },
        )


def _title(card: MethodCard, row: Experiment) -> str:
    """Return the title of a row. Rows of features come from no trunk of ours, so none was left untrained."""
    return "Features as given" if card.key == "untrained" and row.conditions.trunk.name == NO_TRUNK else card.title


def _with_defaults(session: Session) -> Session:
    """Add a row with the card's own settings for every method that is searched. Its search tries them first."""
    titles, planned = dict(session.titles), dict(session.planned)
    defaults = {f"{key}_default": key for key, study in planned.items() if study.method.space}
    for row, key in defaults.items():
        study, method = planned[key], planned[key].method
        titles[row] = f"{titles[key]}, default"
        if own := method.default_setting(study.setup.conditions.training.optimizer.lr):
            planned[key] = replace(study, enqueue=(own, *study.enqueue))
        renamed = method.method.model_copy(update={"name": row})
        unsearched = method.model_copy(update={"method": renamed, "space": ()})
        planned[row] = replace(study, method=unsearched, budget=replace(study.budget, trials=0))
    return replace(session, titles=titles, planned=planned, defaults=defaults)


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
    rows = {card.key: experiment.for_row(card.key) for card in cards}
    methods = dict(all_of(cards, lambda card: (card.key, open_method(rows[card.key], card))))
    _check_search(search, methods)
    for key, row in rows.items():
        check_components(setup_of(row, data.images(row)), methods[key].method)
    setup = setup_of(experiment, data.seen_by(experiment))
    setups = {key: setup_of(rows[key], data.seen_by(rows[key])) for key in rows if key in experiment.changes}
    budget, options = Budget(search.trials, experiment.reproductions), (search.racing, search.enqueue)
    planned = {
        key: Study(setups.get(key, setup), method, budget, search.sampler, None, *options)
        for key, method in methods.items()
    }
    _check_depths(setup, experiment)
    titles = distinct({card.key: _title(card, rows[card.key]) for card in cards})
    dataset = experiment.dataset.name
    printed = {c.key: {str(metric): score for metric, score in c.printed.get(dataset, {}).items()} for c in cards}
    session = Session(name, experiment, setup, titles, planned, where, printed)
    return _with_defaults(session) if search.default else session


def _check_depths(setup: Setup, experiment: Experiment) -> None:
    """Refuse recall@K that is 1 for every query, since there are no more references than K."""
    test = test_data(setup.dataset, setup.split)
    references = len(test.images) - 1 if test.is_query is None else int((~test.is_query).sum())
    for metric in experiment.metrics:
        # A part of a published dataset keeps the metrics of the whole one.
        if metric.startswith("recall@") and int(metric[7:]) >= references and not experiment.dataset.subset:
            raise InputError(f"{metric}: the test has only {references} references, so every query would be right")


def _check_search(search: SearchSettings, methods: Mapping[str, MethodTemplate]) -> None:
    """Let the sampler propose settings of every space, and check that enqueued values are within them."""
    spaces = [within_budget(method.space, search.trials)[0] for method in methods.values() if method.space]
    known = {parameter.target for space in spaces for parameter in space}
    given = [("search.enqueue", setting) for setting in search.enqueue]
    if isinstance(fixed := search.sampler.arguments.get("fixed_params"), dict):  # Of Optuna's PartialFixedSampler.
        given += [("search.sampler: fixed_params", {target: value}) for target, value in fixed.items()]
    for place, setting in given if spaces else ():
        if not any(setting.keys() <= {parameter.target for parameter in space} for space in spaces):
            unknown = [target for target in setting if target not in known]
            fault = f"there is no searched {unknown[0]!r}" if unknown else f"no method searches {listed([*setting])}"
            meant = did_you_mean(unknown[0], known) if unknown else ""
            searched = f"{meant}searched here are {', '.join(sorted(known))}"
            raise InputError(f"{place}: {fault}; {searched}; correct it or take it out")
        for parameter in (parameter for space in spaces for parameter in space if parameter.target in setting):
            if not parameter.holds(value := setting[parameter.target]):
                what = f"{place}: {parameter.target} {value}"
                raise InputError(f"{what} is outside its range; set search.ranges, or take it out")
    if search.sampler.name != "GPSampler":
        for space in spaces:
            try_sampler(space, search.sampler, search.trials)


def _with_width(experiment: Experiment, dataset: Dataset) -> Experiment:
    """Write the number of features of a row, which is part of the trainings' specifications, into the experiment."""
    assert isinstance(dataset.images, LabelledFeatures)
    trunk = experiment.conditions.trunk.model_copy(update={"width": dataset.images.width})
    return experiment.with_conditions(trunk=trunk)


def _cards(experiment: Experiment) -> tuple[MethodCard, ...]:
    """Load the cards of an experiment's methods and variants; raise InputError if a method is named twice."""
    cards = (*all_of(experiment.methods, load_card), *all_of(experiment.variants, load_variant))
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
    return Setup(dataset, split, folds, experiment.conditions, experiment.seed, experiment.metrics)


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


def check_components(setup: Setup, method: MethodSpec) -> None:
    """Check that there are enough images, classes and features for a closed form or for the embedder's start.

    A training or test would notice too, but only after the features of all images are computed.
    """
    images, samples = setup.dataset.images, samples_word(setup.dataset.name)
    specs, models = setup.fold_specs(method, "search", 0), 1
    if method.embedder == "test_components":
        models, most = setup.folds, len(images.of_classes(setup.split.test)) - 1
        limit = f"the test has only {most + 1} test {samples}, which have at most {most} principal components"
    elif specs[0].embedder.is_computed:
        width = trunk_width(setup.conditions.trunk)
        counts = [len(images.of_classes(classes_of(spec).train)) for spec in specs]
        most, limit = min(map(most_dimensions, specs, counts, repeat(width), repeat(samples)))
    else:
        return
    if (needed := min(map(embedding_size_of, specs)) * models) > most:
        raise InputError(
            f"{method.name}: {limit}, fewer than the {needed} dimensions that are asked; give --set "
            f"embedding_size={max(1, most // models)} or less"
        )
