"""Table of the hyperparameters that our searches found, beside those that MLRC published."""

from collections.abc import Mapping, Sequence

from reports.tables.table import PERCENT, Cell, Column, NumberFormat, Row, Sheet, Table, Value, measured_cell
from results.published.searches import PublishedOptimum, mlrc_search_optima
from results.records.records import RunRecord
from results.statistics.cut_off import validation_scores
from results.statistics.finding import titles_of
from results.statistics.intervals import Interval, student_t_interval
from results.statistics.primary_comparison import primary_comparison
from results.statistics.search_findings import search_findings
from results.store.experiment_results import MeasuredExperiment

PublishedNames = Mapping[str, Mapping[str, str]]
"""MLRC's names of hyperparameters, by method and then by our name."""

_SEARCHED = ("cub200", "cars196", "sop")
_HEADER = (
    *("method", "parameter", "ours", "mlrc", "mlrc_printed", "validation_map_at_r", "validation_half_width", "n"),
    *("mlrc_validation_map_at_r", "search"),
)
_SETTING = NumberFormat(digits=4, significant=True)


def hyperparameters(measured: MeasuredExperiment, published_names: PublishedNames | None = None) -> Table:
    """Build the table with one row per hyperparameter of every method and search."""
    titles = titles_of(measured)
    rows, values = [], []
    for (key, search), records in _by_search(measured).items():
        title = f"{titles[key]}, search {search}" if measured.repeats_searches else titles[key]
        for index, (parameter, setting) in enumerate(records[0].hyperparameters.items()):
            name = (published_names or {}).get(key, {}).get(parameter, parameter.rpartition(".")[2])
            optimum = _optimum(records[0].dataset, key, name)
            score = _validation(measured, records)
            rows.append(Row.single(f"{title}: {parameter}", _cells(setting, optimum, score, first=index == 0)))
            values.append((*_values(key, parameter, setting, optimum, score), search))
    ours = "the setting of the best trial" if measured.summary.trials else "the given setting"
    return Table(
        title=f"{measured.summary.title}: hyperparameters found",
        caption=f"Ours: {ours}, with the validation MAP@R in percent of its n reproductions, ± half width of the 95 % "
        "Student-t interval. MLRC: the best setting of its search and the score of that trial, which is a little too "
        "high as the highest of all.",
        columns=(Column("ours"), Column("MLRC"), Column("validation MAP@R"), Column("n"), Column("MLRC's")),
        rows=tuple(rows),
        sheet=Sheet(_HEADER, tuple(values)),
        first="Method: hyperparameter",
        notes=tuple(finding.sentences for finding in search_findings(measured, primary_comparison(measured))),
    )


def _by_search(measured: MeasuredExperiment) -> dict[tuple[str, int], list[RunRecord]]:
    groups: dict[tuple[str, int], list[RunRecord]] = {}
    for key in measured.summary.methods:
        own = [record for record in measured.records if record.method == key]
        for record in sorted(own, key=lambda record: record.search):
            groups.setdefault((key, record.search), []).append(record)
    return groups


def _optimum(dataset: str, method: str, parameter: str) -> PublishedOptimum | None:
    if dataset not in _SEARCHED:
        return None
    optima = mlrc_search_optima(dataset)
    return next((optimum for optimum in optima if (optimum.method, optimum.parameter) == (method, parameter)), None)


def _validation(measured: MeasuredExperiment, runs: Sequence[RunRecord]) -> Interval | None:
    means = validation_scores(measured, runs)
    return student_t_interval(means) if means else None


def _cells(setting: object, optimum: PublishedOptimum | None, score: Interval | None, *, first: bool) -> list[Cell]:
    validation = score if first else None
    published = optimum.best_map_at_r if first and optimum else None
    return [
        _setting(setting),
        Cell() if optimum is None else Cell(optimum.value, written=optimum.as_published),
        measured_cell(validation, PERCENT),
        Cell(None if validation is None else validation.n),
        Cell(published, form=PERCENT),
    ]


def _setting(setting: object) -> Cell:
    if isinstance(setting, float):
        return Cell(setting, form=_SETTING)
    return Cell(setting) if isinstance(setting, int) and not isinstance(setting, bool) else Cell(str(setting))


def _values(
    key: str, parameter: str, setting: object, optimum: PublishedOptimum | None, score: Interval | None
) -> tuple[Value, ...]:
    ours = setting if isinstance(setting, str | int | float) else None
    validation = (None, None, None) if score is None else (score.mean, score.half_width, score.n)
    published = (None, None) if optimum is None else (optimum.value, optimum.as_published)
    return (key, parameter, ours, *published, *validation, None if optimum is None else optimum.best_map_at_r)
