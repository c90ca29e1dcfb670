"""What all methods of a comparison share, so that none has better conditions than another."""

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from protocols.datasets.dataset import Dataset
from protocols.splits import ClassSplit, FoldClasses, SplitError, as_ranges, from_ranges
from protocols.training.fold_data import FoldData, fold_data
from results.records import run_fingerprint
from results.training_spec import FoldSpec, ImageSettings, MethodSpec, TrainingSettings, TrunkSpec
from results.values import derive_seed


@dataclass(frozen=True)
class Problem:
    """Data, split, network and training settings.

    folds: how many of the split's folds are trained, all of them under MLRC. seed: what all seeds derive from.
    metrics: further test metrics, by name. normalization: of all methods' embeddings before they are compared; None
    takes what each loss asks for.
    """

    dataset: Dataset
    split: ClassSplit
    folds: int
    images: ImageSettings
    trunk: TrunkSpec
    embedding_size: int
    training: TrainingSettings
    seed: int
    embedder_bias: bool = True
    metrics: tuple[str, ...] = ()
    normalization: Literal["unit", "ball"] | None = None

    def fold_specs(self, method: MethodSpec, purpose: str, number: int) -> tuple[FoldSpec, ...]:
        """One training per fold. Seeds depend on purpose ("search", "reproduction"), number and fold but not on the
        method: reproduction 3 of two methods starts from the same networks, so their scores can be paired.
        """
        return tuple(self._spec(method, classes, purpose, number) for classes in self.split.folds[: self.folds])

    def final_spec(self, method: MethodSpec, number: int, epoch: int) -> FoldSpec:
        """The training on all classes but the test's, from the seed of reproduction `number`; its model is the one
        after `epoch`, which was chosen before.
        """
        spec = self._spec(method, self.split.folds[0], "reproduction", number)
        everything = tuple(sorted({*self.split.folds[0].train, *self.split.folds[0].validation}))
        settled = {"train_classes": as_ranges(everything), "validation_classes": (), "checkpoint_epoch": epoch}
        return FoldSpec.model_validate({**dict(spec), **settled})

    def _spec(self, method: MethodSpec, classes: FoldClasses, purpose: str, number: int) -> FoldSpec:
        return FoldSpec(
            dataset=self.dataset.name,
            data_fingerprint=self.dataset.fingerprint,
            split=self.split.name,
            fold=classes.fold,
            train_classes=as_ranges(classes.train),
            validation_classes=as_ranges(classes.validation),
            images=self.images,
            trunk=self.trunk,
            embedding_size=None if method.loss is None else self.embedding_size,
            embedder_bias=self.embedder_bias,
            method=method,
            training=self.training,
            seed=derive_seed(self.seed, purpose, number, classes.fold),
            normalization=self.normalization,
        )

    def run_name(self, specs: tuple[FoldSpec, ...]) -> str:
        """The fingerprint of the test of these trainings' models."""
        return run_fingerprint(tuple(spec.fingerprint for spec in specs), self.metrics)

    def training_data(self, spec: FoldSpec) -> FoldData:
        """The images that a training may see; raises SplitError if it names a test class."""
        train, validation = from_ranges(spec.train_classes), from_ranges(spec.validation_classes)
        if leaked := set(self.split.test) & {*train, *validation}:
            raise SplitError(f"fold {spec.fold}: test class {min(leaked)} is named for training or validation")
        return fold_data(self.dataset, FoldClasses(spec.fold, train, validation))

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
            # Said only where it is not the usual, so that studies keep their names.
            **({} if self.embedder_bias else {"embedder_bias": False}),
            **({} if self.normalization is None else {"normalization": self.normalization}),
        }
