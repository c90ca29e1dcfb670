"""Opens an experiment for a run or a plan: reads its cards, finds its weights, opens and splits its dataset."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from protocols.datasets.dataset import DataRequest, Dataset
from protocols.datasets.dataset_registry import DATASETS, open_dataset
from protocols.datasets.listing import DataError
from protocols.datasets.publications import stand_in
from protocols.features.feature_rows import LabelledFeatures
from protocols.features.frozen_features import FrozenTrunk, with_features
from protocols.images.decoding import BrokenImageError
from protocols.progress import Progress
from protocols.protocol_registry import PROTOCOLS, Protocol
from protocols.search.method_template import MethodTemplate
from protocols.search.proposals import SamplerError, build_sampler
from protocols.search.space import searched_ranges
from protocols.search.study import Budget, Study
from protocols.setup import Setup
from protocols.splits import ClassSplit, SplitError, drawn_name, named_split
from protocols.trunks.embedding_model import check_images_fit
from protocols.trunks.trunk_registry import identified_trunk, trunk_entry
from protocols.trunks.weights import TrunkError
from reproduce.config.checked_card import load_card, load_variant
from reproduce.config.method_card import MethodCard
from reproduce.config.method_on_dataset import open_method
from reproduce.errors import InputError, all_of
from reproduce.run.devices import use_gpu
from reproduce.storage import StoragePaths, open_store
from results.records.experiment_summary import ExperimentData, ExperimentSummary
from results.records.trials import TrialLog, TrialsInMemory
from results.spec.conditions import ImageSettings
from results.spec.data_choice import EMBEDDED, DrawnSplit, samples_word
from results.spec.experiment_spec import Experiment
from results.spec.search_settings import LOOKS
from results.spec.training_spec import MethodSpec
from results.spec.trunk_spec import NO_TRUNK, TrunkSpec
from results.store.store import Store


@dataclass(frozen=True)
class Session:
    """An opened experiment.

    Attributes:
        name: The experiment's name in the store.
        experiment: The experiment's settings.
        setup: The dataset, its split, and the settings that all methods share.
        titles: Titles of its methods, by key, in the order of the tables' rows.
        methods: The methods with their settings for this dataset and experiment, by key.
        paths: Paths of the store, the checkpoints, the decoded images and the output.
        row_setups: The setups of the rows that have conditions of their own, by the methods' keys.
        defaults: The method of each row with default settings, by the row's key.
    """

    name: str
    experiment: Experiment
    setup: Setup
    titles: Mapping[str, str]
    methods: Mapping[str, MethodTemplate]
    paths: StoragePaths
    row_setups: Mapping[str, Setup] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def store(self) -> Store:
        """The store, opened once at its first use and made if there is none."""
        return open_store(self.paths)

    @property
    def budget(self) -> Budget:
        """The number of trials, of reproductions and of searches per method."""
        search = self.experiment.search
        return Budget(search.trials, self.experiment.reproductions, search.searches)

    @property
    def fingerprint(self) -> str:
        """The fingerprint under which the store keeps the experiment."""
        return self.experiment.fingerprint(self.name, self.setup.dataset.fingerprint)

    @property
    def protocol(self) -> Protocol:
        """The protocol of the experiment's runs."""
        return PROTOCOLS[self.experiment.protocol]

    def looks(self) -> Iterator["Session"]:
        """Yield the session at each planned look if it runs until decided, else the session itself."""
        if not self.experiment.search.until_decided:
            yield self
            return
        for searches in LOOKS:
            yield replace(self, experiment=self.experiment.with_searches(searches))

    def studies(self, log: TrialLog | None = None) -> dict[str, Study]:
        """Return one study per method, by key. The log has the trials; None if there are none yet."""
        log = TrialsInMemory() if log is None else log
        search, setups = self.experiment.search, self.row_setups
        without_search = replace(self.budget, trials=0, searches=1)
        budgets = {key: without_search if key in self.defaults else self.budget for key in self.methods}
        return {
            key: Study(setups.get(key, self.setup), method, budgets[key], search.sampler, log, search.racing)
            for key, method in self.methods.items()
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
            defaults=dict(self.defaults),
        )


