"""A result table: one row per method, mean with its interval over runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reports.tables.best_marks import column_marks
from reports.tables.formats import to_csv, to_latex, to_markdown
from reports.tables.table import Cell, Column, Drawing, Mark, Sheet, percent, plain_rows
from results.experiment_results import MeasuredExperiment
from results.records import RunRecord
from results.statistics.intervals import Interval, student_t_interval
from results.statistics.run_values import Variant, run_values

METRICS = {"precision_at_1": "P@1", "r_precision": "RP", "map_at_r": "MAP@R"}
VARIANTS: tuple[Variant, ...] = ("separated", "concatenated")


@dataclass(frozen=True)
class Row:
    """One method.

    cells: by (variant, metric), an interval over runs, as fractions of 1. notes: flags of its runs. marks: likewise,
    whether the number is the best of its column or not to be told from it.
    """

    key: str
    title: str
    n: int
    dimensions: tuple[int, int]
    cells: Mapping[tuple[str, str], Interval]
    notes: tuple[str, ...] = ()
    marks: Mapping[tuple[str, str], Mark] = field(default_factory=dict)


@dataclass(frozen=True)
class ResultTable:
    """Rows and the sentences that say what they are."""

    title: str
    caption: str
    rows: tuple[Row, ...]
    missing: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Every method of the experiment has all of its runs."""
        return not self.missing

    def drawing(self) -> Drawing:
        """The table to be written in any format."""
        columns = [Column("n"), *(Column(METRICS[metric], group=variant) for variant, metric in _columns())]
        cells = [
            [Cell(str(row.n)), *(percent(row.cells[place], row.marks.get(place, "")) for place in _columns())]
            for row in self.rows
        ]
        heads = [row.title + ("*" if row.notes else "") for row in self.rows]
        rows, sheet = plain_rows(heads, cells), self._sheet()
        return Drawing(self.title, self.caption, tuple(columns), rows, sheet, notes=tuple(self.notes))

    def to_markdown(self) -> str:
        """A pipe table; percentages, mean ± half width of the 95 % interval."""
        return to_markdown(self.drawing())

    def to_csv(self) -> str:
        """One line per cell, as fractions of 1, at full precision: nothing is lost to rounding."""
        return to_csv(self.drawing())

    def to_latex(self) -> str:
        """A booktabs table that compiles as it is in a document with `\\usepackage{booktabs}`."""
        return to_latex(self.drawing())

    @property
    def notes(self) -> list[str]:
        """What a reader must know beside the numbers."""
        notes = [f"* {row.title}: {note}" for row in self.rows for note in row.notes]
        if self.missing:
            notes.append("Partial: " + "; ".join(self.missing) + ".")
        return notes

    def _sheet(self) -> Sheet:
        values = []
        for row in self.rows:
            for place in _columns():
                cell, (variant, metric) = row.cells[place], place
                dimensions = row.dimensions[VARIANTS.index(variant)]
                values.append((row.key, variant, metric, dimensions, cell.mean, cell.half_width, cell.n))
        return Sheet(("method", "variant", "metric", "dimensions", "mean", "ci95_half_width", "n"), tuple(values))


def table_of(measured: MeasuredExperiment) -> ResultTable:
    """The table of an experiment, from a store or from a file of records."""
    summary = measured.summary
    return build_table(
        measured.records,
        summary.methods,
        summary.title,
        reproductions=summary.reproductions,
        trials=summary.trials,
        runs=summary.runs,
    )


def build_table(
    records: Sequence[RunRecord],
    methods: Mapping[str, str],
    title: str,
    reproductions: int,
    trials: int,
    runs: Mapping[str, int] | None = None,
) -> ResultTable:
    """The table of an experiment's runs.

    methods: titles by key, in the order of the rows. A method without runs has no row and is named as missing; nothing
    is filled in. reproductions, trials: what the experiment asks for. runs: the same
    by method, where it differs.
    """
    rows, missing, marks = [], [], _marks([record for record in records if record.method in methods])
    for key, method_title in methods.items():
        own = [record for record in records if record.method == key]
        asked = (runs or {}).get(key, 1)
        if own:
            dimensions = own[0].dimensions
            suffix = "" if dimensions == _trained_dimensions(records) else f" ({dimensions}-dim)"
            rows.append(_row(key, method_title + suffix, own, marks))
        if not own:
            missing.append(f"{method_title} was not run to the end")
        elif len(own) < asked:
            missing.append(f"{method_title} has {len(own)} of {asked} runs")
    return ResultTable(title, _caption(records, reproductions, trials), tuple(rows), tuple(missing))


def _marks(records: Sequence[RunRecord]) -> dict[tuple[str, str], dict[str, Mark]]:
    """By column and method: means are compared within each column."""
    return {(variant, metric): column_marks(run_values(records, metric, variant)) for variant, metric in _columns()}


def _row(key: str, title: str, runs: Sequence[RunRecord], marks: Mapping[tuple[str, str], Mapping[str, Mark]]) -> Row:
    cells: dict[tuple[str, str], Interval] = {
        (variant, metric): student_t_interval([getattr(getattr(run, variant), metric) for run in runs])
        for variant, metric in _columns()
    }
    first = runs[0]
    notes = tuple(f"run {run.run}, {flag}" for run in runs for flag in run.flags)
    dimensions = (first.dimensions, first.dimensions * len(first.fold_fingerprints))
    own = {place: column[key] for place, column in marks.items() if key in column}
    return Row(key, title, len(runs), dimensions, cells, notes, own)


def _caption(records: Sequence[RunRecord], reproductions: int, trials: int) -> str:
    if not records:
        return "No run of it is in the store."
    first, dimensions = records[0], _trained_dimensions(records)
    folds = len(first.fold_fingerprints)
    return (
        f"Dataset {first.dataset}: {first.test_images} images of {first.test_classes} test classes, never seen in "
        f"training or search. Percent, mean ± half width of the 95 % Student-t interval over n runs ({reproductions} "
        f"asked for). Hyperparameters from {trials} trials per method on validation MAP@R. Separated: mean of {folds} "
        f"{dimensions}-dim models; concatenated: their {folds * dimensions}-dim ensemble. Base seed {first.seed}."
    )


def _trained_dimensions(records: Sequence[RunRecord]) -> int:
    """Dimensions of one fold's embedding; the untrained trunk, which has its own, is the only method never searched."""
    return next((record for record in records if record.hyperparameters), records[0]).dimensions


def _columns() -> list[tuple[Variant, str]]:
    return [(variant, metric) for variant in VARIANTS for metric in METRICS]
