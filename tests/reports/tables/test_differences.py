"""The table of differences between methods."""

import numpy as np
import pytest

from reports.tables.differences import differences
from reports.tables.formats import to_markdown
from results.statistics.method_comparison import compare_methods
from results.statistics.primary_comparison import primary_comparison
from results.store.experiment_results import MeasuredExperiment
from tests.support.measured_experiment import measured, read
from tests.support.sample_records import some_run


def test_differences_are_those_of_the_experiments_comparison():
    frame = read(differences(measured()))
    pairs = [("contrastive", "triplet"), ("contrastive", "cosface"), ("triplet", "cosface")]
    assert list(zip(frame["a"], frame["b"], strict=True)) == pairs
    expected = primary_comparison(measured()).pairs
    for column in ("difference", "low", "high", "t", "degrees", "p", "p_better", "p_equal"):
        assert list(frame[column]) == pytest.approx([getattr(pair, column) for pair in expected]), column
    assert list(frame["smallest_detectable"]) == pytest.approx([pair.smallest for pair in expected])
    assert list(frame["verdict"]) == ["cannot tell", "a better", "a better"]
    assert set(frame["variant"]) == {"concatenated"}


def test_differences_are_shown_in_percentage_points_and_too_few_runs_are_said():
    text = to_markdown(differences(measured()))
    assert "| Triplet − CosFace | +4.79 ± " in text
    assert "| Triplet better |" in text
    assert "of concatenated MAP@R, the primary score, in percentage points" in text
    assert "none is shown to be better than another: Contrastive | A_B, Triplet." in differences(measured()).remarks[0]
    single = MeasuredExperiment(measured().summary, (some_run("contrastive", 0, 0.5), some_run("triplet", 0, 0.4)))
    (row,) = [line for line in to_markdown(differences(single)).splitlines() if line.startswith("| Contrastive")]
    assert row.endswith("| +2.50 |  |  | 1 |  | too few runs |")


def test_equal_methods_are_called_equal_within_the_margin():
    steps = np.array([-1, 0, 1, 0, 1, -1, 0, 1, -1, 0]) * 4e-4
    methods = {key: 0.5 + move for key, move in (("contrastive", steps), ("triplet", steps[::-1]))}
    runs = [some_run(key, run, value) for key, row in methods.items() for run, value in enumerate(row)]
    experiment = MeasuredExperiment(measured().summary, tuple(runs))
    assert "| equal within 0.5 |" in to_markdown(differences(experiment))
    assert compare_methods({"a": {0: 0.1, 1: 0.2}, "b": {0: 0.1, 1: 0.2}}).pairs[0].verdict == "cannot tell"


def test_caption_says_what_is_tested():
    once = differences(measured()).caption
    assert "Tested is how the runs vary, not the search" in once
    assert "runs per method" in once
    thrice = differences(MeasuredExperiment.kept("all_methods_glyphs_three_searches")).caption
    assert "Tested is how the searches vary with their runs, not the test classes" in thrice
    assert "n: searches, each with the mean of its runs. " in thrice
    assert "3 searches per method" in thrice
