"""Under pinned kernels the trainings of a search are equal to the last digit, whatever processor makes them."""

import json
from importlib.metadata import version

import pytest

from protocols.machine.kernels import kernels
from results.records.provenance import processor
from tests.support.pinned_digits import FILE, trainings_of_a_search

KEPT = json.loads(FILE.read_text(encoding="utf-8"))


def difference(kept, made):
    """The first training that is not equal, and by how much; None if all are."""
    for one, other in zip(kept, made, strict=True):
        for what in ("setting", "name"):
            if one[what] != other[what]:
                return f"{one['of']}: its {what} is {other[what]}, and {one[what]} is kept"
        for (steps, loss, score), (_, other_loss, other_score) in zip(one["curve"], other["curve"], strict=True):
            if (loss, score) != (other_loss, other_score):
                by = abs((other_loss or 0) - (loss or 0)), abs(other_score - score)
                return f"{one['of']}: after {steps} steps the loss differs by {by[0]:.1e} and MAP@R by {by[1]:.1e}"
    return None


def test_a_difference_is_named_with_its_place_and_size():
    kept = [{"of": "a, trial 1, fold 1", "setting": {"x": 1.5}, "name": "n", "curve": [[5, 0.5, 0.25]]}]
    other = [{**kept[0], "curve": [[5, 0.5 + 1e-6, 0.25]]}]
    assert difference(kept, kept) is None
    found = "a, trial 1, fold 1: after 5 steps the loss differs by 1.0e-06 and MAP@R by 0.0e+00"
    assert difference(kept, other) == found
    assert "its setting is" in difference(kept, [{**kept[0], "setting": {"x": 1.6}}])


@pytest.mark.skipif(kernels() == "native", reason="kernels are native here")
@pytest.mark.skipif(version("torch") != KEPT["torch"], reason="another release of torch")
def test_a_search_has_the_digits_that_other_processors_gave(tmp_path):
    found = difference(KEPT["trainings"], trainings_of_a_search(tmp_path))
    assert found is None, f"{found}. {processor()} is unlike {', '.join(KEPT['processors'])}"
