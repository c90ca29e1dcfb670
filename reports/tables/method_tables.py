"""Tables with rows for each method: what its search found, what it cost, and what peeking would gain."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from reports.tables.table import Cell, Column, Row, Sheet, Table, Value, measured_cell, short
from results.answer.intervals import student_t_interval
from results.findings.experiment import ExperimentAnswer
from results.findings.origin import origin_findings
from results.findings.peeking import Peeking, peeking
from results.findings.search import validation_scores
from results.numbers import PERCENT, NumberFormat
from results.records.records import RunRecord
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.store.experiment_results import MeasuredExperiment
from results.wording import joined

PublishedSettings = Mapping[str, Mapping[str, object]]
"""The hyperparameters that methods' sources report as best on the dataset, by method and target."""

_SETTING = NumberFormat(digits=4, significant=True)
_STEPS = NumberFormat(digits=0, thousands=True)
_SECONDS = NumberFormat(digits=1, thousands=True)


def hyperparameters(found: ExperimentAnswer, published: PublishedSettings | None = None) -> Table:
    """Build the table of the settings found beside published ones: a row per search of a method, its settings below."""
    measured, titles = found.measured, found.titles
    rows: list[Row] = []
    lines: list[tuple[Value, ...]] = []
    for key in (key for key in titles if key in measured.runs):
        of_source = (published or {}).get(key, {})
        for search, of_search in groupby(sorted(measured.runs[key], key=_search), _search):
            runs = list(of_search)
            if not (settings := runs[0].hyperparameters):
                continue
            means = validation_scores(measured, runs)
            score = student_t_interval(means) if means else None
            cells = (Cell(), Cell(), measured_cell(score, PERCENT), Cell(score.n if score else None))
            title = f"{titles[key]}, search {search + 1}" if measured.repeats_searches else titles[key]
            rows.append(Row(title, cells, key))
            of_score: tuple[Value, ...] = (None, None, None)
            if score:
                half_width = None if score.half_width is None else short(100 * score.half_width)
                of_score = (short(100 * score.mean), half_width, score.n)
            for name, setting in settings.items():
                own, source = _setting_cell(setting), _setting_cell(of_source.get(name))
                rows.append(Row(name, (own, source, Cell(), Cell()), key, below=True))
                lines.append((titles[key], search + 1, name, own.value, source.value, *of_score))
    ours_is = "the setting of the best trial" if measured.plan.trials else "the given setting"
    header = ("Method", "search", "hyperparameter", "ours", "published")
    several = any(row.cells[2].half_width is not None for row in rows)
    meanings = {
        "ours": f"Ours: {ours_is}.",
        "published": "Published: the best setting that the method's source reports for the dataset.",
        "validation MAP@R": "Validation MAP@R: in percent, of the n reproductions"
        + (", ± half width of the 95 % Student-t interval." if several else "."),
        "n": "",
    }
    columns = tuple(Column(name) for name in meanings)
    table = Table(
        title=f"{measured.plan.title}: hyperparameters found",
        caption="",
        columns=columns,
        rows=tuple(rows),
        own_sheet=Sheet((*header, "validation MAP@R", "validation MAP@R ±", "n"), tuple(lines)),
        notes=tuple(finding.sentences for finding in found.findings if finding.where == "search"),
    )
    return _without_empty_columns(table, meanings)


def _without_empty_columns(table: Table, meanings: Mapping[str, str]) -> Table:
    """The table with the columns that something is in, and with what these mean as its caption."""
    known = [name for name in meanings if any(cell.value not in (None, "") for cell in table.column(name))]
    return replace(table.with_columns(known), caption=" ".join(filter(None, map(meanings.get, known))))


def _search(run: RunRecord) -> int:
    return run.search


def _setting_cell(setting: object) -> Cell:
    if isinstance(setting, float):
        return Cell(setting, form=_SETTING)
    if isinstance(setting, int) and not isinstance(setting, bool):
        return Cell(setting)
    return Cell("" if setting is None else str(setting))


def recipes(found: ExperimentAnswer) -> Table:
    """Build the table of what the methods' cards decide about training and search; no rows without known recipes."""
    plan = found.measured.plan
    words = {key: row.recipe.words(row.ranges) for key, row in plan.rows.items() if row.recipe}
    names = next(iter(words.values()), {})
    rows = [Row(found.titles[key], [*map(Cell, words[key].values())], key) for key in found.titles if key in words]
    return Table(
        title=f"{plan.title}: what decides a fair comparison",
        caption="What each method's card decides. All else is the same for all methods (Protocol and settings).",
        columns=tuple(Column(name, numeric=False) for name in names),
        rows=tuple(rows),
    )


