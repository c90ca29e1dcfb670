"""What all methods of a comparison share, so that none has better conditions than another."""

from dataclasses import dataclass

from pydantic import JsonValue

from protocols.datasets.dataset import Dataset
from protocols.folds import FoldData, TestData, fold_data, test_data
from protocols.splits import ClassSplit, as_ranges
from results.specs import FoldSpec, ImageSettings, MethodSpec, TrainingSettings, TrunkSpec
from results.values import derive_seed


@dataclass(frozen=True)
class Problem:
    """Data, split, network and training settings.

    folds: how many of the split's folds are trained, all of them under MLRC. seed: what all seeds derive from.
    """

    dataset: Dataset
    split: ClassSplit
    folds: int
    images: ImageSettings
    trunk: TrunkSpec
    embedding_size: int
    training: TrainingSettings
    seed: int

    def fold_specs(self, method: MethodSpec, purpose: str, number: int) -> tuple[FoldSpec, ...]:
        """One training per fold. Seeds depend on purpose ("search", "reproduction"), number and fold but not on the
        method: reproduction 3 of two methods starts from the same networks, so their scores can be paired.
        """
        return tuple(
            FoldSpec(
                dataset=self.dataset.name,
                data_fingerprint=self.dataset.fingerprint,
                split=self.split.name,
                fold=classes.fold,
                train_classes=as_ranges(classes.train),
                validation_classes=as_ranges(classes.validation),
                images=self.images,
                trunk=self.trunk,
                embedding_size=None if method.loss is None else self.embedding_size,
                method=method,
                training=self.training,
                seed=derive_seed(self.seed, purpose, number, classes.fold),
            )
            for classes in self.split.folds[: self.folds]
        )

    def fold_data(self, fold: int) -> FoldData:
        """Training and validation images of a fold."""
        return fold_data(self.dataset, self.split.folds[fold])

    def test_data(self) -> TestData:
        """Test images, for the evaluation of reproductions."""
        return test_data(self.dataset, self.split)

    def identity(self) -> dict[str, JsonValue]:
        """All that decides a study besides method and search."""
        return {
            "dataset": self.dataset.name,
            "data_fingerprint": self.dataset.fingerprint,
            "split": self.split.name,
            "folds": self.folds,
            "images": self.images.model_dump(mode="json"),
            "trunk": self.trunk.model_dump(mode="json"),
            "embedding_size": self.embedding_size,
            "training": self.training.model_dump(mode="json"),
            "seed": self.seed,
        }
