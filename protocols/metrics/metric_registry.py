"""The further test metrics that an experiment can name: those below, and functions of users' files and modules.

A user's metric gets `embeddings` (n, d), a float32 tensor on the CPU with the normalised embeddings of the test images,
and `labels` (n,), an int64 tensor with their classes. It returns a float, where higher or lower may be better. Queries
and gallery are one set.
"""

import inspect
import math
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from protocols.machine.torch_state import exact_products
from protocols.metrics.neighbours import checked
from protocols.metrics.retrieval import query_scores
from protocols.metrics.structure import class_concentration_variance, density, spectral_decay, uniformity
from protocols.users_code.sources import SourceError, explained, hashed_name, load_source
from results.spec.component import SourceName

_NMI_SEED, _NMI_ITERATIONS = 1234, 20


def nmi(embeddings: Tensor, labels: Tensor) -> float:
    """Compute the normalised mutual information of the classes and of as many k-means clusters.

    NMI = 2 I(clusters; classes) / (H(clusters) + H(classes)). The mean of the two entropies normalises, as in
    scikit-learn and the papers. The k-means is that of Roth et al. (2020), which the tables of ProxyGML and NIR follow:
    that of faiss on a CPU, with one start, 20 iterations and all images. The seed is fixed, so equal embeddings give an
    equal value.

    Args:
        embeddings: (n, d), normalised.
        labels: (n,), the classes.

    Returns:
        The NMI, in [0, 1].

    Raises:
        ValueError: An embedding is not finite.
    """
    # Imported here because faiss is an extra, and scikit-learn takes seconds.
    import faiss
    from sklearn.metrics import normalized_mutual_info_score

    points = checked(embeddings).float().cpu().contiguous().numpy()
    faiss.omp_set_num_threads(torch.get_num_threads())
    sizes = {"min_points_per_centroid": 1, "max_points_per_centroid": len(points)}
    means = faiss.Kmeans(points.shape[1], len(labels.unique()), niter=_NMI_ITERATIONS, seed=_NMI_SEED, **sizes)
    means.train(points)
    clusters = means.assign(points)[1]
    return float(normalized_mutual_info_score(labels.cpu().numpy(), clusters, average_method="arithmetic"))


_RECALL = re.compile(r"recall@([1-9][0-9]*)")
_MAP_DEPTHS = {"map@1000": 1000}
_OF_A_SET: dict[str, Callable[[Tensor, Tensor], float]] = {
    "nmi": nmi,
    "spectral_decay": lambda embeddings, labels: spectral_decay(embeddings),
    "density": density,
    "uniformity": lambda embeddings, labels: uniformity(embeddings),
    "class_concentration_variance": class_concentration_variance,
}


def check_metric_names(names: Sequence[str]) -> None:
    """Check that metric names are known and different."""
    for position, name in enumerate(names):
        if (source := SourceName.parse(name)) is not None:
            if source.digest is None:
                hashed_name(name, try_metric)
            else:
                try_metric(source)
        elif not (_RECALL.fullmatch(name) or name in _MAP_DEPTHS or name in _OF_A_SET):
            known = ", ".join(["recall@K (any K, such as recall@2)", *_MAP_DEPTHS, *_OF_A_SET])
            raise ValueError(
                f"metric {name!r} is not known; known are {known}, and functions of your own such as "
                "./my_metrics.py:my_function, with the path relative to the experiment file"
            )
        if name == "nmi" and find_spec("faiss") is None:
            raise ValueError("metric 'nmi' clusters with faiss, which is not installed; run `pip install faiss-cpu`")
        if name in names[:position]:
            raise ValueError(f"metric {name!r} is named twice")


@exact_products()
def measure(
    names: Sequence[str], embeddings: Tensor, labels: Tensor, is_query: NDArray[np.bool_] | None
) -> dict[str, float]:
    """Compute further metrics by name. All retrieval metrics share one search for neighbours.

    Args:
        names: Names of the metrics, which `check_metric_names` takes.
        embeddings: (n, d), normalised.
        labels: (n,), the classes.
        is_query: (n,), for retrieval metrics: whether an image is a query; the others are the gallery. None compares
            all images with one another. The other metrics use all images as one set.

    Returns:
        Values by name, in the order of `names`.

    Raises:
        ValueError: A metric is not defined for these embeddings.
    """
    recall_at = {name: int(match[1]) for name in names if (match := _RECALL.fullmatch(name))}
    map_at = {name: _MAP_DEPTHS[name] for name in names if name in _MAP_DEPTHS}
    measured = {name: _OF_A_SET[name](embeddings, labels) for name in names if name in _OF_A_SET}
    for name in names:
        if (source := SourceName.parse(name)) is not None:
            measured[name] = _value_of_source(source, embeddings, labels)
    if recall_at or map_at:
        scores = query_scores(
            embeddings, labels, is_query, recall_at=tuple(recall_at.values()), map_at=tuple(map_at.values())
        )
        measured |= {name: scores.recall_at[k].mean().item() for name, k in recall_at.items()}
        measured |= {name: scores.map_at[k].mean().item() for name, k in map_at.items()}
    return {name: measured[name] for name in names}


def _value_of_source(name: SourceName, embeddings: Tensor, labels: Tensor) -> float:
    """Compute a user's metric of normalised embeddings (n, d) and their classes (n,)."""
    value = _called(name, embeddings, labels)
    if not math.isfinite(value):
        raise SourceError(f"{name} returned {value}; a metric must return a finite number")
    return value


def try_metric(name: SourceName) -> None:
    """Call a user's metric on a few random embeddings, whose value does not matter."""
    embeddings = functional.normalize(torch.randn(16, 4, generator=torch.Generator().manual_seed(0)))
    _called(name, embeddings, torch.arange(4).repeat(4))


def _called(name: SourceName, embeddings: Tensor, labels: Tensor) -> float:
    function = load_source(name)
    if not callable(function) or inspect.isclass(function):
        raise SourceError(f"{name}: a metric must be a function of (embeddings, labels) that returns a number")
    with explained(function, f"metric {name.attribute} fails"):
        value: Any = function(embeddings.detach().cpu().clone(), labels.cpu().clone())
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, float | int | np.floating | np.integer):
        raise SourceError(f"{name} must return a number such as a float, got {type(value).__name__}")
    return float(value)
