"""The rule of ends: which are pressed, what a probe opens, how far a range is widened, and which ends stay open."""

import pytest

from results.findings.search import probe_words
from results.spec.ends import ProbedEnd, open_ends, pressed_ends
from results.spec.range import BATCH_SIZE, Range

UNIT = Range(scale="linear", low=0.0, high=1.0)


def settings(*values):
    return [{"a": first, "b": second} for first, second in values]


def test_more_than_half_of_the_searches_press_an_end():
    ranges = {"a": UNIT, "b": UNIT}
    assert pressed_ends(ranges, settings((0.0, 0.5), (0.02, 0.5), (0.4, 0.99))) == [("a", "low")]
    assert pressed_ends(ranges, settings((0.0, 0.5), (0.4, 0.5), (0.4, 0.5), (0.05, 0.5))) == [], "half of them"
    limited = {"a": UNIT.model_copy(update={"most": 1.0}), "b": UNIT}
    assert pressed_ends(limited, settings((1.0, 0.5), (1.0, 0.5), (0.4, 0.5))) == [], "it ends there by itself"


def test_two_searches_press_nothing():
    assert pressed_ends({"a": UNIT}, [{"a": 0.0}, {"a": 0.0}]) == []
    assert pressed_ends({"a": UNIT}, [{"a": 0.0}, {"a": 0.0}], fewest=1) == [("a", "low")]


@pytest.mark.parametrize(
    ("scale", "low", "high", "value", "end"),
    [
        ("linear", 0.0, 1.0, 0.05, "low"),
        ("linear", 0.0, 1.0, 0.051, None),
        ("log", 1e-6, 1e-2, 1.5e-6, "low"),
        ("log", 1e-6, 1e-2, 2e-6, None),
        ("log", 1e-6, 1e-2, 9.9e-3, "high"),
        ("int", 1, 200, 1, "low"),
        ("int", 1, 200, 2, None),
        ("int_log", 1, 200, 200, "high"),
    ],
)
def test_the_outer_twentieth_is_an_end_and_of_whole_numbers_the_end_itself(scale, low, high, value, end):
    assert Range(scale=scale, low=low, high=high).presses(value) == end


def test_choices_have_no_ends():
    assert pressed_ends({"a": Range(scale="choice", choices=(1, 2))}, [{"a": 1}] * 3) == []


def test_a_probe_lies_a_quarter_of_the_width_beyond_and_a_range_gets_half_of_it_more():
    log = Range(scale="log", low=8.0, high=128.0)
    assert log.beyond("low") == pytest.approx(4.0)
    assert log.widened("low").ends == (pytest.approx(2.0), 128.0)
    assert log.widened("high").ends == (8.0, pytest.approx(512.0))
    linear = Range(scale="linear", low=0.0, high=0.5)
    assert linear.beyond("high") == 0.625
    assert linear.widened("high").ends == (0.0, 0.75)


def test_a_limit_that_is_nearer_halves_the_way_of_the_probe_and_ends_the_range():
    alpha = Range(scale="linear", low=1.0, high=6.0, least=0.0)
    assert alpha.is_open("low")
    assert alpha.beyond("low") == 0.5
    assert alpha.widened("low").ends == (0.0, 6.0)
    assert not alpha.widened("low").is_open("low")


def test_whole_numbers_and_steps_go_to_another_value():
    proxies = Range(scale="int", low=1, high=8, least=1)
    assert not proxies.is_open("low")
    assert (proxies.beyond("high"), proxies.widened("high").ends) == (10, (1.0, 12.0))
    assert isinstance(proxies.beyond("high"), int)
    stepped = Range(scale="linear", low=0.0, high=1.0, step=0.5)
    assert stepped.beyond("high") == 1.5
    stepped.widened("high").check_ends()


def test_an_end_that_is_the_batch_size_is_a_limit():
    memory = Range(scale="int_log", low=BATCH_SIZE, high=8192).whole(32)
    assert not memory.is_open("low")
    assert memory.is_open("high")


def probe(gain, low=0.0, high=1.0, end="low"):
    return ProbedEnd(
        method="m", target="a", end=end, low=low, high=high, beyond=-0.25, probes=(0.3 + gain,) * 3, runs=(0.3,) * 3
    )


def test_an_end_opens_where_the_probes_are_better_than_the_tested_runs():
    assert probe(0.01).opens
    assert not probe(0.0).opens
    assert not probe(-0.01).opens
    uneven = probe(0.0).model_copy(update={"probes": (0.3, 0.3, 0.2), "runs": (0.25, 0.25, 0.24)})
    assert uneven.opens, "the mean over the searches"
    refused = probe(0.0).model_copy(update={"probes": (None, None, None)})
    assert not refused.opens, "the method refuses what lies beyond"
    once = probe(0.0).model_copy(update={"probes": (0.5, None, 0.5), "runs": (0.4, 0.9, 0.4)})
    assert once.opens, "what one search cannot have is better for the others"
    assert "50.0 % against 40.0 % (refused in 1 of 3 searches), so the range was widened" in probe_words(once, "M")


def test_a_pressed_end_is_open_until_a_probe_of_this_range_shuts_it():
    ranges, pressed = {"a": UNIT}, [{"a": 0.0}] * 3
    assert open_ends(ranges, pressed, []) == [("a", "low")]
    assert open_ends(ranges, pressed, [probe(-0.01)]) == []
    assert open_ends(ranges, pressed, [probe(0.01)]) == [("a", "low")]
    assert open_ends(ranges, pressed, [probe(-0.01, low=0.2)]) == [("a", "low")], "the range was another one"
    assert open_ends(ranges, pressed, [probe(0.01), probe(-0.01)]) == [], "the later one counts"
