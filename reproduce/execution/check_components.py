"""Refuses an embedder of principal components that the training images of a fold do not have."""

from protocols.problem import Problem
from reproduce.errors import InputError
from results.feature_settings import samples_word
from results.training_spec import MethodSpec


def check_components(problem: Problem, method: MethodSpec) -> None:
    """Check that every fold has enough training images for the principal components that the embedder starts from.

    A training would notice too, but only after the features of all images are computed.

    Args:
        problem: The problem with its folds.
        method: The method to train on it.

    Raises:
        InputError: A fold has too few training images.
    """
    starts_from_them = method.loss is not None and problem.embedder.init == "pca"
    if method.embedder != "principal_components" and not starts_from_them:
        return
    images = problem.dataset.images
    fewest = min(len(images.of_classes(fold.train)) for fold in problem.split.folds[: problem.folds])
    # The centred features of n images span at most n - 1 directions.
    if problem.embedding_size > fewest - 1:
        samples = samples_word(problem.dataset.name)
        raise InputError(
            f"{method.name}: a fold has only {fewest} training {samples}, which have at most {fewest - 1} principal "
            f"components, fewer than the {problem.embedding_size} dimensions of the embedding; give --embedding-size "
            f"{max(1, fewest - 1)} or less, or more {samples}"
        )
