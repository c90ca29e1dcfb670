"""How the benchmark compares the validation scores of the suite and of PML."""

import random

from tests.benchmarks.peer_fold import equality


def test_equal_and_shifted_scores_are_told_apart_over_seeds():
    draw = random.Random(0)
    ours = [0.4 + draw.gauss(0, 0.05) for _ in range(20)]
    equal = [score + draw.gauss(0, 0.01) for score in ours]
    assert equality(ours, equal).endswith("no difference seen")
    # Seeds differ by five points, but a shift of one point shows in the pairs.
    shifted = equality(ours, [score + 0.01 for score in equal])
    assert shifted.endswith("DIFFERENT")
    assert "over 20 seeds: difference -0.9" in shifted
