"""Sentences about what a budget can see."""

from reports.tables.result_notes import budget_text
from results.spec.experiment_spec import PrimaryScore
from results.statistics.planning import Detectable

SEARCHES = Detectable("search", 5, 3, 0.0159, 0.0751, 0.0556, 480, 0.005, "this experiment")


def text(score=None, **changes):
    return " ".join(budget_text(Detectable(**{**vars(SEARCHES), **changes}), score or PrimaryScore()))


def test_the_smallest_difference_one_search_more_and_the_needed_searches_are_said():
    assert text() == (
        "3 searches of each of 5 methods can show differences of 7.5 points or more in concatenated MAP@R, with a "
        "probability of 80 %. One search more of each would show 5.6 points. A difference of 0.5 points takes 480 "
        "searches of each. The deviation between searches is 1.59 points in this experiment, taken as equal for all "
        "methods. Corrected for all pairs."
    )


def test_runs_and_single_searches_are_named_as_such():
    runs = text(unit="run", units=1, smallest=None, needed=None)
    assert "1 run of each of 5 methods can show no difference" in runs
    assert "takes more than 1,000 runs of each" in runs
    assert "The deviation between runs" in runs
    once = text(PrimaryScore(compare="best"), unit="single search", units=1)
    assert "1 search of each of 5 methods can show differences of 7.5" in once
    assert "For one search each it is doubled. Corrected for each method with the best." in once
    assert "Corrected for each with my_loss." in text(PrimaryScore(compare="my_loss"))


def test_an_unknown_deviation_is_said():
    unknown = {"deviation": None, "smallest": None, "one_more": None, "needed": None, "source": ""}
    once = text(unit="single search", units=1, **unknown)
    assert "is not known, since no kept record says how far two searches of this size differ. 3 searches" in once
    assert text(**unknown).endswith("They will say themselves.")
