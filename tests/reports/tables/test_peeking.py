"""The table of what peeking at the test scores gains."""

from dataclasses import replace

import numpy as np
import pytest

from reports.tables.peeking import peeking_table
from tests.support.measured_experiment import VALUES, measured, read, with_trainings
from tests.support.published_world import PAPER
from tests.support.sample_records import some_summary


def test_peeking_is_the_best_of_the_curve_less_the_chosen_point():
    frame = read(peeking_table(with_trainings())).set_index("method")
    assert list(frame.index) == list(VALUES)
    assert frame["gain"].to_list() == pytest.approx([0.05] * 3)
    assert frame.loc["triplet", "honest"] == pytest.approx(np.mean(VALUES["triplet"]) / 4)
    assert frame["n"].to_list() == [3, 3, 3]
    assert peeking_table(with_trainings()).notes == ("No test curves: Absent.",)
    assert peeking_table(measured()).rows == ()


def test_a_gain_that_is_zero_by_construction_is_not_shown():
    world = with_trainings()
    last = {
        name: curve.model_copy(update={"points": tuple(point for point in curve.points if point.iteration == 200)})
        if world.trainings[name][0].method.name == "triplet"
        else curve
        for name, curve in world.test_curves.items()
    }
    table = peeking_table(replace(world, test_curves=last))
    assert [row.key for row in table.rows] == ["contrastive", "cosface"]
    assert table.notes[0].startswith("Not shown: Triplet. All trainings were cut off")


def test_peeking_is_shown_in_the_metric_of_the_papers_code():
    world = with_trainings()
    settings = {**PAPER, "peeking_metric": "precision_at_1"}
    summary = some_summary(title="A test", methods=world.summary.methods, settings=settings)
    table = peeking_table(replace(world, summary=summary))
    assert table.caption.startswith("Separated P@1")
    frame = read(table)
    assert set(frame["metric"]) == {"precision_at_1"}
    assert frame["peeked"].to_list() == pytest.approx([0.55] * 3)
    assert set(read(peeking_table(world))["metric"]) == {"map_at_r"}
