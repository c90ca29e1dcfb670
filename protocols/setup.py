"""The conditions that all methods of a comparison share: data, split, network, training settings and seeds."""

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from protocols.datasets.dataset import Dataset, FoldData, fold_data
from protocols.datasets.splits import ClassSplit, FoldClasses, SplitError, as_ranges, classes_of, is_drawn, trainval_of
from results.records.records import run_fingerprint
from results.spec.conditions import Conditions
from results.spec.method import Method
from results.spec.training_spec import FoldSpec
from results.values import derive_seed

Purpose = Literal["search", "reproduction"]
"""What a training is for: a trial of the search, or a reproduction of the best setting."""


def search_seed(seed: int, search: int) -> int:
    """Return the seed that all seeds of one search derive from; the first search has the experiment's seed itself."""
    return seed if search == 0 else derive_seed(seed, "searches", search)


@dataclass(frozen=True)
class Setup:
    """Data, split and conditions, equal for all methods of an experiment.

    Attributes:
        dataset: Images with class labels.
        split: Test classes, and training and validation classes of each fold.
        folds: Number of folds that are trained; MLRC trains all folds of the split.
        conditions: Images, network and training.
        seed: The seed that all other seeds derive from.
        metrics: Names of further test metrics.
        search: Number of the search, from 0. A repeated search and its reproductions have seeds of their own.
        reproduction_epochs: Most epochs of a reproduction, where it may train longer than a trial; None for as many.
    """

    dataset: Dataset
    split: ClassSplit
    folds: int
    conditions: Conditions
    seed: int
    metrics: tuple[str, ...] = ()
    search: int = 0
    reproduction_epochs: int | None = None

    def fold_specs(self, method: Method, purpose: Purpose, number: int) -> tuple[FoldSpec, ...]:
        """Specify one training per fold.

        The seeds depend on `purpose`, `number` and fold, but not on the method (specification, section 11, decision 6).
        So reproduction 3 of two methods starts from the same networks, and their scores can be paired.

        Args:
            method: The method with its hyperparameters.
            purpose: What the trainings are for.
            number: Number of the trial or of the reproduction, from 0.
        """
        return tuple(self._spec(method, classes, purpose, number) for classes in self.split.folds[: self.folds])

    def final_spec(self, method: Method, number: int, epoch: int) -> FoldSpec:
        """Specify the training on all training and validation classes of the first fold.

        Args:
            method: The method with its hyperparameters.
            number: Number of the reproduction, from 0; it decides the seed.
            epoch: The epoch whose weights are the model, chosen by earlier trainings.
        """
        first = self.split.folds[0]
        classes = FoldClasses(first.fold, trainval_of(first), ())
        return self._spec(method, classes, "reproduction", number, epoch)

    def example(self, method: Method, classes: FoldClasses) -> FoldSpec:
        """Specify a training on some classes, for a rehearsal; one without validation classes has the last epoch."""
        epoch = None if classes.validation else self.conditions.training.max_epochs
        return self._spec(method, classes, "reproduction", 0, epoch)

    def _spec(
        self, method: Method, classes: FoldClasses, purpose: Purpose, number: int, epoch: int | None = None
    ) -> FoldSpec:
        drawn, trials = is_drawn(self.split.name), self.conditions
        conditions = self.conditions_of(method, purpose) if epoch is None else trials
        return FoldSpec(
            dataset=self.dataset.name,
            data_fingerprint=self.dataset.fingerprint,
            split=self.split.name,
            fold=classes.fold,
            train_classes=() if drawn else as_ranges(classes.train),
            validation_classes=() if drawn else as_ranges(classes.validation),
            n_classes=self.dataset.n_classes if drawn else None,
            method=method,
            conditions=conditions,
            early_epoch=None if conditions is trials else trials.training.max_epochs,
            seed=derive_seed(search_seed(self.seed, self.search), purpose, number, classes.fold),
            checkpoint_epoch=epoch,
        )

    def conditions_of(self, method: Method, purpose: Purpose) -> Conditions:
        """The conditions of a method's trainings: its reproductions may have more epochs than its trials."""
        training = self.conditions.training
        most = self.reproduction_epochs or training.max_epochs
        if purpose == "search" or method.loss is None or most <= training.max_epochs:
            return self.conditions
        longer = training.model_copy(update={"max_epochs": most})
        return self.conditions.model_copy(update={"training": longer})

    def run_fingerprint(self, specs: tuple[FoldSpec, ...], chosen_by: tuple[str, ...] = ()) -> str:
        """Fingerprint of the test evaluation of the models that these trainings make.

        Args:
            specs: The trainings.
            chosen_by: Fingerprints of the trainings that chose the epoch of the models.
        """
        return run_fingerprint(tuple(spec.fingerprint for spec in specs), self.metrics, chosen_by)

    def training_data(self, spec: FoldSpec) -> FoldData:
        """Select the images, or their features, that a training may see.

        Raises:
            SplitError: The specification names a test class for training or validation.
        """
        if leaked := set(self.split.test).intersection(trainval_of(classes_of(spec))):
            raise SplitError(f"fold {spec.fold}: test class {min(leaked)} is used for training or validation")
        return fold_data(self.dataset, spec)

    def identity(self) -> dict[str, JsonValue]:
        """All that decides a study, except the method; part of the study's fingerprint."""
        return {
            "dataset": self.dataset.name,
            "data_fingerprint": self.dataset.fingerprint,
            "split": self.split.name,
            "folds": self.folds,
            "conditions": self.conditions.identity(),
            "seed": search_seed(self.seed, self.search),
        }
