"""A result table: one row per method, mean with its interval over runs, as Markdown, CSV and LaTeX."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from results.intervals import Interval, student_t_interval
from results.measured import MeasuredExperiment
from results.records import RunRecord

METRICS = {"precision_at_1": "P@1", "r_precision": "RP", "map_at_r": "MAP@R"}
VARIANTS = ("separated", "concatenated")

_LATEX = str.maketrans(
    {
        **{sign: "\\" + sign for sign in "&%_#${}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
    }
)


@dataclass(frozen=True)
class Row:
    """One method. cells: by (variant, metric), an interval over runs, as fractions of 1. notes: flags of its runs."""

    key: str
    title: str
    n: int
    dimensions: tuple[int, int]
    cells: Mapping[tuple[str, str], Interval]
    notes: tuple[str, ...] = ()


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

    def to_markdown(self) -> str:
        """A pipe table; percentages, mean ± half width of the 95 % interval."""
        head = ["Method", "n", *(f"{variant} {METRICS[metric]}" for variant, metric in _columns())]
        lines = [f"**{self.title}**", "", "| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
        for row in self.rows:
            title = row.title.replace("|", r"\|") + _mark(row)
            cells = [title, str(row.n), *(_text(row.cells[column], "±") for column in _columns())]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join([*lines, "", self.caption, *(f"\n- {note}" for note in self.notes)]) + "\n"

    def to_csv(self) -> str:
        """One line per cell, as fractions of 1, at full precision: nothing is lost to rounding."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(["method", "variant", "metric", "dimensions", "mean", "ci95_half_width", "n"])
        for row in self.rows:
            for variant, metric in _columns():
                cell = row.cells[variant, metric]
                half = "" if cell.half_width is None else repr(cell.half_width)
                dimensions = row.dimensions[VARIANTS.index(variant)]
                writer.writerow([row.key, variant, metric, dimensions, repr(cell.mean), half, cell.n])
        return buffer.getvalue()

    def to_latex(self) -> str:
        """A booktabs table that compiles as it is in a document with `\\usepackage{booktabs}`."""
        groups = " & ".join(rf"\multicolumn{{3}}{{c}}{{{variant.capitalize()}}}" for variant in VARIANTS)
        names = " & ".join(["Method", "$n$", *(METRICS[metric] for _, metric in _columns())])
        caption = " ".join([f"{self.title}.", self.caption, *self.notes])
        body = []
        for row in self.rows:
            cells = [_escape(row.title) + _mark(row), str(row.n)]
            cells += [f"${_text(row.cells[column], chr(92) + 'pm')}$" for column in _columns()]
            body.append(" & ".join(cells) + r" \\")
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{_escape(caption)}}}",
                r"\begin{tabular}{lrrrrrrr}",
                r"\toprule",
                rf"& & {groups} \\",
                r"\cmidrule(lr){3-5}\cmidrule(lr){6-8}",
                rf"{names} \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    @property
    def notes(self) -> list[str]:
        """What a reader must know beside the numbers."""
        notes = [f"* {row.title}: {note}" for row in self.rows for note in row.notes]
        if self.missing:
            notes.append("Partial: " + "; ".join(self.missing) + ".")
        return notes


def table_of(measured: MeasuredExperiment) -> ResultTable:
    """The table of an experiment, from a store or from a file of records."""
    known = measured.summary
    return build_table(
        measured.records,
        known["methods"],
        known["title"],
        reproductions=known["reproductions"],
        trials=known["trials"],
        runs=known.get("runs"),
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
    rows, missing = [], []
    for key, method_title in methods.items():
        own = [record for record in records if record.method == key]
        asked = (runs or {}).get(key, 1)
        if own:
            dimensions = own[0].dimensions
            suffix = "" if dimensions == _trained_dimensions(records) else f" ({dimensions}-dim)"
            rows.append(_row(key, method_title + suffix, own))
        if not own:
            missing.append(f"{method_title} was not run to the end")
        elif len(own) < asked:
            missing.append(f"{method_title} has {len(own)} of {asked} runs")
    return ResultTable(title, _caption(records, reproductions, trials), tuple(rows), tuple(missing))


def _row(key: str, title: str, runs: Sequence[RunRecord]) -> Row:
    cells = {
        (variant, metric): student_t_interval([getattr(getattr(run, variant), metric) for run in runs])
        for variant, metric in _columns()
    }
    first = runs[0]
    notes = tuple(f"run {run.run}, {flag}" for run in runs for flag in run.flags)
    dimensions = (first.dimensions, first.dimensions * len(first.fold_fingerprints))
    return Row(key, title, len(runs), dimensions, cells, notes)


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


def _columns() -> list[tuple[str, str]]:
    return [(variant, metric) for variant in VARIANTS for metric in METRICS]


def _text(cell: Interval, sign: str) -> str:
    mean = f"{100 * cell.mean:.2f}"
    return mean if cell.half_width is None else f"{mean} {sign} {100 * cell.half_width:.2f}"


def _mark(row: Row) -> str:
    return "*" if row.notes else ""


def _escape(text: str) -> str:
    """Text for LaTeX."""
    return text.translate(_LATEX)
