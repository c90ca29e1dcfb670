"""What the methods cost: steps of training up to a model's checkpoint, and time."""

from collections.abc import Sequence

from reports.tables.table import Cell, Column, Drawing, Sheet, number, plain_rows
from results.experiment_results import MeasuredExperiment
from results.records import RunRecord
from results.statistics.intervals import Interval, student_t_interval

_HEADER = (
    *("method", "n", "models", "steps", "steps_half_width", "seconds", "seconds_half_width", "seconds_in_all"),
    "devices",
)


def costs(measured: MeasuredExperiment) -> Drawing:
    """One row per method: steps to a model's checkpoint, and seconds of a run's trainings and test evaluation."""
    titles: dict[str, str] = measured.summary["methods"]
    runs = {key: [record for record in measured.records if record.method == key] for key in titles}
    known = {key: own for key, own in runs.items() if own}
    cells, values = [], []
    for key, own in known.items():
        steps, seconds = _steps(own), student_t_interval([run.wall_time for run in own])
        total = sum(run.wall_time for run in own)
        devices = ", ".join(sorted({run.provenance.device for run in own}))
        models = len(own[0].fold_fingerprints)
        counts = [Cell(str(len(own))), Cell(str(models))]
        cells.append([*counts, number(steps, "{:,.0f}"), number(seconds, "{:,.1f}"), _hours(total), Cell(devices)])
        step = (None, None) if steps is None else (steps.mean, steps.half_width)
        values.append((key, len(own), models, *step, seconds.mean, seconds.half_width, total, devices))
    without = [titles[key] for key, own in known.items() if _steps(own) is None]
    return Drawing(
        title=f"{measured.summary['title']}: what the methods cost",
        caption="Steps: iterations to a model's checkpoint, mean over a run's models. Seconds: of a run's trainings "
        "and its test evaluation, one after another. Mean ± half width of the 95 % Student-t interval over n runs; "
        "times compare on equal machines only.",
        columns=(
            *(Column(name) for name in ("n", "models", "steps a model", "seconds a run", "hours in all")),
            Column("device", numeric=False),
        ),
        rows=plain_rows([titles[key] for key in known], cells),
        sheet=Sheet(_HEADER, tuple(values)),
        notes=(f"Steps were not recorded: {', '.join(without)}.",) if without else (),
    )


def _steps(runs: Sequence[RunRecord]) -> Interval | None:
    steps = [run.steps / len(run.fold_fingerprints) for run in runs if run.steps is not None]
    return student_t_interval(steps) if len(steps) == len(runs) else None


def _hours(seconds: float) -> Cell:
    return Cell(f"{seconds / 3600:.2f}")
