"""Four figures on the shape of an embedding space, as Table 3 of the NIR paper (section 4.4) prints them.

The paper names them and cites where they come from; the formulas below are those of the cited authors' code. Distances
are cosine distances, 1 - cos, between images and between the classes' normalised centres, as in the code of Roth et
al., Revisiting Training Strategies and Generalization Performance in Deep Metric Learning (2020), metrics/dists.py.
The table agrees: in all its rows the density is 1.8 times the class concentration, which cosine distances allow (1 + m,
with m the length of a class's mean unit vector) and Euclidean ones do not (1.42 at most).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from protocols.metrics.retrieval import normalized

PAIR_ELEMENTS = 1 << 22
"""Pairs held at once; 2^22 float32 are 16 MiB."""

_TEMPERATURE = 2.0
_SINGLE = torch.finfo(torch.float32).eps


def spectral_decay(embeddings: Tensor) -> float:
    """KL divergence, in nats, of the singular-value spectrum from a flat one: 0 if all directions carry as much.

    sum over i of (1/m) log((1/m) / p_i) with p = s / sum(s) the m = min(n, d) singular values of the embeddings (n, d),
    not centred: `rho_spectrum@1` of Roth et al. (2020), the figure of that paper by their own account. Singular values
    below single precision times the largest count as that much, since none is known to be smaller and a zero would make
    the figure infinite.
    """
    _require_finite(embeddings)
    spectrum = torch.linalg.svdvals(embeddings.double())
    # The 1e-300 is for embeddings that are all zero, whose spectrum is flat.
    spectrum = spectrum.clamp_min(max(float(spectrum[0]) * _SINGLE, 1e-300))
    share = spectrum / spectrum.sum()
    return float(-torch.log(share * len(share)).mean())


def uniformity(embeddings: Tensor) -> float:
    """Mean Gaussian potential of all pairs of images, `exp(-2 |x - y|^2)`: low if they spread over the sphere.

    Wang and Isola, Understanding Contrastive Representation Learning through Alignment and Uniformity (2020), section
    4.1.2, with their t = 2. They take its logarithm; NIR's figures, 0.07 to 0.08, are positive, so the mean itself.
    Embeddings (n, d), normalised. Raises ValueError for a single image.
    """
    _require_finite(embeddings)
    n = len(embeddings)
    if n < 2:
        raise ValueError("uniformity needs two images or more")
    squares = embeddings.square().sum(1)
    total, first = 0.0, 0
    for part in embeddings.split(max(1, PAIR_ELEMENTS // n)):
        # Each pair once: from the block's own rows on; the lower left of the block's own square is left out.
        distances = squares[first : first + len(part), None] + squares[first:] - 2 * part @ embeddings[first:].T
        potential = torch.exp(-_TEMPERATURE * distances.clamp_min(0)).double()
        total += float(potential.triu(1).sum())
        first += len(part)
    return total / (n * (n - 1) / 2)


def density(embeddings: Tensor, labels: Tensor) -> float:
    """Mean distance within classes over mean distance between class centres: higher means classes less tightly packed.

    pi_ratio of Roth et al. (2020), `dists@intra_over_inter`. Within: mean over classes of the mean distance of their
    pairs; classes of a single image have none and are left out. Between: mean over pairs of centres. Raises ValueError
    without two classes or without a class of two images.
    """
    classes = _classes(embeddings, labels)
    several = classes.sizes > 1
    if not several.any():
        raise ValueError("density needs a class of two images or more")
    pairs = classes.sizes * (classes.sizes - 1)
    # Of the ordered pairs, the products sum to |sum of x|^2 less what every image has with itself.
    products = classes.sums.square().sum(1) - classes.squares
    within = (1 - products[several] / pairs[several]).mean()
    return float(within / classes.between())


def class_concentration_variance(embeddings: Tensor, labels: Tensor) -> float:
    """Mean distance of images to the centre of their class over the mean distance between centres; mean over classes.

    NIR: "variance of class-concentrations approximated by the mean distances to the class centers of mass (relative to
    the mean interclass distance)". Read as it stands, the mean is the figure and no variance over classes is taken.
    A variance over classes could hardly reach the printed 0.32 to 0.44. Raises ValueError without two classes.
    """
    classes = _classes(embeddings, labels)
    to_centre = 1 - (classes.sums * classes.centres).sum(1) / classes.sizes
    return float(to_centre.mean() / classes.between())


@dataclass(frozen=True)
class _Classes:
    """Of c classes: number of images (c,), sum of their unit vectors (c, d) and of those' squared norms (c,)."""

    sizes: Tensor
    sums: Tensor
    squares: Tensor

    @property
    def centres(self) -> Tensor:
        return normalized(self.sums)

    def between(self) -> Tensor:
        """Mean distance of two centres; never quite 0, so that it can divide (as the authors' code has it)."""
        centres, c = self.centres, len(self.sizes)
        products = centres.sum(0).square().sum() - centres.square().sum()
        return (1 - products / (c * (c - 1))).clamp_min(1e-8)


def _classes(embeddings: Tensor, labels: Tensor) -> _Classes:
    _require_finite(embeddings)
    values, place = labels.to(embeddings.device).unique(return_inverse=True)
    if len(values) < 2:
        raise ValueError("distances between classes need two classes or more")
    units = normalized(embeddings.double())
    sums = torch.zeros(len(values), units.shape[1], dtype=torch.float64, device=units.device).index_add(0, place, units)
    squares = torch.zeros_like(sums[:, 0]).index_add(0, place, units.square().sum(1))
    return _Classes(torch.bincount(place), sums, squares)


def _require_finite(embeddings: Tensor) -> None:
    if not torch.isfinite(embeddings).all():
        raise ValueError("embeddings are not finite")
