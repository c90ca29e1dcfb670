"""An experiment opened for a run or a plan: its cards read, its weights settled, its dataset opened and split."""

from dataclasses import dataclass
from pathlib import Path

import optuna

from protocols.datasets.dataset import DataError, DataRequest, Dataset
from protocols.datasets.dataset_registry import DATASETS, open_dataset
from protocols.datasets.embedded import EMBEDDED
from protocols.datasets.stand_in import stand_in
from protocols.images.packing import BrokenImageError
from protocols.problem import Problem
from protocols.progress import Progress
from protocols.protocol_registry import PROTOCOLS, Protocol
from protocols.search.open_method import OpenMethod
from protocols.search.study import Budget, Study
from protocols.splits import SplitError, named_split
from protocols.trunks.trunk_registry import settled_trunk, trunk_entry
from protocols.trunks.weights import TrunkError
from reproduce.config.checked_card import load_card, load_variant
from reproduce.config.method_card import MethodCard
from reproduce.config.method_on_dataset import open_method
from reproduce.errors import InputError
from reproduce.storage import StoragePaths
from results.experiment_spec import Experiment
from results.experiment_summary import ExperimentSummary


@dataclass(frozen=True)
class Session:
    """An opened experiment."""

    name: str
    experiment: Experiment
    problem: Problem
    cards: tuple[MethodCard, ...]
    paths: StoragePaths

    @property
    def budget(self) -> Budget:
        """Trials and reproductions per method."""
        return Budget(self.experiment.search.trials, self.experiment.reproductions)

    @property
    def fingerprint(self) -> str:
        """The experiment's name in the store."""
        return self.experiment.fingerprint(self.name, self.problem.dataset.fingerprint)

    @property
    def protocol(self) -> Protocol:
        """How the experiment's runs are made."""
        return PROTOCOLS[self.experiment.protocol]

    def open_methods(self) -> dict[str, OpenMethod]:
        """The cards' methods on this dataset as the experiment opens them."""
        return {card.key: open_method(self.experiment, card) for card in self.cards}

    def studies(self, storage: optuna.storages.BaseStorage) -> dict[str, Study]:
        """One study per method; `storage` is read only when a study's trials are asked for."""
        sampler = self.experiment.search.sampler
        return {
            key: Study(self.problem, method, self.budget, sampler, storage)
            for key, method in self.open_methods().items()
        }

    def summary(self) -> ExperimentSummary:
        """What the store keeps of the experiment, enough to draw its tables without torch."""
        studies = self.studies(optuna.storages.InMemoryStorage())
        return ExperimentSummary(
            title=self.experiment.title,
            methods={card.key: card.title for card in self.cards},
            trials=self.budget.trials,
            reproductions=self.budget.reproductions,
            runs={key: study.n_reproductions for key, study in studies.items()},
            settings=self.experiment,
        )


def needs_folder(experiment: Experiment) -> bool:
    """Whether the experiment's images still have to be located."""
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
) -> Session:
    """Reads the cards, settles the trunk's weights, opens the dataset and splits it.

    Args:
        name: The experiment's name in the store.
        experiment: The experiment, with the folder of its images.
        where: Where the store, the checkpoints and the decoded images lie.
        progress: Told how many images are decoded.
        weights: File of the trunk's weights or its folder; by default the places in `protocols.trunks.weights`.
        fetching: Told how much of the trunk's weights has come.
        outline: Open for a plan: no weights are needed, and the published counts stand in for images without a folder.

    Raises:
        InputError: Something is missing or wrong; the message is one line that says what to do.
    """
    cards = _cards(experiment)
    request = DataRequest(
        name=experiment.dataset.name,
        images=experiment.images,
        cache=where.cache,
        root=experiment.dataset.root,
        subset=experiment.dataset.subset,
        skip_broken=experiment.dataset.skip_broken_images,
        progress=progress,
    )
    try:
        outlined = outline_of(experiment) if outline and needs_folder(experiment) else None
        if outlined is None and needs_folder(experiment):
            open_dataset(request)  # Raises an error that names the folder, before weights are fetched for nothing.
        if not outline or weights is not None:
            trunk = settled_trunk(experiment.trunk, weights, fetching)
            experiment = experiment.model_copy(update={"trunk": trunk})
        else:
            trunk_entry(experiment.trunk)  # A plan needs a trunk that is known, not one that can be built here.
        dataset = outlined or open_dataset(request)
        return Session(name, experiment, problem_of(experiment, dataset), cards, where)
    except (DataError, BrokenImageError, SplitError, TrunkError) as error:
        raise InputError(str(error)) from error


def _cards(experiment: Experiment) -> tuple[MethodCard, ...]:
    cards = (
        *(load_card(method) for method in experiment.methods),
        *(load_variant(variant) for variant in experiment.variants),
    )
    keys = [card.key for card in cards]
    if repeated := [key for key in keys if keys.count(key) > 1]:
        raise InputError(f"method {repeated[0]!r} is named twice; name it once")
    return cards


def problem_of(experiment: Experiment, dataset: Dataset) -> Problem:
    """What all methods of an experiment share, on its dataset; raises SplitError."""
    name = experiment.split or PROTOCOLS[experiment.protocol].split
    queries_given = dataset.is_query is not None
    split = named_split(name, dataset.n_classes, dataset.trainval_classes, queries_given=queries_given)
    return Problem(
        dataset,
        split,
        len(split.folds[: experiment.folds]),
        experiment.images,
        experiment.trunk,
        experiment.embedding_size,
        experiment.training,
        experiment.seed,
        experiment.embedder_bias,
        experiment.metrics,
        experiment.normalization,
    )


def outline_of(experiment: Experiment) -> Dataset | None:
    """The experiment's dataset as its publisher describes it; None where there is no publisher."""
    publication = DATASETS[experiment.dataset.name].publication
    if publication is None:
        return None
    side = experiment.images.resize or 256
    return stand_in(experiment.dataset.name, publication.counts, shorter_side=side)