def _title(card: MethodCard, row: Experiment) -> str:
    """Return the title of a row. Rows of features come from no trunk of ours, so none was left untrained."""
    return "Features as given" if card.key == "untrained" and row.conditions.trunk.name == NO_TRUNK else card.title


def _with_defaults(session: Session) -> Session:
    """Add a row with the card's own settings for every method that is searched."""
    titles, methods, setups = dict(session.titles), dict(session.methods), dict(session.row_setups)
    defaults = {f"{key}_default": key for key, method in methods.items() if method.space}
    for row, key in defaults.items():
        method = methods[key]
        titles[row] = f"{titles[key]}, default"
        renamed = method.method.model_copy(update={"name": row})
        methods[row] = method.model_copy(update={"method": renamed, "space": ()})
        if key in setups:
            setups[row] = setups[key]
    return replace(session, titles=titles, methods=methods, row_setups=setups, defaults=defaults)


def needs_folder(experiment: Experiment) -> bool:
    """Return whether the experiment needs a folder of images or features and has none yet."""
    dataset = experiment.dataset
    return dataset.name in DATASETS and dataset.name not in EMBEDDED and dataset.root is None


def open_session(
    name: str,
    experiment: Experiment,
    where: StoragePaths,
    progress: Progress | None,
    weights: Path | None = None,
    fetching: Progress | None = None,
    *,
    outline: bool = False,
    device: str = "cpu",
    computing: Progress | None = None,
) -> Session:
    """Read the cards, find the trunk's weights, open the dataset and split it.

    An `outline` is only for a plan: it needs no weights, and the published counts replace images without a folder.
    `progress` gets the number of decoded images, `fetching` the downloaded part of the weights, and `computing` the
    number of images whose features are computed.

    Raises:
        InputError: Something is missing or wrong; the message is one line with the remedy.
    """
    cards = _cards(experiment)
    data = _Data(where, progress, computing, device, outline)
    try:
        build_sampler(experiment.search.sampler)
        if needs_folder(experiment):
            data.images(experiment)  # Fails before weights are downloaded in vain.
        if experiment.conditions.trunk.name == NO_TRUNK:
            experiment = _with_width(experiment, data.images(experiment))
        if not outline or weights is not None:
            trunk = identified_trunk(experiment.conditions.trunk, weights, fetching)
            if trunk.name != NO_TRUNK:
                check_images_fit(trunk, experiment.conditions.images.crop)
            experiment = experiment.with_conditions(trunk=trunk)
        elif experiment.conditions.trunk.name != NO_TRUNK:
            trunk_entry(experiment.conditions.trunk)  # A plan needs the name of a known trunk, but need not build it.
        rows = {card.key: experiment.for_row(card.key) for card in cards}
        methods = dict(all_of(cards, lambda card: (card.key, open_method(rows[card.key], card))))
        for key, row in rows.items():
            check_components(setup_of(row, data.images(row)), methods[key].method)
        setup = setup_of(experiment, data.seen_by(experiment))
        row_setups = {key: setup_of(rows[key], data.seen_by(rows[key])) for key in rows if key in experiment.changes}
        titles = {card.key: _title(card, rows[card.key]) for card in cards}
        session = Session(name, experiment, setup, titles, methods, where, row_setups)
        return _with_defaults(session) if experiment.search.default else session
    except (DataError, BrokenImageError, SamplerError, SplitError, TrunkError) as error:
        raise InputError(str(error)) from error