def costs(found: ExperimentAnswer) -> Table:
    """Build the table of costs: training steps up to the checkpoint, and time; without columns that nothing is in."""
    measured = found.measured
    rows: list[Row] = []
    without: list[str] = []
    for key, title in ((key, title) for key, title in measured.plan.titles.items() if key in measured.runs):
        own = measured.runs[key]
        steps = _steps(own)
        devices = ", ".join(sorted({run.provenance.device for run in own}))
        times = (
            _cost_cell(steps, _STEPS),
            _cost_cell(_milliseconds_a_step(measured, own), _SECONDS),
            _cost_cell([run.wall_time for run in own], _SECONDS),
        )
        rows.append(Row(title, (Cell(len(own)), Cell(len(own[0].fold_fingerprints)), *times, Cell(devices)), key))
        without += [] if steps else [title]
    meanings = {
        "n": "Mean ± half width of the 95 % Student-t interval over n runs; without ± where that reaches below zero.",
        "models": "",
        "steps a model": "Steps: iterations up to a model's checkpoint.",
        "ms a step": "ms a step: the time of a run's trainings with their validations, by all of their steps.",
        "seconds a run": "Seconds: a run's trainings and its test evaluation, added up, without the search.",
        "device": "Compare times only between runs on equal machines.",
    }
    table = Table(
        title=f"{measured.plan.title}: cost of the methods",
        caption="",
        columns=tuple(Column(name, numeric=name != "device") for name in meanings),
        rows=tuple(rows),
        notes=(
            *(finding.sentences for finding in origin_findings(measured)),
            *([f"Steps were not recorded: {joined(without)}."] if without else []),
        ),
    )
    return _without_empty_columns(table, meanings)


def _cost_cell(values: Sequence[float], form: NumberFormat) -> Cell:
    """Write a mean over runs; no cost is below zero, so an interval that is has no room beside it."""
    if not values:
        return Cell()
    interval = student_t_interval(values)
    below_zero = interval.half_width is not None and interval.half_width > interval.mean
    return measured_cell(replace(interval, half_width=None) if below_zero else interval, form)


def _milliseconds_a_step(measured: MeasuredExperiment, runs: Sequence[RunRecord]) -> list[float]:
    """Return the milliseconds of a training's step in each run whose trainings are all known and took steps."""
    known = []
    for run in runs:
        results = [measured.trainings[name] for name in run.fold_fingerprints if name in measured.trainings]
        if len(results) == len(run.fold_fingerprints) and (steps := sum(result.iterations for result in results)):
            known.append(1000 * math.fsum(result.wall_time for result in results) / steps)
    return known


def _steps(runs: Sequence[RunRecord]) -> list[float]:
    """Return the steps of a model in each run; none if one is not known."""
    steps = [run.steps / len(run.fold_fingerprints) for run in runs if run.steps is not None]
    return steps if len(steps) == len(runs) else []


def peeking_table(found: ExperimentAnswer) -> Table:
    """Build the table of the gain by peeking, of methods whose runs have test curves and a checkpoint to choose."""
    measured = found.measured
    titles, metric = measured.plan.titles, measured.plan.experiment.peeking_metric
    gains = {gain.method: gain for gain in peeking(found, measured, metric)}
    shown = [gains[key] for key in titles if key in gains and not gains[key].nothing_to_choose]
    rows = []
    for gain in shown:
        intervals = (gain.honest, gain.peeked, gain.gain)
        notes = ("", "", f"({gain.left_out} left out)" if gain.left_out else "")
        cells = [measured_cell(one, PERCENT, note=note) for one, note in zip(intervals, notes, strict=True)]
        rows.append(Row(titles[gain.method], (Cell(gain.n), *cells), gain.method))
    over = "the complete searches, which have n runs in all" if found.sample.of_searches else "n runs"
    return Table(
        title=f"{measured.plan.title}: gain from peeking",
        caption=f"Separated {HEADLINE_METRICS[metric]} on the test classes in percent, mean ± half width "
        f"of the 95 % interval over {over}. Honest: the checkpoint chosen by validation scores. Peeked: "
        "the best test score during the same training, which an honest protocol must not report.",
        columns=tuple(Column(name) for name in ("n", "honest", "peeked", "gain")),
        rows=tuple(rows),
        notes=(*(finding.sentences for finding in origin_findings(measured)), *_not_shown(titles, gains)),
    )


def _not_shown(titles: Mapping[str, str], gains: Mapping[str, Peeking]) -> Iterator[str]:
    """Name the methods that gain nothing by peeking since there was nothing to choose, or that have no test curves."""
    if hidden := [title for key, title in titles.items() if key in gains and gains[key].nothing_to_choose]:
        yield f"Not shown: {joined(hidden)}. All trainings were cut off, so there was nothing to choose."
    if without := [title for key, title in titles.items() if key not in gains]:
        yield f"No test curves (`test_curves: true` records them): {joined(without)}."
