"""Trains stored trainings again, with the same data, in a temporary folder. Nothing in the store changes."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import closing
from pathlib import Path

from protocols.datasets.dataset import DataError, DataRequest, Dataset
from protocols.datasets.dataset_registry import open_dataset
from protocols.datasets.embedded import EMBEDDED
from protocols.features.frozen_features import FrozenTrunk, with_features
from protocols.images.decoding import BrokenImageError
from protocols.jobs import TrainJob
from protocols.progress import Progress
from protocols.source_files import SourceError
from protocols.splits import FoldClasses, SplitError, from_ranges
from protocols.training.build_method import MethodError
from protocols.training.fold_data import FoldData, fold_data
from protocols.trunks.trunk_registry import settled_trunk
from protocols.trunks.weights import TrunkError
from reproduce.errors import InputError, WorkFailedError
from reproduce.execution.executor import Executor
from reproduce.execution.tasks import Trained, TrainTask
from reproduce.store_care.compare_trainings import Comparison, compare_training
from reproduce.store_care.sample_trainings import StoredTraining
from results.artifacts import weights_path
from results.training_spec import FoldSpec, ImageSettings
from results.trunk_spec import NO_TRUNK, TrunkSpec


class DataAgain:
    """Opens the data of stored trainings again, each dataset once.

    Args:
        root_of: Function that returns the folder of a dataset's images; None for no folder.
        cache: Folder of decoded images.
        device: cpu, cuda or cuda:N, which computes the features of a frozen trunk.
        progress: Called with the number of decoded images.
    """

    def __init__(
        self, root_of: Callable[[str], Path | None], cache: Path, device: str, progress: Progress | None = None
    ) -> None:
        self.root_of, self.cache, self.device, self.progress = root_of, cache, device, progress
        self._opened: dict[tuple[str, ImageSettings, TrunkSpec | None], Dataset] = {}

    def of(self, training: StoredTraining) -> FoldData:
        """Return the images, or features, that a training saw.

        Raises:
            InputError: The images are missing or are not those that the training saw.
        """
        spec = training.spec
        key = (spec.dataset, spec.images, spec.trunk if spec.trunk.frozen else None)
        try:
            if key not in self._opened:
                self._opened[key] = self._open(training)
            train, validation = from_ranges(spec.train_classes), from_ranges(spec.validation_classes)
            return fold_data(self._opened[key], FoldClasses(spec.fold, train, validation))
        except (DataError, BrokenImageError, SplitError, TrunkError) as error:
            raise InputError(str(error)) from error

    def _open(self, training: StoredTraining) -> Dataset:
        spec, choice = training.spec, training.settings.dataset
        root = self.root_of(choice.name)
        if root is None and choice.name not in EMBEDDED:
            raise InputError(f"{choice.name}: give the folder of its images with --data FOLDER")
        request = DataRequest(
            choice.name, spec.images, self.cache, root, choice.subset, choice.skip_broken_images, self.progress
        )
        dataset = open_dataset(request)
        if dataset.fingerprint != spec.data_fingerprint:
            raise InputError(
                f"{root or choice.name}: not the images of {training.called} (data {dataset.fingerprint[:12]} instead "
                f"of {spec.data_fingerprint[:12]}); give their folder with --data"
            )
        if spec.trunk.frozen:
            return with_features(dataset, FrozenTrunk(spec.trunk, spec.images), self.cache, self.device, self.progress)
        return dataset


def check_weights(spec: FoldSpec, weights: Path | None, fetching: Progress | None = None) -> None:
    """Find the trunk's weights, and download them if they are missing.

    Args:
        spec: The training.
        weights: File with the trunk's weights, or its folder; None searches them.
        fetching: Called with the downloaded part of the weights.

    Raises:
        InputError: The weights are missing, or are not those of the training.
    """
    if spec.trunk.name == NO_TRUNK:
        return
    try:
        settled = settled_trunk(spec.trunk, weights, fetching)
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
    """Make trainings again and compare each with the stored one.

    Args:
        trainings: The trainings.
        data: Their data.
        artifacts: Folder of the stored checkpoints, which is only read.
        executor: Carries out the trainings; it is closed at the end.
        progress: Called with the number of trainings that are done, and of all trainings.

    Yields:
        Each training with its comparison, as it is done.

    Raises:
        WorkFailedError: A training cannot be made again.
    """
    with closing(executor), tempfile.TemporaryDirectory() as folder:
        futures = {}
        for training in trainings:
            weights = Path(folder) / f"{training.spec.fingerprint}.pt"
            futures[executor.submit(TrainTask(TrainJob(training.spec), data.of(training), weights))] = training, weights
        for number, future in enumerate(as_completed(futures)):
            training, new_weights = futures[future]
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