@dataclass(frozen=True)
class _Data:
    """The dataset as the rows of an experiment see it: each size is opened once, features are computed once."""

    where: StoragePaths
    progress: Progress | None
    computing: Progress | None
    device: str
    outline: bool
    opened: dict[int | None, Dataset] = field(default_factory=dict)
    with_features: dict[tuple[TrunkSpec, ImageSettings], Dataset] = field(default_factory=dict)

    def images(self, row: Experiment) -> Dataset:
        """Return the dataset as its folder or file has it, or its outline."""
        size = row.conditions.images.resize
        if size not in self.opened:
            choice, cache = row.dataset, self.where.cache
            outlined = outline_of(row) if self.outline and needs_folder(row) else None
            request = DataRequest(choice, row.conditions.images, cache, choice.root, self.progress)
            self.opened[size] = outlined or open_dataset(request)
        return self.opened[size]

    def seen_by(self, row: Experiment) -> Dataset:
        """Return the dataset that trainings read: with features in place of images if the trunk is frozen."""
        trunk, images = row.conditions.trunk, row.conditions.images
        if not trunk.frozen:
            return self.images(row)
        if (trunk, images) not in self.with_features:
            self.with_features[trunk, images] = self._featured(self.images(row), FrozenTrunk(trunk, images))
        return self.with_features[trunk, images]

    def _featured(self, dataset: Dataset, frozen: FrozenTrunk) -> Dataset:
        if self.outline:
            return dataset
        use_gpu(self.device)
        return with_features(dataset, frozen, self.where.cache, self.device, self.computing)


def _with_width(experiment: Experiment, dataset: Dataset) -> Experiment:
    """Write the number of features of a row, which is part of the trainings' specifications, into the experiment."""
    assert isinstance(dataset.images, LabelledFeatures)
    trunk = experiment.conditions.trunk.model_copy(update={"width": dataset.images.features.width})
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
    split = named_split(name, dataset.n_classes, dataset.trainval_classes, test_given=dataset.are_test_classes_given)
    return Setup(
        dataset,
        split,
        _folds_of(experiment, split),
        experiment.conditions,
        experiment.seed,
        experiment.metrics,
    )


def _folds_of(experiment: Experiment, split: ClassSplit) -> int:
    # Under `mlrc` with the conventional split there is a single model per run, as in the papers.
    one_model = experiment.protocol == "mlrc" and split.name == "conventional"
    return 1 if one_model else len(split.folds[: experiment.folds])


def outline_of(experiment: Experiment) -> Dataset | None:
    """Return a dataset without images that has the published counts; None if there are no published counts."""
    publication = DATASETS[experiment.dataset.name].publication
    if publication is None:
        return None
    return stand_in(experiment.dataset.name, publication.counts)


def data_of(setup: Setup) -> ExperimentData:
    """Return what the store keeps about the data of an experiment."""
    dataset = setup.dataset
    return ExperimentData(
        fingerprint=dataset.fingerprint,
        samples=len(dataset.images),
        classes=dataset.n_classes,
        left_out=dataset.left_out,
        equal_files=dataset.oddities.phrase(dataset, set(setup.split.test)),
    )


def check_components(setup: Setup, method: MethodSpec) -> None:
    """Check that there are enough images for the principal components of a method or of the embedder's start.

    A training or test would notice too, but only after the features of all images are computed.
    """
    if method.embedder == "test_components":
        tested = len(setup.dataset.images.of_classes(setup.split.test))
        if setup.conditions.embedding_size * setup.folds > tested - 1:
            samples = samples_word(setup.dataset.name)
            raise InputError(
                f"{method.name}: {tested} test {samples} have at most {tested - 1} principal components, fewer than "
                f"the {setup.conditions.embedding_size * setup.folds} dimensions of all folds together; give a "
                f"smaller embedding_size, or leave out {method.name}"
            )
        return
    starts_from_them = method.loss is not None and setup.conditions.embedder.init == "pca"
    if method.embedder != "principal_components" and not starts_from_them:
        return
    images = setup.dataset.images
    fewest = min(len(images.of_classes(fold.train)) for fold in setup.split.folds[: setup.folds])
    # The centred features of n images span at most n - 1 directions.
    if setup.conditions.embedding_size > fewest - 1:
        samples = samples_word(setup.dataset.name)
        raise InputError(
            f"{method.name}: a fold has only {fewest} training {samples}, which have at most {fewest - 1} principal "
            f"components, fewer than the {setup.conditions.embedding_size} dimensions of the embedding; give --set "
            f"embedding_size={max(1, fewest - 1)} or less, or more {samples}"
        )
