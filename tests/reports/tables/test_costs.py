"""The table of what the methods cost."""

from reports.tables.costs import costs
from tests.support.measured_experiment import VALUES, measured, read


def test_costs_are_steps_of_one_model_and_seconds_of_a_run():
    frame = read(costs(measured(steps=400))).set_index("method")
    assert list(frame.index) == list(VALUES)
    assert set(frame["steps"]) == {100.0}
    assert set(frame["models"]) == {4}
    assert set(frame["seconds"]) == {12.0}
    assert set(frame["seconds_in_all"]) == {36.0}
    without = costs(measured())
    assert read(without)["steps"].isna().all()
    assert without.notes[0].startswith("Steps were not recorded: Contrastive")
