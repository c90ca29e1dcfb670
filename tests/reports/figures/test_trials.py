"""Which trials of a search are drawn."""

from reports.figures.trials import finished
from tests.support.trials import TRIALS


def test_finished_trials_come_in_their_order_without_the_failed_ones():
    assert [(one.number, value) for one, value in finished(TRIALS)] == [(0, 0.2), (2, 0.3), (3, 0.25), (4, 0.4)]
