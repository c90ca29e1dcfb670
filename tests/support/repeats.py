"""Reference for paired blocks and folds: loops over pairs, one table at a time, numpy and scipy only."""

import math

import numpy as np
from scipy import stats


def holm(p, share=0.75):
    """Holm's factors, none below half of the pairs; `share` of the level is for "better"."""
    count, worst, out = len(p), 0.0, [1.0] * len(p)
    for place, i in enumerate(sorted(range(count), key=lambda i: p[i])):
        worst = max(worst, min(1.0, p[i] * max(count - place, count / 2) / share))
        out[i] = worst
    return out


def paired(values, test_share=0.0):
    """First, second, difference, half width, p and adjusted p of each pair.

    `values` are numbers by method in the order of the blocks; `test_share` is 1 / folds, 0 for independent blocks.
    """
    names = list(values)
    x = np.array([values[name] for name in names], float)
    k, b = x.shape
    residuals = x - x.mean(1, keepdims=True) - x.mean(0, keepdims=True) + x.mean()
    pooled = (residuals**2).sum() / ((k - 1) * (b - 1))
    per_mean = 1 / b + test_share / (1 - test_share)
    pairs = []
    for i in range(k):
        for j in range(i + 1, k):
            d = x[i] - x[j]
            own = d.var(ddof=1)
            if k == 2:
                square, degrees = own * per_mean, b - 1
            else:
                square = (1 + 1 / (b - 1) ** 2) * max(own, 2 * pooled) * per_mean
                degrees = min((k - 1) * (b - 1), 40)
            t = d.mean() / math.sqrt(square)
            half = stats.t.ppf(0.975, degrees) * math.sqrt(square)
            pairs.append((names[i], names[j], d.mean(), half, 2 * stats.t.sf(abs(t), degrees)))
    return [(*pair, adjusted) for pair, adjusted in zip(pairs, holm([pair[-1] for pair in pairs]), strict=True)]
