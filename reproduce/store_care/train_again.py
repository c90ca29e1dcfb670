"""Trains stored trainings again, with the same data, in a temporary folder. Nothing in the store changes."""

import pickle
import random
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from protocols.datasets.dataset import DataError, DataRequest, Dataset
from protocols.datasets.dataset_registry import open_dataset
from protocols.features.frozen_features import FrozenTrunk, with_features
from protocols.images.decoding import BrokenImageError
from protocols.jobs import TrainJob
from protocols.progress import Progress
from protocols.splits import FoldClasses, SplitError, from_ranges
from protocols.training.build_method import MethodError
from protocols.training.check_method import with_versions
from protocols.training.fold_data import FoldData, fold_data
from protocols.trunks.trunk_registry import identified_trunk
from protocols.trunks.weights import TrunkError
from protocols.users_files.kept_sources import remember_kept_sources
from protocols.users_files.sources import SourceError
from reproduce.errors import InputError, WorkFailedError
from reproduce.execution.executor import Executor, in_order
from reproduce.execution.tasks import Trained, TrainTask
from reproduce.outputs.find_runs import NamedExperiment
from reproduce.store_care.check_files import read_tensors
from results.records.artifacts import last_epoch_path, vectors_path, weights_path
from results.records.provenance import mixed_math, mixed_versions
from results.records.records import FoldResult, Provenance
from results.spec.data_choice import EMBEDDED, DataChoice
from results.spec.experiment_spec import Experiment
from results.spec.source_names import sources_of_training
from results.spec.training_spec import TRAINING_VERSION, FoldSpec, ImageSettings
from results.spec.trunk_spec import NO_TRUNK, TrunkSpec
from results.store.store import Store

_CIRCUMSTANCES = {"wall_time", "provenance"}
_UNREADABLE = (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile)


@dataclass(frozen=True)
class Comparison:
    """How a training that was made again differs from the stored one.

    Attributes:
        differences: What differs, in words; empty if everything is equal bit for bit.
        surroundings: What differs between the machines and packages of the two, in words.
        best_change: MAP@R of the new checkpoint minus that of the stored one, a fraction of 1; None without validation.
        checkpoint: Whether a stored checkpoint was compared.
        processor_known: Whether the stored result names the processor that made it. Older ones do not.
    """

    differences: tuple[str, ...]
    surroundings: tuple[str, ...]
    best_change: float | None
    checkpoint: bool
    processor_known: bool


def compare_training(
    stored: FoldResult, again: FoldResult, stored_weights: Path | None, new_weights: Path
) -> Comparison:
    """Compare two results of the same specification, and their checkpoints if the stored one should have some."""
    differences = [*_different_fields(stored, again)]
    compared = stored_weights is not None and stored_weights.is_file()
    if stored_weights is not None and not compared:
        differences.append(f"the checkpoint {stored_weights} is missing")
    elif stored_weights is not None:
        for path in (lambda file: file, vectors_path, last_epoch_path):
            differences += _different_tensors(path(stored_weights), path(new_weights))
    scores = stored.best_map_at_r, again.best_map_at_r
    change = None if scores[0] is None or scores[1] is None else scores[1] - scores[0]
    surroundings = tuple(_different_surroundings(stored.provenance, again.provenance))
    return Comparison(tuple(differences), surroundings, change, compared, bool(stored.provenance.processor))


def _different_fields(stored: FoldResult, again: FoldResult) -> Iterator[str]:
    first, second = stored.model_dump(exclude=_CIRCUMSTANCES), again.model_dump(exclude=_CIRCUMSTANCES)
    for name, value in first.items():
        if value != second[name]:
            yield "the curve" if name == "curve" else f"{name} {second[name]} instead of {value}"


def _different_tensors(stored: Path, again: Path) -> Iterator[str]:
    """Yield what differs between two files of tensors; nothing if neither exists."""
    if stored.is_file() != again.is_file():
        yield f"{stored.name} is {'stored' if stored.is_file() else 'not stored'}"
    if not (stored.is_file() and again.is_file()):
        return
    try:
        first, second = _by_name(read_tensors(stored)), _by_name(read_tensors(again))
    except _UNREADABLE as error:
        yield f"{stored} cannot be loaded ({type(error).__name__})"
        return
    differing = [name for name in first.keys() | second.keys() if not _equal(first.get(name), second.get(name))]
    if differing:
        yield f"{len(differing)} of {len(first)} tensors in {stored.name}"


