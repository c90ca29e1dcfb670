"""The hyperparameters that our searches found beside those that MLRC published, with validation scores."""

from collections.abc import Mapping, Sequence

import numpy as np

from reports.tables.table import Cell, Column, Drawing, Sheet, Value, percent, plain_rows
from results.experiment_results import MeasuredExperiment
from results.published.searches import PublishedOptimum, mlrc_search_optima
from results.records import RunRecord
from results.statistics.intervals import Interval, student_t_interval

PrintedNames = Mapping[str, Mapping[str, str]]
_SEARCHED = ("cub200", "cars196", "sop")
_HEADER = (
    *("method", "parameter", "ours", "mlrc", "mlrc_printed", "validation_map_at_r", "validation_half_width", "n"),
    "mlrc_validation_map_at_r",
)


def hyperparameters(measured: MeasuredExperiment, printed_names: PrintedNames | None = None) -> Drawing:
    """One row per hyperparameter of every method, with its mean validation MAP@R in the first.

    measured: with trainings, or there are no validation scores. printed_names: MLRC's names of parameters by method,
    where they differ from the last part of ours.
    """
    titles = measured.summary.methods
    heads, cells, values = [], [], []
    for key, title in titles.items():
        own = [record for record in measured.records if record.method == key]
        for place, (parameter, setting) in enumerate(own[0].hyperparameters.items() if own else ()):
            name = (printed_names or {}).get(key, {}).get(parameter, parameter.rpartition(".")[2])
            optimum = _optimum(own[0].dataset, key, name)
            score = _validation(measured, own)
            heads.append(f"{title}: {parameter}")
            cells.append(_cells(setting, optimum, score, first=place == 0))
            values.append(_values(key, parameter, setting, optimum, score))
    return Drawing(
        title=f"{measured.summary.title}: hyperparameters found",
        caption="Ours: the setting of the best trial, and the validation MAP@R in percent, mean over folds, of the n "
        "reproductions trained with it, ± half width of the 95 % Student-t interval. MLRC: the optimum of its search "
        "and that trial's own score, which is the highest of all trials and so a little too high.",
        columns=(Column("ours"), Column("MLRC"), Column("validation MAP@R"), Column("n"), Column("MLRC's")),
        rows=plain_rows(heads, cells),
        sheet=Sheet(_HEADER, tuple(values)),
        first="Method: hyperparameter",
    )


def _optimum(dataset: str, method: str, parameter: str) -> PublishedOptimum | None:
    if dataset not in _SEARCHED:
        return None
    found = (one for one in mlrc_search_optima(dataset) if (one.method, one.parameter) == (method, parameter))
    return next(found, None)


def _validation(measured: MeasuredExperiment, runs: Sequence[RunRecord]) -> Interval | None:
    """Over the runs whose trainings all have a validation score; None without one."""
    means = []
    for run in runs:
        results = [measured.trainings[name][1] for name in run.fold_fingerprints if name in measured.trainings]
        scores = [result.best_map_at_r for result in results if result.best_map_at_r is not None]
        if scores and len(scores) == len(run.fold_fingerprints):
            means.append(float(np.mean(scores)))
    return student_t_interval(means) if means else None


def _cells(setting: object, optimum: PublishedOptimum | None, score: Interval | None, *, first: bool) -> list[Cell]:
    ours = f"{setting:.4g}" if isinstance(setting, float) else str(setting)
    known = None if optimum is None else optimum.best_map_at_r
    return [
        Cell(ours),
        Cell("" if optimum is None else optimum.printed),
        percent(score if first else None),
        Cell(str(score.n) if first and score else ""),
        Cell(f"{100 * known:.2f}" if first and known is not None else ""),
    ]


def _values(
    key: str, parameter: str, setting: object, optimum: PublishedOptimum | None, score: Interval | None
) -> tuple[Value, ...]:
    ours = setting if isinstance(setting, str | int | float) else None
    validation = (None, None, None) if score is None else (score.mean, score.half_width, score.n)
    published = (None, None) if optimum is None else (optimum.value, optimum.printed)
    return (key, parameter, ours, *published, *validation, None if optimum is None else optimum.best_map_at_r)
