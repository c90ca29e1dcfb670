"""Table of the methods' costs: training steps up to the checkpoint, and time."""

from collections.abc import Sequence

from reports.tables.table import Cell, Column, NumberFormat, Row, Sheet, Table, measured_cell
from results.records.records import RunRecord
from results.statistics.finding import origin_findings
from results.statistics.intervals import Interval, student_t_interval
from results.store.experiment_results import MeasuredExperiment
from results.wording import joined

_HEADER = (
    *("method", "n", "models", "steps", "steps_half_width", "seconds", "seconds_half_width", "seconds_in_all"),
    "devices",
)
_STEPS = NumberFormat(digits=0, thousands=True)
_SECONDS = NumberFormat(digits=1, thousands=True)
_HOURS = NumberFormat(digits=2)


def costs(measured: MeasuredExperiment) -> Table:
    """Build the table of costs, with one row per method that has runs."""
    titles = measured.summary.methods
    runs = {key: [record for record in measured.records if record.method == key] for key in titles}
    measured_runs = {key: records for key, records in runs.items() if records}
    rows, values = [], []
    for key, records in measured_runs.items():
        steps, seconds = _steps(records), student_t_interval([run.wall_time for run in records])
        total = sum(run.wall_time for run in records)
        devices = ", ".join(sorted({run.provenance.device for run in records}))
        models = len(records[0].fold_fingerprints)
        times = (measured_cell(steps, _STEPS), measured_cell(seconds, _SECONDS), Cell(total / 3600, form=_HOURS))
        rows.append(Row.single(titles[key], (Cell(len(records)), Cell(models), *times, Cell(devices)), key))
        step = (None, None) if steps is None else (steps.mean, steps.half_width)
        values.append((key, len(records), models, *step, seconds.mean, seconds.half_width, total, devices))
    without = [titles[key] for key, records in measured_runs.items() if _steps(records) is None]
    return Table(
        title=f"{measured.summary.title}: cost of the methods",
        caption="Mean ± half width of the 95 % Student-t interval over n runs. Steps: iterations up to a model's "
        "checkpoint. Seconds: a run's trainings and its test evaluation, added up. Compare times only between runs on "
        "equal machines.",
        columns=(
            *(Column(name) for name in ("n", "models", "steps a model", "seconds a run", "hours in all")),
            Column("device", numeric=False),
        ),
        rows=tuple(rows),
        sheet=Sheet(_HEADER, tuple(values)),
        notes=(
            *(finding.sentences for finding in origin_findings(measured)),
            *([f"Steps were not recorded: {joined(without)}."] if without else []),
        ),
    )


def _steps(runs: Sequence[RunRecord]) -> Interval | None:
    steps = [run.steps / len(run.fold_fingerprints) for run in runs if run.steps is not None]
    return student_t_interval(steps) if len(steps) == len(runs) else None
