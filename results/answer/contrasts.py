"""Contrasts: the mean of some methods against the mean of others, with the variances of the comparison of pairs.

A factor that several methods share, such as whether a proxy or an image holds the sum of a loss, is a question about
their means. Two means of several methods vary less than two methods do, so a contrast sees smaller differences.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from results.answer.answers import Answer
from results.answer.pair_tests import MeanErrors, Numbers, PairDifferences, holm, smallest_detectable
from results.answer.typical import mean_errors
from results.spec.experiment_spec import Contrast


@dataclass(frozen=True)
class ContrastAnswer:
    """The mean of the methods in `asked.a` minus that of those in `asked.b`, in the unit of the values.

    Attributes:
        untested: Why there is no answer; then all numbers are None.
        half_width: Half the width of the difference's own 95 % interval, which is not corrected for other contrasts.
        p: Two-sided p value of the hypothesis that there is no difference, for this contrast alone.
        p_better: p value adjusted for all contrasts that were asked for, by Holm's method; 1 if the means disagree.
        smallest: Smallest true difference that would be shown with a probability of 80 %.
        difference_of_all: The same difference of all values, also of those that failed.
        shown: Whether the difference is claimed.
        extent: How far it goes, such as `after 400 steps`, where a method of the group that is behind was held up.
            Then it is not claimed.
        ahead: Whether it would be claimed without that.
    """

    asked: Contrast
    untested: str | None = None
    difference: float | None = None
    half_width: float | None = None
    p: float | None = None
    p_better: float | None = None
    smallest: float | None = None
    difference_of_all: float | None = None
    shown: bool = False
    extent: str = ""
    ahead: bool = False

    @property
    def means_disagree(self) -> bool:
        """Whether failures turn the order, so that nothing is claimed."""
        return (self.difference or 0.0) * (self.difference_of_all or 0.0) < 0


def contrasts_of(found: Answer, asked: Sequence[Contrast]) -> tuple[ContrastAnswer, ...]:
    """Answer contrasts of an answer's methods, a family of its own beside that of the pairs.

    Means, failed values that are set aside, variances and degrees of freedom are those of the pairs, so that a contrast
    of one method with another has the difference, the interval and the p value of their pair. The probability that any
    contrast is claimed where there is no difference is meant to be at most the question's `alpha` (after planned
    looks the level of the last one). Contrasts that have no answer count in the correction, and none is claimed whose
    order failures turn.
    """
    question, values = found.question, found.values
    tested = [
        key
        for key in found.question.compared
        if not values[key].missing
        and values[key].units
        and all(map(math.isfinite, values[key].units))
        and (values[key].planned.constant or len(values[key].units) > 1)
    ]
    reasons = [_why_untested(found, contrast, tested) for contrast in asked]
    weights = [_weights(contrast, tested) for contrast, reason in zip(asked, reasons, strict=True) if reason is None]
    if not weights:
        return tuple(ContrastAnswer(contrast, reason) for contrast, reason in zip(asked, reasons, strict=True))
    alpha = question.alpha if found.look_level is None else found.look_level
    differences = contrast_differences(mean_errors(values, tested, question.step), np.array(weights))
    of_all = np.array(weights) @ np.array([values[key].mean_of_all for key in tested])
    adjusted = np.where(differences.difference * of_all < 0, 1.0, holm(differences.p, tests=len(asked)))
    rows = zip(
        differences.difference.tolist(),
        differences.half_width().tolist(),
        differences.p.tolist(),
        adjusted.tolist(),
        smallest_detectable(differences.error, differences.degrees, alpha / len(asked)).tolist(),
        of_all.tolist(),
        (adjusted < alpha).tolist(),
        strict=True,
    )
    return tuple(
        ContrastAnswer(contrast, reason) if reason else _limited(ContrastAnswer(contrast, None, *next(rows)), found)
        for contrast, reason in zip(asked, reasons, strict=True)
    )


def _limited(one: ContrastAnswer, found: Answer) -> ContrastAnswer:
    behind = one.asked.b if (one.difference or 0.0) > 0 else one.asked.a
    extents = dict.fromkeys(extent for key in behind for extent in found.values[key].planned.extents)
    return replace(one, extent=", ".join(extents), shown=False, ahead=one.shown) if extents else one


def contrast_differences(errors: MeanErrors, weights: Numbers) -> PairDifferences:
    """Return weighted sums of means, for weights (contrasts, methods).

    Methods of one pool share their degrees of freedom; between several pools they are Satterthwaite's.
    """
    parts = weights**2 * errors.squares
    squares = parts.sum(axis=1)
    pool = np.zeros(len(errors.means), dtype=np.intp) if errors.pool is None else errors.pool
    inverse = np.zeros(len(weights))
    for number in np.unique(pool):
        own = np.flatnonzero(pool == number)
        inverse += (parts[:, own].sum(axis=1) / squares) ** 2 / errors.degrees[own[0]]
    return PairDifferences(weights @ errors.means, np.sqrt(squares), 1 / inverse)


def _weights(contrast: Contrast, names: Sequence[str]) -> list[float]:
    return [(name in contrast.a) / len(contrast.a) - (name in contrast.b) / len(contrast.b) for name in names]


def _why_untested(found: Answer, contrast: Contrast, tested: Sequence[str]) -> str | None:
    if found.question.sample.test == "assumed":
        return "each method was searched once"
    without = [key for key in (*contrast.a, *contrast.b) if key not in tested]
    if not without:
        return None
    return f"it lacks {', '.join(found.titles.get(key, key) for key in without)}"
