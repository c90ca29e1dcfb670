"""The kept record of the benchmark, and its table for the terminal and for the docs."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from results.records.provenance import processor, provenance
from results.records.records import Provenance
from results.store.experiment_results import FOLDER
from results.values import Record
from results.whole_files import write_whole
from tests.benchmarks.bench_rows import BenchRow

RECORD = FOLDER / "bench_cpu.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "speed.md"
START, END = "<!-- table: bench -->", "<!-- end of table -->"
HEADS = ("what", "ours", "peer", "ratio", "bar", "met")


class SubjectRecord(Record):
    """The comparisons of one subject, measured together.

    Attributes:
        subject: Name of the subject.
        took: Duration of the whole measurement in seconds.
        rows: The comparisons.
        provenance: Origin of the rows. Its device is the model of the processor.
    """

    subject: str
    took: float
    rows: tuple[BenchRow, ...]
    provenance: Provenance

    @property
    def rounds(self) -> str:
        """Number of rounds of its rows, in words; rows can have different ones."""
        counts = [len(row.ours_seconds) for row in self.rows if row.ours_seconds] or [0]
        least, most = min(counts), max(counts)
        return counted(most) if least == most else f"{least} to {most} rounds"


class BenchRecord(Record):
    """All subjects, each with the origin of its latest measurement."""

    subjects: tuple[SubjectRecord, ...] = ()

    @classmethod
    def load(cls, path: Path = RECORD) -> "BenchRecord":
        """Read a record; an empty one if the file does not exist."""
        return cls.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else cls()

    def save(self, path: Path = RECORD) -> None:
        """Write the record in one step."""
        write_whole(path, self.model_dump_json(indent=1) + "\n")

    def with_subject(self, measured: SubjectRecord, order: Sequence[str]) -> "BenchRecord":
        """Return a record in which a subject is replaced, with the subjects in the given order."""
        others = {subject.subject: subject for subject in self.subjects} | {measured.subject: measured}
        return BenchRecord(subjects=tuple(others[name] for name in order if name in others))

    def took(self, subject: str) -> float | None:
        """Return how long a subject took the last time, in seconds; None if it was never measured."""
        return next((known.took for known in self.subjects if known.subject == subject), None)


def measured_subject(subject: str, took: float, rows: Sequence[BenchRow], threads: int) -> SubjectRecord:
    """Return the record of rows that were measured now."""
    origin = provenance(processor() or "cpu", threads)
    return SubjectRecord(subject=subject, took=took, rows=tuple(rows), provenance=origin)


def _amount(values: Sequence[float], unit: str) -> str:
    if not values:
        return "-"
    value = statistics.median(values)
    if unit != "s":
        return f"{value:,.0f} {unit}"
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.3g} ms"


def cells(row: BenchRow) -> tuple[str, ...]:
    """Return the cells of a row: medians of the rounds, and the ratio with its smallest and largest value."""
    ratios = row.ratios
    direction = "ours / peer" if row.kind == "ours" else row.kind
    spread = "-"
    if ratios:
        spread = f"{direction}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    bar = row.bar + ("" if row.kind == "ours" else f" ({row.kind})")
    return (
        row.name,
        _amount(row.ours_seconds, row.unit),
        _amount(row.peer_seconds, row.unit),
        spread,
        bar,
        {True: "yes", False: "no", None: "not measured"}[row.met],
    )


def counted(number: int, what: str = "round") -> str:
    """Return a number with its noun."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def terminal_table(subject: SubjectRecord) -> Table:
    """Return the table of a subject for the terminal."""
    table = Table(title=f"{subject.subject}, {subject.rounds}")
    for head in HEADS:
        table.add_column(head)
    for row in subject.rows:
        table.add_row(*cells(row))
    return table


def as_markdown(record: BenchRecord) -> str:
    """Return all tables for the docs, with the origin of each and how equality was checked."""
    parts = []
    for subject in record.subjects:
        origin = subject.provenance
        cores = f"{origin.cpu_count} cores, {counted(origin.threads, 'thread')}"
        changed = ", with uncommitted changes" if origin.tree_dirty else ""
        lines = [
            f"### {subject.subject[0].upper()}{subject.subject[1:]}",
            "",
            f"| {' | '.join(HEADS)} |",
            f"|{' --- |' * len(HEADS)}",
            *(f"| {' | '.join(cells(row))} |" for row in subject.rows),
            "",
            f"{subject.rounds} on {origin.device} ({cores}), "
            f"{origin.finished_at[:10]}, commit {origin.commit[:12]}{changed}, torch {origin.versions['torch']}, "
            f"pytorch-metric-learning {origin.versions['pytorch-metric-learning']}.",
            "",
            "Checked:",
            "",
            *(f"- {row.name}: {row.equal}." for row in subject.rows),
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def write_page(record: BenchRecord, page: Path = PAGE) -> None:
    """Put the tables of a record between the marks of the docs' page."""
    before, rest = page.read_text(encoding="utf-8").split(START)
    after = rest.split(END)[1]
    write_whole(page, f"{before}{START}\n\n{as_markdown(record)}\n\n{END}{after}")
