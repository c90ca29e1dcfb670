"""The training of a model on all classes of a dataset, to be used and not to be tested.

It sees the test classes. A search or a table takes a `FoldResult`, as does the store, and this module returns none.
"""

from collections.abc import Callable

from protocols.datasets.dataset import Dataset, FoldData
from protocols.datasets.splits import as_ranges
from protocols.training.train_fold import TrainedFold, train_fold
from results.spec.training_spec import TRAINING_VERSION, FoldSpec


def fit(
    like: FoldSpec,
    epochs: int,
    dataset: Dataset,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> TrainedFold:
    """Train a model on all classes.

    Args:
        like: A training of a fold with the same method, setting, network and seed.
        epochs: Number of epochs to train; 0 for a method without a loss.
        dataset: The data that `like` was trained on, with features in place of images for a frozen trunk.
        device: `cpu`, `cuda` or `cuda:N`.
        progress: Called with the number of iterations that are done, and that of all.

    Returns:
        The training and its state dict after the last epoch, on the CPU.

    Raises:
        MethodError: The loss or the miner cannot be built.
        TrunkError: The trunk or its weights are not on this machine.
    """
    classes = tuple(range(dataset.n_classes))
    data = FoldData(dataset.images.of_classes(classes), dataset.images.of_classes(()))
    training = like.conditions.training.model_copy(update={"max_epochs": max(1, epochs)})
    total = training.max_epochs * training.steps_per_epoch(len(data.train.labels))
    whole = like.with_conditions(training=training).changed(
        training_version=TRAINING_VERSION,
        split="all",
        train_classes=as_ranges(classes),
        validation_classes=(),
        n_classes=None,
        checkpoint_epoch=epochs,
    )
    return train_fold(
        whole,
        data,
        device=device,
        observe=None if progress is None else lambda _, iterations: progress(iterations, total),
    )
