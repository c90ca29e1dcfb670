"""The time left is computed from mean durations and is unknown before the first one is measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduce.monitoring.time_left import Forecast, in_words

METHODS = ("a", "b", "c")
totals = st.dictionaries(st.sampled_from(METHODS), st.integers(1, 30), min_size=1)
finishes = st.lists(st.tuples(st.sampled_from(METHODS), st.floats(0.1, 1e4), st.booleans()), max_size=40)


def after(totals, workers, finished):
    forecast = Forecast(dict(totals), workers)
    for method, seconds, now in finished:
        if method in totals and forecast.done[method] < totals[method]:
            forecast.finished(method, seconds, now=now)
    return forecast


@given(totals, st.integers(1, 8), finishes)
def test_totals_and_time_left_add_up(totals, workers, finished):
    forecast = after(totals, workers, finished)
    own: dict[str, list[float]] = {method: [] for method in totals}
    counted = 0
    for method, seconds, _ in finished:
        if method in totals and len(own[method]) < totals[method]:
            own[method].append(seconds)
            counted += 1
    assert forecast.total == sum(totals.values())
    assert forecast.n_done == counted
    everything = [seconds for durations in own.values() for seconds in durations]
    left = forecast.seconds_left()
    if counted == forecast.total:
        assert left == 0.0
    elif not everything:
        assert left is None
    else:
        mean = sum(everything) / len(everything)
        expected = sum(
            (totals[method] - len(durations)) * (sum(durations) / len(durations) if durations else mean)
            for method, durations in own.items()
        )
        assert left == pytest.approx(expected / workers)


@given(totals, finishes)
def test_twice_the_workers_take_half_the_time(totals, finished):
    one, two = (after(totals, workers, finished).seconds_left() for workers in (1, 2))
    assert (one is None) == (two is None)
    if one is not None:
        assert one == pytest.approx(2 * two)


@given(totals, finishes)
def test_time_left_lies_between_the_shortest_and_the_longest_training(totals, finished):
    forecast = after(totals, 1, finished)
    left, to_do = forecast.seconds_left(), forecast.total - forecast.n_done
    seconds = [duration for durations in forecast.durations.values() for duration in durations]
    if left:
        assert min(seconds) * to_do * (1 - 1e-9) <= left <= max(seconds) * to_do * (1 + 1e-9)


def test_the_time_left_is_unknown_before_the_first_training():
    forecast = Forecast({"a": 3}, 1)
    assert forecast.seconds_left() is None
    forecast.finished("a", 0.0, now=False)
    assert forecast.seconds_left() is None
    assert in_words(forecast.seconds_left()) == "not known yet"


def test_only_trainings_of_this_session_count_as_made():
    forecast = Forecast({"a": 3}, 1)
    forecast.finished("a", 2.0, now=False)
    forecast.finished("a", 4.0, now=True)
    assert (forecast.n_done, forecast.made_now, forecast.seconds_left()) == (2, 1, 3.0)


def test_tests_count_as_well():
    forecast = Forecast({"a": 1, "b": 1}, 2, tests={"a": 1, "b": 2}, expected_test=10.0)
    assert forecast.seconds_left() is None
    forecast.finished("a", 4.0, now=True)
    assert forecast.seconds_left() == (4 + 3 * 10) / 2
    forecast.finished("b", 4.0, now=True)
    assert forecast.seconds_left() == 3 * 10 / 2
    forecast.test_finished("b", 6.0)
    assert forecast.seconds_left() == 2 * 6 / 2
    forecast.test_finished("a", 8.0)
    forecast.test_finished("b", 1.0)
    assert forecast.seconds_left() == 0.0


def test_tests_of_unknown_duration_count_nothing():
    forecast = Forecast({"a": 1}, 1, tests={"a": 1})
    forecast.finished("a", 4.0, now=True)
    assert forecast.seconds_left() == 0.0


def test_with_more_trainings_than_planned_no_time_is_left():
    forecast = Forecast({"a": 1}, 1)
    for _ in range(3):
        forecast.finished("a", 2.0, now=True)
    assert forecast.seconds_left() == 0.0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "not known yet"),
        (0.0, "0 s"),
        (40.4, "40 s"),
        (60, "1 min"),
        (7 * 60 + 20, "7 min"),
        (3599, "1 h"),
        (3600, "1 h"),
        (3 * 3600 + 20 * 60, "3 h 20 min"),
        (47 * 3600, "47 h"),
        (52 * 3600, "2 days 4 h"),
    ],
)
def test_durations_in_words(seconds, said):
    assert in_words(seconds) == said
