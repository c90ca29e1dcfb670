"""Checks, before anything is computed, that there are images enough for the principal components of a method."""

from protocols.problem import Problem
from reproduce.errors import InputError
from results.spec.data_choice import samples_word
from results.spec.training_spec import MethodSpec


def check_components(problem: Problem, method: MethodSpec) -> None:
    """Check that there are enough images for the principal components of a method or of the embedder's start.

    A training or test would notice too, but only after the features of all images are computed.
    """
    if method.embedder == "test_components":
        tested = len(problem.dataset.images.of_classes(problem.split.test))
        if problem.embedding_size * problem.folds > tested - 1:
            samples = samples_word(problem.dataset.name)
            raise InputError(
                f"{method.name}: {tested} test {samples} have at most {tested - 1} principal components, fewer than "
                f"the {problem.embedding_size * problem.folds} dimensions of all folds together; give a smaller "
                f"--embedding-size, or leave out {method.name}"
            )
        return
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
