"""The place of our interval relative to a published value."""

from typing import Literal

from results.statistics.intervals import Interval

PublishedVerdict = Literal[
    "inside",
    "above",
    "below",
    "not run",
    "no interval",
    "not published",
    "quoted",
    "source unclear",
    "method not in suite",
]
"""Position of our interval relative to a published value, or the reason why the two are not compared.

A value that its paper quoted from another paper is not compared: our runs under the first paper's conditions are no
reproduction of it.
"""


def verdict(ours: Interval | None, published: float | None, rounding: float = 0.0) -> PublishedVerdict:
    """Compare our interval with a published value.

    Args:
        ours: Our interval; None if nothing was run.
        published: The value, in the unit of our interval; None if the paper prints a dash.
        rounding: Half a unit of the last published digit. The true value can differ from the published one by this.

    Returns:
        `inside`: the value is in our interval. `above`, `below`: our interval lies above or below the value.
        `no interval`: there is a single run, which has no interval. `not run`, `not published`: there is nothing to
        compare.
    """
    if ours is None:
        return "not run"
    if published is None:
        return "not published"
    if ours.low is None or ours.high is None:
        return "no interval"
    if ours.low > published + rounding:
        return "above"
    return "below" if ours.high < published - rounding else "inside"
