"""Opens an experiment for a run or a plan: reads its cards, finds its weights, opens and splits its dataset."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from protocols.datasets.dataset import DataError, DataRequest, Dataset
from protocols.datasets.dataset_registry import DATASETS, open_dataset
from protocols.datasets.notes_on_data import note_on_equal_files
from protocols.datasets.stand_in import stand_in
from protocols.features.feature_rows import LabelledFeatures
from protocols.features.frozen_features import FrozenTrunk, with_features, with_noise
from protocols.images.decoding import BrokenImageError
from protocols.problem import Problem
from protocols.progress import Progress
from protocols.protocol_registry import PROTOCOLS, Protocol
from protocols.search.method_template import MethodTemplate
from protocols.search.proposals import SamplerError, build_sampler
from protocols.search.space import searched_ranges
from protocols.search.study import Budget, Study
from protocols.splits import ClassSplit, SplitError, drawn_name, named_split
from protocols.trunks.embedding_model import check_images_fit
from protocols.trunks.trunk_registry import identified_trunk, trunk_entry
from protocols.trunks.weights import TrunkError
from reproduce.config.checked_card import load_card, load_variant
from reproduce.config.method_card import MethodCard
from reproduce.config.method_on_dataset import open_method
from reproduce.errors import InputError, all_of
from reproduce.execution.check_settings import check_components
from reproduce.execution.devices import use_gpu
from reproduce.storage import StoragePaths, open_store
from results.records.experiment_summary import ExperimentData, ExperimentSummary
from results.records.trials import TrialLog, TrialsInMemory
from results.spec.conditions import ImageSettings
from results.spec.data_choice import EMBEDDED, DrawnSplit
from results.spec.experiment_spec import Experiment
from results.spec.trunk_spec import NO_TRUNK, TrunkSpec
from results.store.store import Store


@dataclass(frozen=True)
class Session:
    """An opened experiment.

    Attributes:
        name: The experiment's name in the store.
        experiment: The experiment's settings.
        problem: The dataset, its split, and the settings that all methods share.
        titles: Titles of its methods, by key, in the order of the tables' rows.
        methods: The methods with their settings for this dataset and experiment, by key.
        paths: Paths of the store, the checkpoints, the decoded images and the output.
        row_problems: The problems of the rows that have conditions of their own, by the methods' keys.
    """

    name: str
    experiment: Experiment
    problem: Problem
    titles: Mapping[str, str]
    methods: Mapping[str, MethodTemplate]
    paths: StoragePaths
    row_problems: Mapping[str, Problem] = field(default_factory=dict)

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
        return self.experiment.fingerprint(self.name, self.problem.dataset.fingerprint)

    @property
    def protocol(self) -> Protocol:
        """The protocol of the experiment's runs."""
        return PROTOCOLS[self.experiment.protocol]

    def studies(self, log: TrialLog | None = None) -> dict[str, Study]:
        """Return one study per method, by key. The log has the trials; None if there are none yet."""
        log = TrialsInMemory() if log is None else log
        search = self.experiment.search
        return {
            key: Study(
                self.row_problems.get(key, self.problem), method, self.budget, search.sampler, log, search.racing
            )
            for key, method in self.methods.items()
        }

    def summary(self) -> ExperimentSummary:
        """Return the experiment's summary for the store. It is enough to draw the tables without torch."""
        studies = self.studies()
        return ExperimentSummary(
            methods=dict(self.titles),
            runs={key: study.n_runs for key, study in studies.items()},
            experiment=self.experiment,
            data=data_of(self.problem),
            transductive=tuple(
                key for key, study in studies.items() if study.method.method.embedder == "test_components"
            ),
            ranges={key: ranges for key, study in studies.items() if (ranges := searched_ranges(study.method.space))},
        )


