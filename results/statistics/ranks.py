"""Average ranks of methods and Friedman's test.

Source: Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, Journal of Machine Learning Research 7,
2006.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special


@dataclass(frozen=True)
class AverageRanks:
    """Methods by average rank, where 1 is the best rank.

    Attributes:
        methods: Names of the methods, the best first.
        ranks: Their average ranks, in the same order.
        blocks: Number of blocks in which every method has a value.
        left_out: Number of blocks in which a method is missing; they are not used.
        statistic: Statistic of Friedman's test that all methods have equal ranks; None, as is its p value, for two
            methods, for which the test is not defined.
    """

    methods: tuple[str, ...]
    ranks: tuple[float, ...]
    blocks: int
    left_out: int
    statistic: float | None
    p: float | None


def average_ranks(methods: Mapping[str, Mapping[Any, float]]) -> AverageRanks:
    """Rank methods in every block in which all of them have a value. Higher values are better.

    A block is, for example, a run that the methods have in common (`run_values.run_values`). If all blocks are runs on
    one dataset, the test holds for that dataset only.
    """
    names = list(methods)
    if len(names) < 2:
        raise ValueError("average ranks need at least two methods")
    common_blocks = [block for block in methods[names[0]] if all(block in methods[name] for name in names)]
    if len(common_blocks) < 2:
        raise ValueError(f"average ranks need at least two runs that all of {', '.join(names)} have in common")
    values = np.array([[methods[name][block] for name in names] for block in common_blocks])
    ranked = pd.DataFrame(values).rank(axis=1, ascending=False).to_numpy()
    average = ranked.mean(axis=0)
    order = np.argsort(average, kind="stable")
    statistic, p = _friedman(ranked)
    return AverageRanks(
        methods=tuple(names[i] for i in order),
        ranks=tuple(average[order].tolist()),
        blocks=len(common_blocks),
        left_out=len({block for values_by_block in methods.values() for block in values_by_block}) - len(common_blocks),
        statistic=statistic,
        p=p,
    )


def _friedman(ranked: np.ndarray) -> tuple[float | None, float | None]:
    """Return what `scipy.stats.friedmanchisquare` does, with its correction for ties; scipy.stats takes long to import.

    The statistic is (k - 1) S / V for k methods. S is the sum of the squares of the methods' rank sums, and V that of
    all ranks, both around their means (Conover, Practical Nonparametric Statistics, section 5.8).
    """
    blocks, methods = ranked.shape
    if methods < 3:
        return None, None
    around_mean = ranked - (methods + 1) / 2
    spread = float((around_mean**2).sum())
    if spread == 0:
        return 0.0, 1.0
    between = blocks**2 * float((around_mean.mean(axis=0) ** 2).sum())
    statistic = (methods - 1) * between / spread
    return statistic, float(special.chdtrc(methods - 1, statistic))
