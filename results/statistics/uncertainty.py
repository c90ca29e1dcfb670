"""Sources of uncertainty: how much of it comes from runs, searches and test classes, for a difference of methods.

The model is crossed and random: the difference of two methods in run r on class c is mean + run_r + class_c + rest_rc.
Other runs and other classes could have been drawn, so both levels belong to the interval of the difference. The
variance of the mean is V_run + V_class - V_rest. V_run is estimated from the means of runs, V_class from the means of
classes. Both contain the variance of the rest, so it is subtracted once. Where searches were repeated, they take the
place of runs. Degrees of freedom are Satterthwaite's. With few runs the sum has more degrees of
freedom than the runs and could get a narrower interval than they have; then the wider one counts.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from results.records.records import RunRecord
from results.statistics.intervals import half_width_of
from results.store.frame import EmbeddingKind

_Array = npt.NDArray[np.float64]
ClassScoresByRun = Mapping[tuple[int, int], _Array]
"""Scores on every test class (classes,) by number of the search and of the run."""


@dataclass(frozen=True)
class Uncertainty:
    """A difference of two methods with the half widths of its 95 % interval from each source.

    Attributes:
        difference: Mean of a minus mean of b, a fraction of 1.
        runs: Half width if only the runs vary: new trainings of the settings found, on the same classes. None if a
            method has too few runs.
        search: Half width if only the searches vary; None if no search was repeated.
        classes: Half width if only the test classes vary; None with a single class.
        together: Half width if everything above varies, never less than that of one source; None if runs or classes
            are missing.
        paired: Whether runs (or searches) of equal numbers were matched.
    """

    a: str
    b: str
    difference: float
    runs: float | None
    search: float | None
    classes: float | None
    together: float | None
    paired: bool


class _Parts(NamedTuple):
    """Parts of the variance of a sample's mean, each with its degrees of freedom."""

    units: tuple[float, float]
    rest: tuple[float, float]
    runs: tuple[float, float]
    searches: int


def uncertainty_of_pairs(
    records: Mapping[str, Sequence[RunRecord]],
    metric: str = "map_at_r",
    kind: EmbeddingKind = "concatenated",
    constant: Collection[str] = (),
) -> list[Uncertainty]:
    """Compute the uncertainty of every pair of methods by source.

    The result has each method with every later one. Methods in `constant` have one run that stands for all, and count
    as if they had been run as often as the others.
    """
    scores: dict[str, dict[tuple[int, int], _Array]] = {}
    queries: tuple[int, ...] = ()
    for method, runs in records.items():
        scores[method] = {}
        for run in runs:
            if run.class_scores is None:
                raise ValueError(f"{run.name} of {method} was kept without class scores; evaluate it again")
            queries = queries or run.class_scores.queries
            if run.class_scores.queries != queries:
                raise ValueError(f"{run.name} of {method} was tested on other classes than the first run")
            by_class = [getattr(one, metric) for one in getattr(run.class_scores, kind)]
            scores[method][run.search, run.run] = np.array(by_class)
    all_keys = dict.fromkeys(key for own in scores.values() for key in own)
    for method in scores.keys() & set(constant):
        if len(scores[method]) == 1:
            scores[method] = dict.fromkeys(all_keys, *scores[method].values())
    weights = np.array(queries, dtype=float)
    return [uncertainty((a, b), scores[a], scores[b], weights) for a, b in combinations(scores, 2)]


def uncertainty(names: tuple[str, str], a: ClassScoresByRun, b: ClassScoresByRun, queries: _Array) -> Uncertainty:
    """Compute the uncertainty of a difference by source.

    `a` and `b` are class scores by run, and `queries` (classes,) weights the classes as in the scores. Runs are matched
    if at least two runs (or two searches, where both methods have several) have equal numbers.
    """
    used = queries > 0
    weights = queries[used] / queries[used].sum()
    matched = _matched(a, b)
    paired = len(matched) > 0
    if paired:
        samples = [{key: (a[key] - b[key])[used] for key in matched}]
        by_class = _mean(samples[0])
    else:
        samples = [{key: row[used] for key, row in method.items()} for method in (a, b)]
        by_class = _mean(samples[0]) - _mean(samples[1])
    difference, count = float(weights @ by_class), len(weights)
    parts = [_parts(sample, weights) for sample in samples] if min(map(len, samples)) > 1 else []
    classes = []
    if count > 1:
        spread = float((weights**2) @ (by_class - difference) ** 2) * count / (count - 1)
        classes = [(spread, float(count - 1))]
    return Uncertainty(
        *names,
        difference=difference,
        runs=half_width_of([part.runs for part in parts]) if parts else None,
        search=_of_search(parts),
        classes=half_width_of(classes) if classes else None,
        together=_together(parts, classes) if parts and classes else None,
        paired=paired,
    )