def _title(card: MethodCard, row: Experiment) -> str:
    """Return the title of a row. Rows of features come from no trunk of ours, so none was left untrained."""
    return "Features as given" if card.key == "untrained" and row.conditions.trunk.name == NO_TRUNK else card.title


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
    try:
        build_sampler(experiment.search.sampler)
        if needs_folder(experiment) and not (outline and DATASETS[experiment.dataset.name].publication):
            _open_images(experiment, where, progress)  # Fails before weights are downloaded in vain.
        if experiment.conditions.trunk.name == NO_TRUNK:
            experiment = _with_width(experiment, _open_images(experiment, where, progress))
        if not outline or weights is not None:
            trunk = identified_trunk(experiment.conditions.trunk, weights, fetching)
            if trunk.name != NO_TRUNK:
                check_images_fit(trunk, experiment.conditions.images.crop)
            experiment = experiment.with_conditions(trunk=trunk)
        elif experiment.conditions.trunk.name != NO_TRUNK:
            trunk_entry(experiment.conditions.trunk)  # A plan needs the name of a known trunk, but need not build it.

        def featured(dataset: Dataset, row: Experiment) -> Dataset:
            if outline:
                return with_noise(dataset, row.conditions.trunk)
            use_gpu(device)
            return with_features(
                dataset, FrozenTrunk(row.conditions.trunk, row.conditions.images), where.cache, device, computing
            )

        rows = {card.key: experiment.for_row(card.key) for card in cards}
        methods = dict(all_of(cards, lambda card: (card.key, open_method(rows[card.key], card))))
        problem, *others = _problems(experiment, rows, methods, where, progress, featured, outline=outline)
        row_problems = {key: other for key, other in zip(rows, others, strict=True) if key in experiment.changes}
        titles = {card.key: _title(card, rows[card.key]) for card in cards}
        return Session(name, experiment, problem, titles, methods, where, row_problems)
    except (DataError, BrokenImageError, SamplerError, SplitError, TrunkError) as error:
        raise InputError(str(error)) from error


def _with_width(experiment: Experiment, dataset: Dataset) -> Experiment:
    """Write the number of features of a row, which is part of the trainings' specifications, into the experiment."""
    assert isinstance(dataset.images, LabelledFeatures)
    trunk = experiment.conditions.trunk.model_copy(update={"width": dataset.images.features.width})
    return experiment.with_conditions(trunk=trunk)


def _problems(
    whole: Experiment,
    by_key: Mapping[str, Experiment],
    methods: Mapping[str, MethodTemplate],
    where: StoragePaths,
    progress: Progress | None,
    featured: Callable[[Dataset, Experiment], Dataset],
    *,
    outline: bool,
) -> list[Problem]:
    """Return the problems of experiments that differ in the conditions of a row: of the whole, then of each row.

    Equal images are opened once, and features of a frozen trunk are computed once by `featured`.
    """
    rows = [whole, *by_key.values()]
    opened: dict[int | None, Dataset] = {}
    with_frozen: dict[tuple[TrunkSpec, ImageSettings], Dataset] = {}
    for row in rows:
        if row.conditions.images.resize not in opened:
            outlined = outline_of(row) if outline and needs_folder(row) else None
            opened[row.conditions.images.resize] = outlined or _open_images(row, where, progress)
    for key, row in by_key.items():
        check_components(problem_of(row, opened[row.conditions.images.resize]), methods[key].method)
    for row in rows:
        if row.conditions.trunk.frozen and (row.conditions.trunk, row.conditions.images) not in with_frozen:
            with_frozen[row.conditions.trunk, row.conditions.images] = featured(
                opened[row.conditions.images.resize], row
            )
    return [
        problem_of(
            row,
            with_frozen[row.conditions.trunk, row.conditions.images]
            if row.conditions.trunk.frozen
            else opened[row.conditions.images.resize],
        )
        for row in rows
    ]


def _open_images(experiment: Experiment, where: StoragePaths, progress: Progress | None) -> Dataset:
    choice = experiment.dataset
    return open_dataset(DataRequest(choice, experiment.conditions.images, where.cache, choice.root, progress))


def _cards(experiment: Experiment) -> tuple[MethodCard, ...]:
    """Load the cards of an experiment's methods and variants; raise InputError if a method is named twice."""
    cards = (*all_of(experiment.methods, load_card), *all_of(experiment.variants, load_variant))
    keys = [card.key for card in cards]
    if repeated := [key for key in keys if keys.count(key) > 1]:
        raise InputError(f"method {repeated[0]!r} is named twice; name it once")
    return cards


def problem_of(experiment: Experiment, dataset: Dataset) -> Problem:
    """Return the problem that all methods of an experiment share."""
    name = experiment.split or PROTOCOLS[experiment.protocol].split
    if isinstance(name, DrawnSplit):
        name = drawn_name(PROTOCOLS[experiment.protocol].split, name.seed)
    split = named_split(name, dataset.n_classes, dataset.trainval_classes, test_given=dataset.are_test_classes_given)
    return Problem(
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
    side = experiment.conditions.images.resize or 256
    return stand_in(experiment.dataset.name, publication.counts, shorter_side=side)


def data_of(problem: Problem) -> ExperimentData:
    """Return what the store keeps about the data of an experiment."""
    dataset = problem.dataset
    return ExperimentData(
        fingerprint=dataset.fingerprint,
        samples=len(dataset.images),
        classes=dataset.n_classes,
        left_out=dataset.left_out,
        equal_files=note_on_equal_files(
            dataset.equal_files, dataset.names, dataset.images.labels, set(problem.split.test)
        ),
    )
