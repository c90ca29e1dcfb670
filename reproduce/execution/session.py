"""From names on the command line to what a run works with: problem, methods, store."""

from dataclasses import dataclass
from pathlib import Path

import optuna

from protocols.datasets.dataset import DataError, DataRequest, Dataset
from protocols.datasets.dataset_registry import DATASETS, open_dataset
from protocols.datasets.stand_in import stand_in
from protocols.images.packing import BrokenImageError, Progress
from protocols.problem import Problem
from protocols.protocol_registry import PROTOCOLS, Protocol
from protocols.search.open_method import OpenMethod
from protocols.search.study import Budget, Study
from protocols.splits import SplitError, named_split
from protocols.trunks.download import Progress as DownloadProgress
from protocols.trunks.embedding_model import TrunkError
from protocols.trunks.trunk_registry import settled_trunk, trunk_entry
from reproduce.config.method_card import MethodCard, load_card, load_variant
from reproduce.config.method_on_dataset import open_method
from reproduce.errors import InputError
from reproduce.storage import Places
from results.experiment_spec import Experiment


@dataclass(frozen=True)
class Session:
    """An experiment with its data opened and its cards read."""

    name: str
    experiment: Experiment
    problem: Problem
    cards: tuple[MethodCard, ...]
    places: Places

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

    def summary(self) -> dict[str, object]:
        """What the store keeps of the experiment, enough to draw its table without this suite's other rooms."""
        return {
            "title": self.experiment.title,
            "methods": {card.key: card.title for card in self.cards},
            "trials": self.budget.trials,
            "reproductions": self.budget.reproductions,
            "runs": {
                key: study.n_reproductions for key, study in self.studies(optuna.storages.InMemoryStorage()).items()
            },
            "settings": self.experiment.model_dump(mode="json", exclude={"dataset": {"root"}}),
        }


def needs_folder(experiment: Experiment) -> bool:
    """Whether the experiment's images still have to be located."""
    entry = DATASETS.get(experiment.dataset.name)
    return entry is not None and entry.needs_root and experiment.dataset.root is None


def open_session(
    name: str,
    experiment: Experiment,
    where: Places,
    progress: Progress | None,
    weights: Path | None = None,
    fetching: DownloadProgress | None = None,
    *,
    outline: bool = False,
) -> Session:
    """Reads the cards, settles the trunk's weights, opens the dataset and splits it.

    weights: where the trunk's come from, if not from where they are looked for (protocols.trunks.weights). outline: for
    a plan, which needs no weights, and a dataset that is not located is stood in for by its published counts. Raises
    InputError with one line on what to do.
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
            open_dataset(request)  # Says which folder it wants, before weights are fetched for nothing.
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
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise InputError(f"method {twice[0]!r} is named twice; name it once")
    return cards


def problem_of(experiment: Experiment, dataset: Dataset) -> Problem:
    """What all methods of an experiment share, on its dataset; raises SplitError."""
    name, queries_given = split_name(experiment), dataset.is_query is not None
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


def split_name(experiment: Experiment) -> str:
    """The class split: the experiment's own choice, or its protocol's."""
    return experiment.split or {"mlrc": "mlrc", "standard": "conventional"}[experiment.protocol]
