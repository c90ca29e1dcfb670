"""The rows of the benchmark, their kept record, and the table of the docs."""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from results.records.provenance import processor, provenance
from results.records.records import Provenance
from results.store.experiment_results import FOLDER
from results.values import Record
from results.whole_files import write_whole

RECORD = FOLDER / "bench_cpu.json"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "speed.md"
START, END = "<!-- table: bench -->", "<!-- end of table -->"

Work = Callable[[], object]


class BenchRow(Record):
    """One comparison. The ratio of a round is taken between its two measurements, which were made next to each other.

    Attributes:
        name: What is measured, and against what: "ours / peer".
        ours: What the suite took in each round, in `unit`.
        peer: What the peer took in each round; empty without one.
        bar: Limit of `ours`, or of peer / ours: how many times as fast. None where there is no bar.
        unit: `s`, or `MiB` for memory.
    """

    name: str
    ours: tuple[float, ...]
    peer: tuple[float, ...] = ()
    bar: float | None = None
    unit: Literal["s", "MiB"] = "s"

    @property
    def met(self) -> bool | None:
        """Whether the median meets the bar; None without a bar."""
        if self.bar is None:
            return None
        return statistics.median(self.times) >= self.bar if self.peer else statistics.median(self.ours) <= self.bar

    @property
    def times(self) -> list[float]:
        """How many times as fast the suite was in each round; empty without a peer."""
        return [peer / ours for ours, peer in zip(self.ours, self.peer, strict=True)] if self.peer else []

    def as_markdown(self) -> str:
        """The row of the docs: medians, and the smallest and largest ratio in brackets."""
        ratio, bar, times = "-", "-", self.times
        if times:
            ratio = f"{statistics.median(times):.3g} ({min(times):.3g} to {max(times):.3g})"
        if self.bar is not None:
            bar = f"at least {self.bar:g}" if self.peer else f"at most {self.bar:g} {self.unit}"
            bar += ", met" if self.met else ", missed"
        return f"| {self.name} | {_amount(self.ours, self.unit)} | {_amount(self.peer, self.unit)} | {ratio} | {bar} |"


def _amount(values: Sequence[float], unit: str) -> str:
    if not values:
        return "-"
    value = statistics.median(values)
    if unit == "MiB":
        return f"{value:,.0f} MiB"
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.3g} ms"


class SubjectRecord(Record):
    """The rows of one subject, which were measured together, and their origin."""

    rows: tuple[BenchRow, ...]
    provenance: Provenance


class BenchRecord(Record):
    """All subjects by name, each with its latest measurement."""

    subjects: dict[str, SubjectRecord] = Field(default_factory=dict)

    @classmethod
    def load(cls, path: Path = RECORD) -> "BenchRecord":
        """Read a record; an empty one if the file does not exist."""
        return cls.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else cls()

    def save(self, path: Path = RECORD) -> None:
        """Write the record in one step."""
        write_whole(path, self.model_dump_json(indent=1) + "\n")

    def with_rows(self, subject: str, rows: Sequence[BenchRow], threads: int) -> "BenchRecord":
        """Return a record in which the rows of a subject are those that were measured now."""
        measured = SubjectRecord(rows=tuple(rows), provenance=provenance(processor() or "cpu", threads))
        return BenchRecord(subjects={**self.subjects, subject: measured})

    def as_markdown(self) -> str:
        """The table of the docs, with the origins of the subjects below."""
        lines = ["| what | ours | peer | times as fast | bar |", "|---|--:|--:|--:|---|"]
        lines += [row.as_markdown() for subject in self.subjects.values() for row in subject.rows]
        measured: dict[str, list[str]] = {}
        for name, subject in self.subjects.items():
            measured.setdefault(_origin(subject.provenance), []).append(name)
        return "\n".join([*lines, "", *(f"- {', '.join(names)}: {origin}" for origin, names in measured.items())])


def _origin(origin: Provenance) -> str:
    changes = ", with uncommitted changes" if origin.tree_dirty else ""
    return (
        f"{origin.device}, {origin.cpu_count} cores, {origin.threads} thread(s), {origin.finished_at[:10]}, "
        f"commit {origin.commit[:12]}{changes}, torch {origin.versions['torch']}"
    )


def write_page(record: BenchRecord, page: Path = PAGE) -> None:
    """Put the table of a record between the marks of the docs' page."""
    before, rest = page.read_text(encoding="utf-8").split(START)
    write_whole(page, f"{before}{START}\n\n{record.as_markdown()}\n\n{END}{rest.split(END)[1]}")


def seconds_in_turn(ours: Work, peer: Work, rounds: int, repeats: int = 1) -> tuple[list[float], list[float]]:
    """Measure two works in turn, after one round to warm up; the first of a round is the other one in the next.

    Args:
        ours: The suite's work.
        peer: The same work of the peer.
        rounds: Number of rounds.
        repeats: Calls within a measurement.

    Returns:
        The seconds of a call in each round, of the suite and of the peer.
    """
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        works = [(ours, seconds[0]), (peer, seconds[1])]
        for work, kept in works if number % 2 else reversed(works):
            started = time.perf_counter()
            for _ in range(repeats):
                work()
            if number:
                kept.append((time.perf_counter() - started) / repeats)
    return seconds