def _by_name(tensors: Any) -> dict[str, Tensor]:
    pairs = tensors.items() if isinstance(tensors, dict) else enumerate(tensors)
    return {str(name): tensor for name, tensor in pairs}


def _equal(first: Tensor | None, second: Tensor | None) -> bool:
    """Return whether two tensors are equal bit for bit, NaN included."""
    if first is None or second is None or first.dtype != second.dtype or first.shape != second.shape:
        return False
    return first.contiguous().numpy().tobytes() == second.contiguous().numpy().tobytes()


def _different_surroundings(stored: Provenance, again: Provenance) -> Iterator[str]:
    for name in ("device", "threads", "cpu_count", "host_system"):
        if getattr(stored, name) != getattr(again, name):
            yield f"{name.replace('_', ' ')} {getattr(again, name)} instead of {getattr(stored, name)}"
    if stored.processor and again.processor and stored.processor != again.processor:
        yield f"processor {again.processor} instead of {stored.processor}"
    for package, versions in mixed_versions([stored, again]).items():
        yield f"{package} {' and '.join(versions)}"
    for name, values in mixed_math([stored, again]).items():
        yield f"{name} {' and '.join(values)}"


@dataclass(frozen=True)
class StoredTraining:
    """A training of an experiment in the store.

    Attributes:
        experiment: Name of the experiment.
        settings: The experiment.
        spec: All that decided the training.
        result: Its stored result.
        keeps_checkpoint: Whether a test evaluation was made with its weights.
    """

    experiment: str
    settings: Experiment
    spec: FoldSpec
    result: FoldResult
    keeps_checkpoint: bool

    @property
    def called(self) -> str:
        """The training's name in messages."""
        purpose = "reproduction" if self.keeps_checkpoint else "search or choice of the epoch"
        spec = self.spec
        return f"{self.experiment}, {spec.method.name}, fold {spec.fold} ({purpose}) {spec.fingerprint[:12]}"


@dataclass(frozen=True)
class Sample:
    """A random sample of trainings.

    Attributes:
        drawn: The trainings to make again.
        of: Number of trainings that they were drawn from.
        other_versions: Number of trainings that another version of the code made; they are not drawn from.
    """

    drawn: tuple[StoredTraining, ...]
    of: int
    other_versions: int


def draw_sample(trainings: Iterable[StoredTraining], store: Store, size: int, seed: int) -> Sample:
    """Draw trainings at random. The same seed draws the same ones from an unchanged store."""
    by_fingerprint = {training.spec.fingerprint: training for training in trainings}
    ordered = [by_fingerprint[fingerprint] for fingerprint in sorted(by_fingerprint)]
    for training in ordered:
        remember_kept_sources(store.artifacts, sources_of_training(training.spec))
    possible = [training for training in ordered if _is_of_this_version(training.spec)]
    drawn = random.Random(seed).sample(possible, min(size, len(possible)))
    return Sample(tuple(drawn), len(possible), len(ordered) - len(possible))


def stored_trainings(store: Store, experiment: NamedExperiment) -> list[StoredTraining]:
    """Return the finished trainings of an experiment: those of its runs, and those of its searches."""
    summary = store.experiment(experiment.fingerprint)
    settings = summary.experiment
    records = store.experiment_runs(experiment.fingerprint)
    tested = {fingerprint for record in records for fingerprint in record.fold_fingerprints}
    others = {fingerprint for record in records for fingerprint in record.chosen_by}
    for (method, _), study in store.searches.of_experiment(experiment.fingerprint).items():
        if method in summary.methods:
            others |= {fingerprint for trial in study.trials for fingerprint in trial.trainings}
    stored = store.fold_results(sorted(tested | others))
    return [
        StoredTraining(experiment.name, settings, spec, result, fingerprint in tested)
        for fingerprint, (spec, result) in stored.items()
    ]


