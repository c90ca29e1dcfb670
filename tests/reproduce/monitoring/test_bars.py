"""Without a terminal, long reading shows a line now and then."""

import io

from rich.console import Console

from reproduce.monitoring.bars import Bars


def test_a_log_gets_a_line_with_the_time_left_twice_a_minute():
    now, console = [0.0], Console(file=io.StringIO(), width=200)
    with Bars(console, lambda: now[0]) as bars:
        moved = bars.of("computing features")
        for done in range(0, 130, 10):
            now[0] = done
            moved(done, 1200)
    left = {30: 20, 60: 19, 90: 18, 120: 18}
    lines = [f"computing features: {done} of 1,200, time left {minutes} min" for done, minutes in left.items()]
    assert console.file.getvalue().splitlines() == lines
