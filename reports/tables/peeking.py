"""Table of the gain by peeking: the checkpoint chosen by validation scores, and by test scores."""

from reports.tables.table import PERCENT, Cell, Column, Row, Sheet, Table, Value, measured_cell
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.finding import origin_findings
from results.statistics.peeking import Peeking, peeking
from results.statistics.primary_comparison import unit_of
from results.store.experiment_results import MeasuredExperiment
from results.wording import joined

_HEADER = (
    *("method", "metric", "n", "left_out", "honest", "honest_half_width", "peeked", "peeked_half_width"),
    *("gain", "gain_half_width"),
)


def peeking_table(measured: MeasuredExperiment) -> Table:
    """Build the table with one row per method whose runs have test curves and a checkpoint to choose."""
    titles, metric = measured.summary.methods, measured.summary.experiment.peeking_metric
    by_method = {gain.method: gain for gain in peeking(measured, metric)}
    ordered = [by_method[key] for key in titles if key in by_method and not by_method[key].nothing_to_choose]
    hidden = [title for key, title in titles.items() if key in by_method and by_method[key].nothing_to_choose]
    notes = [finding.sentences for finding in origin_findings(measured)]
    if hidden:
        notes.append(f"Not shown: {joined(hidden)}. All trainings were cut off, so there was nothing to choose.")
    without = [title for key, title in titles.items() if key not in by_method]
    searched_again = unit_of(measured.summary.experiment) == "search"
    over = "the complete searches, which have n runs in all" if searched_again else "n runs"
    return Table(
        title=f"{measured.summary.title}: gain from peeking",
        caption=f"Separated {HEADLINE_METRICS[metric]} on the test classes in percent, mean ± half width "
        f"of the 95 % interval over {over}. Honest: the checkpoint chosen by validation scores. Peeked: "
        "the best test score during the same training, which an honest protocol must not report.",
        columns=tuple(Column(name) for name in ("n", "honest", "peeked", "gain")),
        rows=tuple(_row(titles[gain.method], gain) for gain in ordered),
        sheet=Sheet(_HEADER, tuple(_values(gain, metric) for gain in ordered)),
        notes=(*notes, *([f"No test curves: {joined(without)}."] if without else [])),
    )


def _row(title: str, gain: Peeking) -> Row:
    left_out = f"({gain.left_out} left out)" if gain.left_out else ""
    scores = [measured_cell(interval, PERCENT) for interval in (gain.honest, gain.peeked)]
    return Row.single(title, (Cell(gain.n), *scores, measured_cell(gain.gain, PERCENT, note=left_out)), gain.method)


def _values(gain: Peeking, metric: str) -> tuple[Value, ...]:
    intervals = (gain.honest, gain.peeked, gain.gain)
    values = (value for interval in intervals for value in (interval.mean, interval.half_width))
    return (gain.method, metric, gain.n, gain.left_out, *values)
