"""What decides, recomputed from the runs of the records alone."""

from itertools import combinations

import numpy as np
import pytest

from benchmarks.what_decides import TO_THE_END, WIDENED, decides_figure, shifts, what_decides
from results.store.experiment_results import MeasuredExperiment

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    return {one.condition: one for one in shifts()}


def means_of(name, searches=range(3), embeddings="concatenated", metric="map_at_r"):
    """The mean of each method's searches that lie in one range of values: none of these losses has a failed search."""
    frame = MeasuredExperiment.kept(name).frame
    frame = frame[(frame["metric"] == metric) & (frame["embeddings"] == embeddings) & frame["search"].isin(searches)]
    return frame.groupby(["method", "search"])["value"].mean().groupby("method").mean()


def changes(one, other):
    """By how much each pair's difference changes, and whether its sign does."""
    pairs = combinations(sorted(set(one.index) & set(other.index)), 2)
    pairs = [(a, b) for a, b in pairs if one[a] != other[a] or one[b] != other[b]]  # Else of the same runs.
    first, second = (np.array([of[a] - of[b] for a, b in pairs]) for of in (one, other))
    return np.abs(second - first), int((first * second < 0).sum())


def test_images_of_a_class_move_losses_as_the_runs_say(found):
    one, four = means_of("reality_check_2026_glyphs"), means_of("reality_check_2026_glyphs_4")
    four.index = [key.removesuffix("_4") for key in four.index]
    losses = [key for key in one.index if key != "within_class_whitening"]
    moved, turned = changes(one[losses], four[losses])
    shift = found["1 or 4 images of a class in a batch"]
    assert (shift.pairs, shift.orders) == (len(moved), turned)
    assert np.median(shift.changes) == pytest.approx(np.median(moved))


def test_steps_move_losses_as_the_runs_say(found):
    early, end = (means_of(TO_THE_END, embeddings=kind) for kind in ("early_concatenated", "concatenated"))
    moved, turned = changes(early, end[early.index])
    shift = found["steps: at most 400 or to the end"]
    assert (shift.pairs, shift.orders) == (len(moved), turned)
    assert np.median(shift.changes) == pytest.approx(np.median(moved))


def test_ranges_move_losses_as_the_runs_say(found):
    narrow, wide = means_of(TO_THE_END), means_of(WIDENED)
    losses = means_of(TO_THE_END, embeddings="early_concatenated").index
    moved, turned = changes(narrow[losses], wide[losses])
    shift = found["ranges: as given, or wider with half more trials"]
    assert (shift.pairs, shift.orders) == (len(moved), turned)
    assert np.median(shift.changes) == pytest.approx(np.median(moved))


def test_other_searches_of_glyphs_are_among_those_of_all_records(found):
    halves = [means_of("search_variance_glyphs", searches) for searches in (range(3), range(3, 6))]
    moved, _ = changes(*halves)
    shift = found["another three searches"]
    assert shift.pairs == 3 * len(moved)
    # Failed searches are set aside there, and not here.
    alike = [any(abs(own - one) < 1e-12 for own in shift.changes) for one in moved]
    assert sum(alike) > len(alike) / 2


def test_the_table_and_the_figure_have_a_row_for_each_condition(found):
    table = what_decides(list(found.values()))
    assert [row.head for row in table.rows] == list(found)
    axes = decides_figure(list(found.values())).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(found)
