"""The table of differences between methods."""

import numpy as np
import pytest
from scipy import stats

from reports.tables.differences import differences
from reports.tables.formats import to_markdown
from results.experiment_results import MeasuredExperiment
from tests.support.measured_experiment import VALUES, measured, read
from tests.support.sample_records import some_run


def test_differences_are_those_of_scipy_with_holms_correction():
    frame = read(differences(measured(), metric="precision_at_1", kind="separated"))
    pairs = [("contrastive", "triplet"), ("contrastive", "cosface"), ("triplet", "cosface")]
    assert list(zip(frame["a"], frame["b"], strict=True)) == pairs
    tests = [stats.ttest_rel(VALUES[a], VALUES[b]) for a, b in pairs]
    assert list(frame["p"]) == pytest.approx([test.pvalue for test in tests])
    order, floor, adjusted = np.argsort([test.pvalue for test in tests]), 0.0, [0.0] * 3
    for rank, place in enumerate(order):
        floor = max(floor, min(1.0, (3 - rank) * tests[place].pvalue))
        adjusted[place] = floor
    assert list(frame["p_holm"]) == pytest.approx(adjusted)
    for place, test in enumerate(tests):
        interval = test.confidence_interval(0.95)
        assert (frame["low"][place], frame["high"][place]) == (
            pytest.approx(interval.low),
            pytest.approx(interval.high),
        )
    assert list(frame["real"]) == ["not shown", "yes", "yes"]
    assert "paired t" in set(frame["test"])


def test_differences_are_shown_in_percentage_points_and_too_few_runs_are_said():
    text = to_markdown(differences(measured(), metric="precision_at_1", kind="separated"))
    assert "| Triplet − CosFace | +19.17 ± " in text
    assert "of separated P@1 in percentage points" in text
    single = MeasuredExperiment(measured().summary, (some_run("contrastive", 0, 0.5), some_run("triplet", 0, 0.4)))
    (row,) = [line for line in to_markdown(differences(single)).splitlines() if line.startswith("| Contrastive")]
    assert row.endswith("| +2.50 |  |  | 1 | none | too few runs |")
