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

from results.records.records import RunRecord, Scores
from results.statistics.intervals import half_width_of
from results.statistics.run_values import EmbeddingKind, RunKey, by_search

_Array = npt.NDArray[np.float64]
ClassScoresByRun = Mapping[RunKey, _Array]
"""Scores on every test class (classes,) by run."""


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
    scores: dict[str, dict[RunKey, _Array]] = {}
    queries: _Array | None = None
    for method, runs in records.items():
        own_queries, rows = scores_by_class(runs, metric, kind)
        queries = own_queries if queries is None else queries
        if not np.array_equal(queries, own_queries):
            raise ValueError(f"{method} was tested on other classes than the first method; they cannot be paired")
        keys = [RunKey(run.dataset, run.seed, run.run, run.search) for run in runs]
        scores[method] = dict(zip(keys, rows, strict=True))
    all_keys = dict.fromkeys(key for own in scores.values() for key in own)
    for method in scores.keys() & set(constant):
        if len(scores[method]) == 1:
            scores[method] = dict.fromkeys(all_keys, *scores[method].values())
    pairs = combinations(scores, 2)
    return [uncertainty((a, b), scores[a], scores[b], queries) for a, b in pairs if queries is not None]


def scores_by_class(records: Sequence[RunRecord], metric: str, kind: EmbeddingKind) -> tuple[_Array, _Array]:
    """Return the numbers of queries (classes,) and the scores of every run on every test class (runs, classes)."""
    if metric not in Scores.model_fields:
        raise ValueError(f"class scores hold {', '.join(Scores.model_fields)}, not {metric}")
    if not records:
        raise ValueError("an interval over classes needs at least one run")
    rows: list[list[float]] = []
    queries: tuple[int, ...] = ()
    for record in records:
        if record.class_scores is None:
            raise ValueError(f"{record.name} of {record.method} was kept without class scores; evaluate it again")
        queries = queries or record.class_scores.queries
        if record.class_scores.queries != queries:
            raise ValueError(f"{record.name} of {record.method} was tested on other classes than the first run")
        rows.append([getattr(scores, metric) for scores in getattr(record.class_scores, kind)])
    return np.array(queries, dtype=float), np.array(rows)


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


def _matched(a: ClassScoresByRun, b: ClassScoresByRun) -> list[RunKey]:
    """Runs of equal numbers if they give two independent pairs, else none.

    Where both methods have several searches, a pair is a search with its runs.
    """
    several = [len({key.search for key in method}) > 1 for method in (a, b)]
    if several[0] != several[1]:
        return []
    matched = [key for key in a if key in b]
    pairs = {key.search for key in matched} if several[0] else set(matched)
    return matched if len(pairs) > 1 else []


def _groups(sample: ClassScoresByRun) -> list[_Array]:
    return [np.array(rows) for rows in by_search(sample).values()]


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
