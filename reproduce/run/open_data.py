"""Opens the images or features of experiments and of stored trainings; each is opened once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from protocols.datasets.dataset import DataRequest, Dataset
from protocols.datasets.dataset_registry import DATASETS, open_dataset
from protocols.datasets.published import stand_in
from protocols.images.packing import Progress
from protocols.trunks.frozen_features import with_features
from protocols.trunks.trunk_registry import identified_trunk
from reproduce.errors import InputError
from reproduce.run.devices import use_gpu
from reproduce.run.progress import Bars
from reproduce.storage import StoragePaths
from results.spec.conditions import ImageSettings
from results.spec.data_choice import EMBEDDED, DataChoice, samples_word
from results.spec.experiment_spec import Experiment
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import NO_TRUNK, TrunkSpec


def needs_folder(experiment: Experiment) -> bool:
    """Return whether the experiment needs a folder of images or features and has none yet."""
    dataset = experiment.dataset
    return dataset.name in DATASETS and dataset.name not in EMBEDDED and dataset.root is None


@dataclass(frozen=True)
class OpenedData:
    """The datasets as the rows of experiments see them.

    Attributes:
        outline: Whether published counts replace images without a folder, and no features are computed.
        roots: Folder of each dataset of stored trainings, by its name; None where none is given.
    """

    where: StoragePaths
    device: str = "cpu"
    bars: Bars | None = None
    outline: bool = False
    roots: Mapping[str, Path | None] = field(default_factory=dict)
    _opened: dict[tuple[DataChoice, int | None], Dataset] = field(default_factory=dict)
    _featured: dict[tuple[DataChoice, TrunkSpec, ImageSettings], Dataset] = field(default_factory=dict)

    def bar(self, what: str) -> Progress | None:
        """Return a function that moves a bar, if there are any."""
        return self.bars.of(what) if self.bars else None

    def images(self, row: Experiment) -> Dataset:
        """Return the dataset as its folder or file has it, or its outline."""
        key = (row.dataset, row.conditions.images.resize)
        if key not in self._opened:
            if self.outline and needs_folder(row) and (publication := DATASETS[row.dataset.name].publication):
                self._opened[key] = stand_in(row.dataset.name, publication)
            else:
                images, reading = row.conditions.images, self.bar("reading images")
                request = DataRequest(row.dataset, images, self.where.cache, reading)
                self._opened[key] = open_dataset(request)
        return self._opened[key]

    def seen_by(self, row: Experiment) -> Dataset:
        """Return the dataset that trainings read: with features in place of images if the trunk is frozen."""
        trunk, images = row.conditions.trunk, row.conditions.images
        if not trunk.frozen or self.outline:
            return self.images(row)
        key = (row.dataset, trunk, images)
        if key not in self._featured:
            use_gpu(self.device)
            computing = self.bar("computing the features of the frozen trunk")
            where = self.where.cache, self.device
            self._featured[key] = with_features(self.images(row), trunk, images, *where, computing)
        return self._featured[key]

    def of_training(self, spec: FoldSpec, settings: Experiment, whose: str) -> Dataset:
        """Return the data of a stored training of an experiment; messages say "the images {whose}".

        Raises:
            InputError: Images are needed and no folder is given, or they are others.
        """
        choice = settings.dataset.model_copy(update={"root": self.roots.get(settings.dataset.name)})
        row = settings.model_copy(update={"dataset": choice, "conditions": spec.conditions})
        if needs_folder(row):
            raise InputError(f"{choice.name}: give the folder of its {samples_word(choice.name)} with --data FOLDER")
        dataset = self.images(row)
        if dataset.fingerprint != spec.data_fingerprint:
            raise InputError(
                f"{choice.root or choice.name}: not the images {whose} (data {dataset.fingerprint[:12]} instead of "
                f"{spec.data_fingerprint[:12]}); give their folder with --data"
            )
        return self.seen_by(row)


def check_weights(spec: FoldSpec, weights: Path | None) -> None:
    """Find the trunk's weights, and download them if they are missing; raise InputError if they are others."""
    trunk = spec.conditions.trunk
    if trunk.name == NO_TRUNK:
        return
    settled = identified_trunk(trunk, weights)
    if settled.weights != trunk.weights:
        raise InputError(
            f"trunk {trunk.name}: the weights on this machine ({settled.weights}) are not those of the training "
            f"({trunk.weights}); name their file with --weights"
        )
