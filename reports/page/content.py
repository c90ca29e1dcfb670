"""The content of an experiment's page as plain values. `render.render_page` turns a `PageContent` into HTML.

Texts are plain text, never markup. Images are data URIs, made by `data_uris`. Tables are those of `reports.tables`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reports.page.answer_content import PairMatrix, Ranking
from reports.tables.table import Table
from results.records.records import RunRecord

Part = Literal["pairs", "doubt", "papers", "classes", "scores", "search", "costs"]
"""Part of the page that a table belongs to."""

FigurePart = Literal["papers", "details"]
"""Part of the page that a figure belongs to."""


@dataclass(frozen=True)
class Verdict:
    """One sentence about the results.

    Attributes:
        kind: `best` is about the highest mean of a score, `settings` about the settings that single searches found,
            `budget` about what the experiment can show. `inside` and `outside` are about a published value inside or
            outside our prediction interval, and `alone` about one beside a single run. `warning` is what a reader must
            know first.
    """

    kind: Literal["best", "settings", "budget", "inside", "outside", "alone", "warning"]
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