def _is_of_this_version(spec: FoldSpec) -> bool:
    """Return whether this code trains what the specification means: same training version, same classes."""
    try:
        return spec.training_version == TRAINING_VERSION and with_versions(spec.method).versions == spec.method.versions
    except MethodError:
        return False


class DataAgain:
    """Opens the data of stored trainings again, each dataset once. `root_of` gives the folder of a dataset."""

    def __init__(
        self, root_of: Callable[[str], Path | None], cache: Path, device: str, progress: Progress | None = None
    ) -> None:
        self.root_of, self.cache, self.device, self.progress = root_of, cache, device, progress
        self._opened: dict[tuple[str, ImageSettings, TrunkSpec | None], Dataset] = {}

    def of(self, training: StoredTraining) -> FoldData:
        """Return the images, or features, that a training saw; raise InputError if they are missing or others."""
        spec = training.spec
        key = (spec.dataset, spec.images, spec.trunk if spec.trunk.frozen else None)
        try:
            if key not in self._opened:
                self._opened[key] = self.dataset(spec, training.settings.dataset, f"of {training.called}")
            train, validation = from_ranges(spec.train_classes), from_ranges(spec.validation_classes)
            return fold_data(self._opened[key], FoldClasses(spec.fold, train, validation))
        except (DataError, BrokenImageError, SplitError, TrunkError) as error:
            raise InputError(str(error)) from error

    def dataset(self, spec: FoldSpec, choice: DataChoice, whose: str) -> Dataset:
        """Open the data of a training, with features in place of images for a frozen trunk.

        Args:
            spec: The training.
            choice: The data of its experiment.
            whose: Whose images they are, for the message: "the images {whose}".

        Raises:
            InputError: Images are needed and no folder is given, or they are others.
        """
        root = self.root_of(choice.name)
        if root is None and choice.name not in EMBEDDED:
            raise InputError(f"{choice.name}: give the folder of its images with --data FOLDER")
        dataset = open_dataset(DataRequest.of(choice, spec.images, self.cache, root, self.progress))
        if dataset.fingerprint != spec.data_fingerprint:
            raise InputError(
                f"{root or choice.name}: not the images {whose} (data {dataset.fingerprint[:12]} instead of "
                f"{spec.data_fingerprint[:12]}); give their folder with --data"
            )
        if spec.trunk.frozen:
            return with_features(dataset, FrozenTrunk(spec.trunk, spec.images), self.cache, self.device, self.progress)
        return dataset


def check_weights(spec: FoldSpec, weights: Path | None, fetching: Progress | None = None) -> None:
    """Find the trunk's weights, and download them if they are missing; raise InputError if they are others."""
    if spec.trunk.name == NO_TRUNK:
        return
    try:
        settled = identified_trunk(spec.trunk, weights, fetching)
    except TrunkError as error:
        raise InputError(str(error)) from error
    if settled.weights != spec.trunk.weights:
        raise InputError(
            f"trunk {spec.trunk.name}: the weights on this machine ({settled.weights}) are not those of the training "
            f"({spec.trunk.weights}); name their file with --weights"
        )


def train_again(
    trainings: Sequence[StoredTraining],
    data: DataAgain,
    artifacts: Path,
    executor: Executor,
    progress: Progress | None = None,
) -> Iterator[tuple[StoredTraining, Comparison]]:
    """Make trainings again in the given order, and compare each with the stored one. The executor is closed."""
    with closing(executor), tempfile.TemporaryDirectory() as folder:
        futures, new_files = [], []
        for training in trainings:
            new_files.append(Path(folder) / f"{training.spec.fingerprint}.pt")
            futures.append(executor.submit(TrainTask(TrainJob(training.spec), data.of(training), new_files[-1])))
        for number, future in enumerate(in_order(executor, futures)):
            training, new_weights = trainings[number], new_files[number]
            try:
                trained = future.result()
            except (MethodError, SplitError, SourceError, TrunkError, OSError, RuntimeError) as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise WorkFailedError(f"{training.called}: cannot be trained again ({reason})") from error
            assert isinstance(trained, Trained)
            stored = weights_path(artifacts, training.spec) if training.keeps_checkpoint else None
            if progress is not None:
                progress(number + 1, len(trainings))
            yield training, compare_training(training.result, trained.result, stored, new_weights)
