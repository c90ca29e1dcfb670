"""Independent reference of the comparison of searches: loops, one table at a time, numpy and scipy only."""

import math

import numpy as np
from scipy import stats


def consistent(count):
    """Median absolute deviation from the median of normal values; for odd numbers without the zero."""
    values = np.random.default_rng(1).standard_normal((200_000, count))
    parts = np.sort(np.abs(values - np.median(values, 1, keepdims=True)), 1)
    return float(np.median(parts[:, 1:] if count % 2 else parts))


CONSISTENT = {count: consistent(count) for count in range(3, 9)}


def set_aside(values, half=True):
    """Which values of each method failed; `half` is for the suite's own searches only."""
    parts = []
    for own in values.values():
        if len(own) > 2:
            deviations = np.sort(np.abs(np.asarray(own) - np.median(own)))
            parts.append((deviations[1:] if len(own) % 2 else deviations) / CONSISTENT[len(own)])
    parts = np.concatenate(parts) if parts else np.array([])
    found = {}
    for name, own in values.items():
        own = np.asarray(own, float)
        low = np.zeros(len(own), bool)
        if len(own) > 2 and len(parts) and np.median(parts) > 0:
            width = (1 + 4 / len(parts)) * np.median(parts)
            low = own < np.median(own) - 10 * width
            if half and own.max() > 0:
                low |= (own < own.max() / 2) & (own < np.median(own) - 3 * width)
            if low.any() and not own[~low].min() - own[low].max() > 1.5 * np.ptp(own[~low]):
                low[:] = False
        if 2 * low.sum() >= len(own):
            low[:] = False
        found[name] = low
    return found


def compare(values, alpha=0.05, half=True):
    """Means, half widths, claims and ranks of all pairs; both means of a claim agree."""
    low = set_aside(values, half)
    kept = {name: np.asarray(own, float)[~low[name]] for name, own in values.items()}
    variances = {name: float(np.var(own, ddof=1)) if len(own) > 1 else 0.0 for name, own in kept.items()}
    degrees = {name: len(own) - 1 for name, own in kept.items()}
    pooled = sum(degrees[name] * variances[name] for name in kept) / sum(degrees.values())
    freedom = min(sum(degrees.values()), 40)
    squares = {
        name: (1 + 1 / degrees[name] ** 2) * max(variances[name], pooled) / len(own) for name, own in kept.items()
    }
    names, pairs = list(values), []
    for number, a in enumerate(names):
        for b in names[number + 1 :]:
            difference, error = kept[a].mean() - kept[b].mean(), math.sqrt(squares[a] + squares[b])
            pairs.append((a, b, difference, 2 * stats.t.sf(abs(difference) / error, freedom)))
    worst, claims = 0.0, set()
    for rank, (a, b, difference, p) in enumerate(sorted(pairs, key=lambda pair: pair[3])):
        worst = max(worst, min(1, p * max(len(pairs) - rank, len(pairs) / 2) / 0.75))
        turned = difference * (np.mean(values[a]) - np.mean(values[b])) < 0
        if worst < alpha and not turned:
            claims.add((a, b) if difference > 0 else (b, a))
    return {
        "failed": {name: tuple(np.asarray(own, float)[low[name]]) for name, own in values.items() if low[name].any()},
        "means": {name: own.mean() for name, own in kept.items()},
        "half widths": {name: stats.t.ppf(0.975, freedom) * math.sqrt(square) for name, square in squares.items()},
        "claims": claims,
        "ranks": {
            name: (1 + sum(worse == name for _, worse in claims), len(names) - sum(b == name for b, _ in claims))
            for name in names
        },
    }
