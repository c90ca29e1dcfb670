"""What peeking is worth: the same trainings with the checkpoint chosen honestly and by its test scores."""

from reports.tables.result_table import METRICS
from reports.tables.table import Cell, Column, Drawing, Sheet, percent, plain_rows
from results.experiment_results import MeasuredExperiment
from results.statistics.peeking import peeking

_HEADER = (
    *("method", "metric", "n", "left_out", "honest", "honest_half_width", "peeked", "peeked_half_width"),
    *("gain", "gain_half_width"),
)


def peeking_table(measured: MeasuredExperiment, metric: str = "map_at_r") -> Drawing:
    """One row per method whose runs were tested all along their trainings.

    measured: with trainings and test curves. metric: one of MLRC's three.
    """
    titles = measured.summary.methods
    found = {one.method: one for one in peeking(measured, metric)}
    ordered = [found[key] for key in titles if key in found]
    cells = [
        [Cell(str(one.n)), percent(one.honest), percent(one.peeked), percent(one.gain, aside=_aside(one.left_out))]
        for one in ordered
    ]
    values = [
        (
            *(one.method, metric, one.n, one.left_out, one.honest.mean, one.honest.half_width),
            *(one.peeked.mean, one.peeked.half_width, one.gain.mean, one.gain.half_width),
        )
        for one in ordered
    ]
    without = [title for key, title in titles.items() if key not in found]
    return Drawing(
        title=f"{measured.summary.title}: what peeking is worth",
        caption=f"Separated {METRICS.get(metric, metric)} on the test classes in percent, mean ± half width of the "
        "95 % Student-t interval over n runs. Honest: the checkpoint that validation chose. Peeked: the best test "
        "score along the same training, which no honest protocol may report.",
        columns=tuple(Column(name) for name in ("n", "honest", "peeked", "gain")),
        rows=plain_rows([titles[one.method] for one in ordered], cells),
        sheet=Sheet(_HEADER, tuple(values)),
        notes=(f"No test curves: {', '.join(without)}.",) if without else (),
    )


def _aside(left_out: int) -> str:
    return f"({left_out} left out)" if left_out else ""
