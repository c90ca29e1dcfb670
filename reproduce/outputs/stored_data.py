"""Opens the data of stored trainings again: what is exported, fitted or verified sees the images of the training."""

from collections.abc import Mapping
from pathlib import Path

from protocols.datasets.dataset import DataRequest, Dataset
from protocols.datasets.dataset_registry import open_dataset
from protocols.features.frozen_features import FrozenTrunk, with_features
from protocols.progress import Progress
from protocols.trunks.trunk_registry import identified_trunk
from reproduce.errors import InputError, as_input_errors
from results.spec.conditions import ImageSettings
from results.spec.data_choice import EMBEDDED, DataChoice
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import NO_TRUNK, TrunkSpec


class StoredData:
    """Opens each dataset once.

    Args:
        roots: Folder of each dataset's images, by its name; embedded datasets need none.
        cache: Folder of decoded images.
        device: cpu, cuda or cuda:N.
        progress: Called with the number of decoded images.
    """

    def __init__(
        self, roots: Mapping[str, Path | None], cache: Path, device: str, progress: Progress | None = None
    ) -> None:
        self.roots, self.cache, self.device, self.progress = roots, cache, device, progress
        self._opened: dict[tuple[str, ImageSettings, TrunkSpec | None], Dataset] = {}

    def open(self, spec: FoldSpec, choice: DataChoice, whose: str) -> Dataset:
        """Return the data of a training, with features in place of images for a frozen trunk.

        Args:
            spec: The training.
            choice: The data of its experiment.
            whose: Whose images they are, for the message: "the images {whose}".

        Raises:
            InputError: Images are needed and no folder is given, or they are others.
        """
        images, trunk = spec.conditions.images, spec.conditions.trunk
        key = (spec.dataset, images, trunk if trunk.frozen else None)
        if key not in self._opened:
            with as_input_errors():
                self._opened[key] = self._open(spec, choice, whose)
        return self._opened[key]

    def _open(self, spec: FoldSpec, choice: DataChoice, whose: str) -> Dataset:
        root, images, trunk = self.roots.get(choice.name), spec.conditions.images, spec.conditions.trunk
        if root is None and choice.name not in EMBEDDED:
            raise InputError(f"{choice.name}: give the folder of its images with --data FOLDER")
        dataset = open_dataset(DataRequest(choice, images, self.cache, root, self.progress))
        if dataset.fingerprint != spec.data_fingerprint:
            raise InputError(
                f"{root or choice.name}: not the images {whose} (data {dataset.fingerprint[:12]} instead of "
                f"{spec.data_fingerprint[:12]}); give their folder with --data"
            )
        if trunk.frozen:
            return with_features(dataset, FrozenTrunk(trunk, images), self.cache, self.device, self.progress)
        return dataset


def check_weights(spec: FoldSpec, weights: Path | None, fetching: Progress | None = None) -> None:
    """Find the trunk's weights, and download them if they are missing; raise InputError if they are others."""
    trunk = spec.conditions.trunk
    if trunk.name == NO_TRUNK:
        return
    with as_input_errors():
        settled = identified_trunk(trunk, weights, fetching)
    if settled.weights != trunk.weights:
        raise InputError(
            f"trunk {trunk.name}: the weights on this machine ({settled.weights}) are not those of the training "
            f"({trunk.weights}); name their file with --weights"
        )
