"""The content of an experiment's page as plain values. `render.render_page` turns a `PageContent` into HTML.

Texts are plain text, never markup. Images are data URIs, made by `data_uris`. Tables are those of `reports.tables`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reports.tables.table import Table
from results.records.records import RunRecord

Part = Literal["pairs", "doubt", "papers", "classes", "scores", "search", "costs"]
"""Part of the page that a table belongs to."""

FigurePart = Literal["papers", "details"]
"""Part of the page that a figure belongs to."""


PairKind = Literal["better", "worse", "equal", "open", "untested"]
"""Verdict on the first method of a pair: in a matrix that of the column, in a list the one that others are beside."""


@dataclass(frozen=True)
class DrawnInterval:
    """An interval on the common axis of a ranking, whose ends can lie beyond the axis (`cut_low`, `cut_high`).

    Places are percentages of the axis from its left end. `low` equals `high` without an interval.
    """

    mean: float
    low: float
    high: float
    points: tuple[float, ...] = ()
    cut_low: bool = False
    cut_high: bool = False


@dataclass(frozen=True)
class RankedRow:
    """A method in the ranking.

    Attributes:
        mean: Mean of the primary score in percent, as text; empty for a method that was not run.
        drawn: The interval on the axis; None for a method that was not run.
        count: Number of searches or runs, as text.
        letters: For each group of the ranking its letter, or an empty text if the method is not in it.
        sign: Sign that refers to a note.
        leads: Whether no other method is shown to be better.
    """

    title: str
    mean: str = ""
    spread: str = ""
    count: str = "0"
    drawn: DrawnInterval | None = None
    letters: tuple[str, ...] = ()
    sign: str = ""
    leads: bool = False
    detail: str = ""

    @property
    def spans(self) -> str:
        """The letters in short, with neighbours as a span, such as `a–c, f`."""
        spans: list[list[int]] = []
        for index, letter in enumerate(self.letters):
            if letter and spans and spans[-1][-1] == index - 1:
                spans[-1].append(index)
            elif letter:
                spans.append([index])
        ends = [dict.fromkeys((self.letters[span[0]], self.letters[span[-1]])) for span in spans]
        return ", ".join("–".join(pair) for pair in ends)


@dataclass(frozen=True)
class Ranking:
    """The methods by the primary score, best first.

    Attributes:
        unit: What the intervals are over and the counts count: `searches` or `runs`.
        ends: Ends of the axis in percent, as text.
    """

    score: str
    unit: str
    rows: tuple[RankedRow, ...]
    ends: tuple[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairCell:
    """Verdict on a pair of methods.

    Attributes:
        text: Direction and size.
        shares: How sure it is that the first method is better by more than the margin, within it, worse by more, in
            percent; empty without a test.
        sure: The shares in words.
    """

    kind: PairKind
    text: str
    detail: str
    shares: tuple[float, ...] = ()
    sure: str = ""


@dataclass(frozen=True)
class ListedPair:
    """A method beside the one that all others are compared with. The texts are about that one."""

    title: str
    cell: PairCell
    direction: str
    size: str
    difference: str
    half_width: str = ""


@dataclass(frozen=True)
class PairMatrix:
    """Verdicts on pairs of methods, best first: all as a triangle, or those with one method as a list.

    Attributes:
        margin: Margin of equality in percentage points, as text.
        titles: The methods of the triangle.
        rows: For every method but the first, the verdicts against all methods above it. Empty for too many methods.
        others: The list.
    """

    heading: str
    margin: str
    caption: str
    titles: tuple[str, ...] = ()
    rows: tuple[tuple[PairCell, ...], ...] = ()
    others: tuple[ListedPair, ...] = ()

    @property
    def cells(self) -> tuple[PairCell, ...]:
        """All verdicts."""
        return (*(cell for row in self.rows for cell in row), *(other.cell for other in self.others))


@dataclass(frozen=True)
class Verdict:
    """One sentence about the results.

    Attributes:
        kind: `best` is about the highest mean of a score, `budget` about what the runs can show. `inside` and `outside`
            are about a published value inside or outside our prediction interval, and `alone` about one beside a
            single run. `warning` is what a reader must know first.
    """

    kind: Literal["best", "budget", "inside", "outside", "alone", "warning"]
    sentence: str
    detail: str = ""


@dataclass(frozen=True)
class Download:
    """A file that the page contains."""

    name: str
    media_type: str
    text: str


@dataclass(frozen=True)
class TableSection:
    """A table of the page.

    Attributes:
        table: The table as the page shows it, with one line in every row.
        part: Part of the page. Of a table in "pairs" only the files are shown, below the matrix.
    """

    table: Table
    downloads: tuple[Download, ...] = ()
    part: Part = "scores"


@dataclass(frozen=True)
class FigureView:
    """A drawn figure.

    Attributes:
        image: The image as a data URI; empty for a figure that cannot be drawn.
        caption: Explains how to read the figure, or why it cannot be drawn.
        fold: Heading of the collapsed group that the figure belongs to; empty for a figure that is always visible.
    """

    title: str
    image: str
    alt: str
    caption: str = ""
    fold: str = ""
    part: FigurePart = "details"


@dataclass(frozen=True)
class Thumbnail:
    """A small image. `right`: whether its class is that of the query; None for the query itself."""

    image: str
    class_name: str
    right: bool | None = None
    detail: str = ""


@dataclass(frozen=True)
class GalleryRow:
    """A query and its nearest neighbours, nearest first."""

    query: Thumbnail
    neighbours: tuple[Thumbnail, ...]


@dataclass(frozen=True)
class Gallery:
    """Queries of one model, in a collapsed part of the page."""

    title: str
    rows: tuple[GalleryRow, ...]
    caption: str = ""


@dataclass(frozen=True)
class Facts:
    """Named values under one heading."""

    title: str
    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RunEnvironment:
    """Code and machine of a run, with the versions of packages."""

    commit: str
    dirty: bool
    device: str
    machine: str
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FoldOrigin:
    """One training of a run, with its seconds and the reason of its end. Without a store only its name is known."""

    fingerprint: str
    seed: int | None = None
    wall_time: float | None = None
    ending: str = ""


@dataclass(frozen=True)
class RunOrigin:
    """The origin of one run. `scores` are names and values as text."""

    record: RunRecord
    environment: RunEnvironment
    folds: tuple[FoldOrigin, ...]
    scores: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MethodOrigin:
    """The origin of a method's results.

    Attributes:
        key: Key of the method, as in `Row.key`.
        hyperparameters: Hyperparameters of the best trial, by name, as text.
    """

    key: str
    title: str
    hyperparameters: Mapping[str, str]
    runs: tuple[RunOrigin, ...]


@dataclass(frozen=True)
class Command:
    """A command line or a text to paste, and its purpose."""

    text: str
    purpose: str


@dataclass(frozen=True)
class MethodSource:
    """The papers that a method comes from.

    Attributes:
        text: The papers in words, with what was taken from them.
        papers: Addresses of the papers, which start with https://.
    """

    text: str
    papers: tuple[str, ...] = ()


@dataclass(frozen=True)
class PageContent:
    """The content of a whole page.

    Attributes:
        made: Date of the page and version of the suite, for the footer.
        missing: Sentences on missing runs, shown at the top.
        highlights: Names and values below the ranking.
        limits: What limits the answer, in one sentence.
        citing: Texts to paste into a paper.
        sources: Titles of the methods, with the papers that the methods come from.
    """

    title: str
    subtitle: str = ""
    made: str = ""
    missing: tuple[str, ...] = ()
    highlights: tuple[tuple[str, str], ...] = ()
    headline: str = ""
    limits: str = ""
    ranking: Ranking | None = None
    matrix: PairMatrix | None = None
    verdicts: tuple[Verdict, ...] = ()
    tables: tuple[TableSection, ...] = ()
    figures: tuple[FigureView, ...] = ()
    galleries: tuple[Gallery, ...] = ()
    protocol: tuple[Facts, ...] = ()
    origins: tuple[MethodOrigin, ...] = ()
    commands: tuple[Command, ...] = ()
    citing: tuple[Command, ...] = ()
    sources: tuple[tuple[str, MethodSource], ...] = ()
