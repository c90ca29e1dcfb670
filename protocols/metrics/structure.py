"""Four metrics of the structure of an embedding space, as in Table 3 of the NIR paper (section 4.4).

The paper names the metrics and cites their sources; the formulas below are those of the cited authors' code. Distances
are cosine distances, 1 - cos, between images and between the classes' normalised centres, as in the code of Roth et
al., Revisiting Training Strategies and Generalization Performance in Deep Metric Learning (2020), metrics/dists.py.
The table supports this: in all its rows the density is 1.8 times the class concentration. This ratio is possible for
cosine distances (1 + m, with m the length of a class's mean unit vector), but not for Euclidean ones (1.42 at most).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from protocols.metrics.neighbours import checked
from protocols.metrics.retrieval import normalized

PAIR_ELEMENTS = 1 << 22
"""Largest number of pairs in memory at once; 2^22 float32 are 16 MiB."""

_TEMPERATURE = 2.0
_SINGLE = torch.finfo(torch.float32).eps


def spectral_decay(embeddings: Tensor) -> float:
    """Compute the KL divergence of a flat spectrum from the spectrum of singular values.

    sum over i of (1/m) log((1/m) / p_i) with p = s / sum(s), where s are the m = min(n, d) singular values of the
    embeddings, which are not centred. This is `rho_spectrum@1` of Roth et al. (2020), the value that their paper
    reports. Singular values below the largest one times the precision of float32 are set to this product: smaller ones
    cannot be measured, and a zero would make the result infinite.

    Args:
        embeddings: (n, d), normalised.

    Returns:
        The divergence in nats; 0 if all singular values are equal.

    Raises:
        ValueError: An embedding is not finite.
    """
    embeddings = checked(embeddings)
    spectrum = torch.linalg.svdvals(embeddings.double())
    # The 1e-300 makes the spectrum of embeddings that are all zero flat.
    spectrum = spectrum.clamp_min(max(float(spectrum[0]) * _SINGLE, 1e-300))
    share = spectrum / spectrum.sum()
    return float(-torch.log(share * len(share)).mean())


def uniformity(embeddings: Tensor) -> float:
    """Compute the mean Gaussian potential of all pairs of images, `exp(-2 |x - y|^2)`.

    Source: Wang and Isola, Understanding Contrastive Representation Learning through Alignment and Uniformity (2020),
    section 4.1.2, with t = 2. They report its logarithm. NIR's values, 0.07 to 0.08, are positive, so they are the mean
    itself.

    Args:
        embeddings: (n, d), normalised.

    Returns:
        The mean potential; low if the images are spread over the sphere.

    Raises:
        ValueError: An embedding is not finite.
    """
    embeddings = checked(embeddings)
    n = len(embeddings)
    squares = embeddings.square().sum(1)
    total, first = 0.0, 0
    for part in embeddings.split(max(1, PAIR_ELEMENTS // n)):
        # Each pair counts once: columns start at the part's first row, and only entries above the diagonal are summed.
        distances = squares[first : first + len(part), None] + squares[first:] - 2 * part @ embeddings[first:].T
        potential = torch.exp(-_TEMPERATURE * distances.clamp_min(0)).double()
        total += float(potential.triu(1).sum())
        first += len(part)
    return total / (n * (n - 1) / 2)


def density(embeddings: Tensor, labels: Tensor) -> float:
    """Compute the mean distance within classes divided by the mean distance between class centres.

    This is pi_ratio of Roth et al. (2020), `dists@intra_over_inter`. Within classes: mean over classes of the mean
    distance of a class's pairs; classes of a single image are left out. Between: mean over pairs of centres.

    Args:
        embeddings: (n, d).
        labels: (n,), the classes.

    Returns:
        The ratio of cosine distances; higher if the images of a class are farther apart.

    Raises:
        ValueError: There are fewer than two classes, or an embedding is not finite.
    """
    classes = _classes(embeddings, labels)
    has_pairs = classes.sizes > 1
    pairs = classes.sizes * (classes.sizes - 1)
    # The products of all ordered pairs of different images sum to |sum of x|^2 minus the sum of |x|^2.
    products = classes.sums.square().sum(1) - classes.squares
    within = (1 - products[has_pairs] / pairs[has_pairs]).mean()
    return float(within / classes.between())


def class_concentration_variance(embeddings: Tensor, labels: Tensor) -> float:
    """Compute the mean distance to the class centre divided by the mean distance between centres, mean over classes.

    NIR: "variance of class-concentrations approximated by the mean distances to the class centers of mass (relative to
    the mean interclass distance)". Taken literally, the metric is the mean, not a variance over classes. A variance
    over classes could hardly reach the published 0.32 to 0.44.

    Args:
        embeddings: (n, d).
        labels: (n,), the classes.

    Returns:
        The ratio of cosine distances.

    Raises:
        ValueError: There are fewer than two classes, or an embedding is not finite.
    """
    classes = _classes(embeddings, labels)
    to_centre = 1 - (classes.sums * classes.centres).sum(1) / classes.sizes
    return float(to_centre.mean() / classes.between())


@dataclass(frozen=True)
class _Classes:
    """For each of c classes: number of images (c,), sum of their unit vectors (c, d), sum of the squared norms (c,)."""

    sizes: Tensor
    sums: Tensor
    squares: Tensor

    @property
    def centres(self) -> Tensor:
        return normalized(self.sums)

    def between(self) -> Tensor:
        """Mean distance of two centres, at least 1e-8 so that it can divide (as in the authors' code)."""
        centres, c = self.centres, len(self.sizes)
        products = centres.sum(0).square().sum() - centres.square().sum()
        return (1 - products / (c * (c - 1))).clamp_min(1e-8)


def _classes(embeddings: Tensor, labels: Tensor) -> _Classes:
    embeddings = checked(embeddings)
    values, class_index = labels.to(embeddings.device).unique(return_inverse=True)
    if len(values) < 2:
        raise ValueError("distances between classes need two classes or more")
    units = normalized(embeddings.double())
    sums = torch.zeros(len(values), units.shape[1], dtype=torch.float64, device=units.device)
    sums.index_add_(0, class_index, units)
    squares = torch.zeros_like(sums[:, 0]).index_add(0, class_index, units.square().sum(1))
    return _Classes(torch.bincount(class_index), sums, squares)
