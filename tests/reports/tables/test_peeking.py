"""The table of what peeking at the test scores gains."""

import numpy as np
import pytest

from reports.tables.peeking import peeking_table
from tests.support.measured_experiment import VALUES, measured, read, with_trainings


def test_peeking_is_the_best_of_the_curve_less_the_chosen_point():
    frame = read(peeking_table(with_trainings())).set_index("method")
    assert list(frame.index) == list(VALUES)
    assert frame["gain"].to_list() == pytest.approx([0.05] * 3)
    assert frame.loc["triplet", "honest"] == pytest.approx(np.mean(VALUES["triplet"]) / 4)
    assert frame["n"].to_list() == [3, 3, 3]
    assert peeking_table(with_trainings()).notes == ("No test curves: Absent.",)
    assert peeking_table(measured()).rows == ()
