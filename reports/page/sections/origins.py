"""From records to a page: a result table's view, the origin of every run, the protocol as it was run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reports.page.content import (
    Cell,
    Column,
    Download,
    Environment,
    FoldOrigin,
    MethodOrigin,
    RunOrigin,
    Table,
    TableRow,
)
from reports.tables.result_table import METRICS, VARIANTS, ResultTable, Row
from results.records import RunRecord
from results.statistics.comparisons import verdict
from results.statistics.intervals import Interval

Place = tuple[str, str, str]
"""A number of a result table: method, variant, metric."""


@dataclass(frozen=True)
class Standing:
    """What comparisons say of one number.

    printed: the value a paper gives, a fraction of 1, with its source. rounding: half a unit of its last digit.
    """

    mark: Literal["", "best", "tied"] = ""
    printed: float | None = None
    source: str = ""
    rounding: float = 0.0


def table_view(
    table: ResultTable,
    records: Sequence[RunRecord],
    standings: Mapping[Place, Standing] | None = None,
    absent: Mapping[str, str] | None = None,
) -> Table:
    """A result table as the page shows it: percentages with their half width, each with its single runs behind it.

    standings: marks and printed values by place. absent: titles by key of methods without a run, shown as not run.
    A printed value is called inside or outside only where there is an interval.
    """
    known = standings or {}
    groups = [(variant, metric) for variant in VARIANTS for metric in METRICS]
    columns = (Column("n"), *(Column(METRICS[metric], group=variant) for variant, metric in groups))
    rows = []
    for row in table.rows:
        runs = [record for record in records if record.method == row.key]
        cells = [_cell(row, place, runs, known.get((row.key, *place), Standing())) for place in groups]
        count = Cell(str(row.n), sort=row.n)
        rows.append(TableRow(row.title, (count, *cells), sign="*" if row.notes else "", key=row.key))
    for key, title in (absent or {}).items():
        rows.append(TableRow(title, (Cell("0", sort=0), *(Cell(None) for _ in groups)), key=key))
    downloads = (
        Download("table.csv", "text/csv", table.to_csv()),
        Download("table.md", "text/markdown", table.to_markdown()),
        Download("table.tex", "application/x-tex", table.to_latex()),
    )
    return Table(table.title, columns, tuple(rows), table.caption, tuple(table.notes), downloads=downloads)


def _cell(row: Row, place: tuple[str, str], runs: Sequence[RunRecord], standing: Standing) -> Cell:
    interval = row.cells[place]
    variant, metric = place
    singles = ", ".join(f"{100 * getattr(getattr(run, variant), metric):.2f}" for run in runs)
    said = [f"{row.title}, {variant} {METRICS[metric]}", f"runs: {singles}"]
    if interval.low is not None and interval.high is not None:
        said.append(f"95 % Student-t interval: {100 * interval.low:.2f} to {100 * interval.high:.2f}, n = {interval.n}")
    else:
        said.append("one run: no interval")
    if standing.printed is not None:
        source = f" ({standing.source})" if standing.source else ""
        said.append(f"printed: {100 * standing.printed:.2f}{source}")
    return Cell(
        text=f"{100 * interval.mean:.2f}",
        spread="" if interval.half_width is None else f"± {100 * interval.half_width:.2f}",
        sort=interval.mean,
        mark=standing.mark,
        verdict=_verdict(interval, standing),
        tooltip="\n".join(said),
    )


def _verdict(interval: Interval, standing: Standing) -> Literal["", "inside", "outside"]:
    said = verdict(interval, standing.printed, standing.rounding)
    if said == "inside":
        return "inside"
    return "outside" if said in ("above", "below") else ""


def origins_of(
    records: Sequence[RunRecord], titles: Mapping[str, str], folds: Mapping[str, FoldOrigin] | None = None
) -> tuple[MethodOrigin, ...]:
    """Every run of the methods in `titles` (by key), in that order, with the names of its trainings.

    folds: more about a training, by its fingerprint, where a store knows it.
    """
    found = []
    for key, title in titles.items():
        runs = sorted((record for record in records if record.method == key), key=lambda record: record.run)
        if runs:
            origins = tuple(_run_origin(run, folds or {}) for run in runs)
            setting = {name: str(value) for name, value in runs[0].hyperparameters.items()}
            found.append(MethodOrigin(key, title, setting, origins))
    return tuple(found)


def _run_origin(run: RunRecord, folds: Mapping[str, FoldOrigin]) -> RunOrigin:
    made = run.provenance
    scores = tuple(
        (f"{variant} {METRICS[metric]}", f"{100 * getattr(getattr(run, variant), metric):.2f}")
        for variant in VARIANTS
        for metric in METRICS
    )
    machine = f"{made.host_system}, {_counted(made.cpu_count, 'CPU core')}, {_counted(made.threads, 'thread')}"
    environment = Environment(made.commit, made.tree_dirty, made.device, machine, tuple(made.versions.items()))
    return RunOrigin(
        run=run.run,
        fingerprint=run.fingerprint,
        seed=run.seed,
        wall_time=run.wall_time,
        finished_at=made.finished_at,
        environment=environment,
        folds=tuple(folds.get(name, FoldOrigin(name)) for name in run.fold_fingerprints),
        scores=scores,
        flags=run.flags,
    )


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
