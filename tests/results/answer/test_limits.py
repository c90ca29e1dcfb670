"""Where the worse one of two methods was held up, the answer is no verdict about methods."""

from dataclasses import replace

import pytest

from reports.headline import comparison_lines, headline
from reports.sentences import sentences
from reports.tables.differences import differences
from results.answer.answer_question import answer_frame, early_answer
from results.answer.answers import Answer
from results.answer.contrasts import contrasts_of
from results.answer.limits import CUT_OFF_SHARE, open_ends_of
from results.findings.experiment import answer_of
from results.spec.experiment_spec import Contrast
from results.store.experiment_results import FOLDER, MeasuredExperiment
from tests.support.page_material import searched

CLEAR = {"a": (30.0, 30.6, 30.3), "b": (20.0, 20.4, 20.2), "c": (10.1, 10.4, 10.0)}


def held_up(found: Answer, **limits: dict) -> Answer:
    """The same scores, with what held methods up, such as `b={"cut_off": "after 400 steps"}`."""
    methods = {key: replace(planned, **limits.get(key, {})) for key, planned in found.question.methods.items()}
    return answer_frame(found.frame, replace(found.question, methods=methods))


@pytest.fixture(scope="module")
def world():
    return searched(**CLEAR).answer


STEPS, RANGES = {"cut_off": "after 400 steps"}, {"open_ends": True}


def test_nothing_is_claimed_against_a_method_that_was_held_up(world):
    assert answer_frame(world.frame, world.question).claims == {("a", "b"), ("a", "c"), ("b", "c")}
    found = held_up(world, b=STEPS)
    assert found.claims == {("a", "c"), ("b", "c")}, "what held up the better one does not matter"
    pair = found.pair("a", "b")
    assert (pair.better, pair.ahead, pair.extent, pair.size) == (None, "a", "after 400 steps", "cannot tell")
    assert found.rank_intervals == {"a": (1, 2), "b": (1, 2), "c": (3, 3)}
    assert found.leading == {"a", "b"}


def test_behind_is_the_higher_score_where_lower_is_better(world):
    errors = answer_frame(world.frame, replace(world.question, lower_is_better=True))
    assert errors.claims == {("c", "a"), ("c", "b"), ("b", "a")}
    found = held_up(errors, a=STEPS)
    assert (found.claims, found.pair("a", "c").ahead) == ({("c", "b")}, "c"), "a is the worst"
    assert held_up(errors, c=STEPS).claims == errors.claims, "what held up the best does not matter"


def test_it_is_said_wherever_a_pair_stands(world):
    found = held_up(world, b=STEPS | RANGES)
    limit = "after 400 steps, within the searched ranges"
    assert f"B {limit}" in headline(found)
    assert "No verdict about methods" in headline(found)
    assert any(limit in line for line in comparison_lines(found))
    assert any(f"{limit}, which is no verdict about the methods" in text for text in sentences(found))
    table = differences(found)
    assert any("A ahead" in (cell.written, cell.value) for row in table.rows for cell in row.cells)
    at = table.sheet.header.index("ahead")
    assert [row[at : at + 2] for row in table.sheet.rows if row[at]] == [("a", limit)]


def test_two_are_called_equal_only_if_neither_was_held_up():
    alike = searched(a=(30.0, 30.01, 30.02), b=(30.0, 30.02, 30.01)).answer
    assert answer_frame(alike.frame, alike.question).pairs[0].size == "within"
    assert held_up(alike, a=RANGES).pairs[0].size == "cannot tell"


def test_a_contrast_against_a_group_with_such_a_method_is_not_claimed(world):
    asked = [Contrast(title="one or two", a=("a",), b=("b", "c"))]
    (free,) = contrasts_of(world, asked)
    (limited,) = contrasts_of(held_up(world, c=STEPS), asked)
    (winner,) = contrasts_of(held_up(world, a=STEPS), asked)
    assert (free.shown, limited.shown, winner.shown) == (True, False, True)
    assert (limited.ahead, limited.extent) == (True, "after 400 steps")


@pytest.mark.parametrize("name", sorted(file.name.removesuffix(".json.xz") for file in FOLDER.glob("*.json.xz")))
def test_no_claim_of_a_kept_record_is_about_steps_or_ranges(name):
    measured = MeasuredExperiment.kept(name)
    found, counts = answer_of(measured), measured.cut_offs
    for _, worse in found.claims:
        assert open_ends_of(measured, worse) == []
        cut, trained = counts.get(worse, (0, 0))
        assert cut <= CUT_OFF_SHARE * trained


def test_without_a_training_that_went_on_there_is_no_second_question(world):
    assert early_answer(world) is None