def _matched(a: ClassScoresByRun, b: ClassScoresByRun) -> list[tuple[int, int]]:
    """Runs of equal numbers if they give two independent pairs, else none.

    Where both methods have several searches, a pair is a search with its runs.
    """
    several = [len({search for search, _ in method}) > 1 for method in (a, b)]
    if several[0] != several[1]:
        return []
    matched = [key for key in a if key in b]
    pairs = {search for search, _ in matched} if several[0] else set(matched)
    return matched if len(pairs) > 1 else []


def _groups(sample: ClassScoresByRun) -> list[_Array]:
    groups: dict[int, list[_Array]] = {}
    for (search, _), row in sample.items():
        groups.setdefault(search, []).append(row)
    return [np.array(rows) for rows in groups.values()]


def _mean(sample: ClassScoresByRun) -> _Array:
    """Mean over searches of their runs' means, by class."""
    mean: _Array = np.mean([rows.mean(axis=0) for rows in _groups(sample)], axis=0)
    return mean


def _parts(sample: ClassScoresByRun, weights: _Array) -> _Parts:
    groups = _groups(sample)
    several = len(groups) > 1
    units = np.array([rows.mean(axis=0) for rows in groups]) if several else groups[0]
    count, classes = units.shape
    means = units @ weights
    # What is left of a score after the means of its unit and of its class.
    rest = units - means[:, None] - units.mean(axis=0) + means.mean()
    scale = classes / (classes - 1) if classes > 1 else 0.0
    of_rest = float((weights**2) @ (rest**2).sum(axis=0)) / (count * (count - 1)) * scale
    of_units = (float(means.var(ddof=1)) / count, count - 1.0)
    runs = _within(groups, weights) if several else of_units
    return _Parts(of_units, (of_rest, (count - 1.0) * max(1, classes - 1)), runs, len(groups))


def _within(groups: Sequence[_Array], weights: _Array) -> tuple[float, float]:
    """Variance, and its degrees of freedom, of the mean over searches that comes from the runs within them."""
    several = [rows for rows in groups if len(rows) > 1]
    degrees = sum(len(rows) - 1 for rows in several)
    if not degrees:
        return 0.0, 1.0
    pooled = sum(float((rows @ weights).var(ddof=1)) * (len(rows) - 1) for rows in several) / degrees
    return pooled * sum(1 / len(rows) for rows in groups) / len(groups) ** 2, float(degrees)


def _of_search(parts: Sequence[_Parts]) -> float | None:
    """Half width from the search alone: the variance of the runs within searches is taken off."""
    repeated = [part for part in parts if part.searches > 1]
    if not repeated:
        return None
    units = [part.units for part in parts]
    alone = sum(max(0.0, part.units[0] - part.runs[0]) for part in repeated)
    return half_width_of(units) * math.sqrt(alone / _variance(units)) if alone else 0.0


def _together(parts: Sequence[_Parts], classes: Sequence[tuple[float, float]]) -> float:
    units, rest = [part.units for part in parts], [(-part.rest[0], part.rest[1]) for part in parts]
    sources = [units, [part.runs for part in parts], list(classes)]
    crossed = [*units, *classes, *rest]
    # The true sum is no smaller than one of its levels. An estimate can be, by chance; it is left out then.
    if _variance(crossed) >= max(map(_variance, sources)):
        sources.append(crossed)
    return max(half_width_of(source) for source in sources)


def _variance(parts: Sequence[tuple[float, float]]) -> float:
    return sum(part for part, _ in parts)
