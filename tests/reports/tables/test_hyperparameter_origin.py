"""Tables say where hyperparameters are from that nobody searched."""

import pytest

from reports.tables.hyperparameters import hyperparameters
from reports.tables.result_notes import CARRIED_CHOICE, choice_notes, origin_of_hyperparameters
from results.store.experiment_results import MeasuredExperiment
from tests.support.published_world import PAPER
from tests.support.sample_records import some_run, some_summary


def test_searched_hyperparameters_name_their_trials():
    expected = "Hyperparameters: best of 50 trials per search by validation MAP@R."
    assert origin_of_hyperparameters("mlrc", 50) == origin_of_hyperparameters("standard", 50) == expected
    assert origin_of_hyperparameters("mlrc", 1) == "Hyperparameters: those of the only trial of each method."


def test_hyperparameters_of_papers_carry_their_papers_choice():
    assert CARRIED_CHOICE in origin_of_hyperparameters("standard", 0)
    # MLRC and CCP choose on validation classes.
    assert origin_of_hyperparameters("mlrc", 0).endswith("not searched.")


@pytest.mark.parametrize(("trials", "notes"), [(0, (CARRIED_CHOICE,)), (3, ())])
def test_the_table_of_hyperparameters_has_the_note(trials, notes):
    summary = some_summary(methods={"triplet": "Triplet"}, trials=trials, settings=PAPER)
    assert choice_notes(summary) == notes
    table = hyperparameters(MeasuredExperiment(summary, (some_run(),)))
    assert table.notes == notes
    assert ("best trial" in table.caption.split(".")[0]) == bool(trials)
