"""What an experiment's page shows, as plain values: `render.render_page` turns a `PageContent` into HTML.

Every text is text, never markup. Images are data URIs, which `data_uris` makes. Tables are those of `reports.tables`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reports.tables.table import Table


@dataclass(frozen=True)
class Verdict:
    """One sentence about the results.

    kind: `best` names the highest mean of a score, `real` a significant difference, `open` methods that are not told
    apart, `inside` and `outside` say where a published value lies by our interval, `warning` is what a reader must
    know first. detail: numbers behind the sentence.
    """

    kind: Literal["best", "real", "open", "inside", "outside", "warning"]
    sentence: str
    detail: str = ""


@dataclass(frozen=True)
class Download:
    """A file that the page carries. name: of the file; media_type: such as `text/csv`."""

    name: str
    media_type: str
    text: str


@dataclass(frozen=True)
class TableSection:
    """A table of the page.

    table: as the page draws it, with one line in every row. downloads: files with the whole table.
    """

    table: Table
    downloads: tuple[Download, ...] = ()


@dataclass(frozen=True)
class FigureView:
    """A drawn figure.

    image: data URI; alt: what it shows, for who cannot see it; caption: how to read it. fold: heading under which it
    is folded away, together with its neighbours of the same heading; empty for a figure that is shown.
    """

    title: str
    image: str
    alt: str
    caption: str = ""
    fold: str = ""


@dataclass(frozen=True)
class Thumbnail:
    """A small image, as a data URI. right: whether it is of the query's class; None for a query itself."""

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
    """Queries of one model, in the order given; folded away until opened."""

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
    """Where a run was made. dirty: the checkout had changes that no commit holds."""

    commit: str
    dirty: bool
    device: str
    machine: str
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FoldOrigin:
    """One training under a run. seed, wall_time (seconds), ending: None or empty where only its name is known."""

    fingerprint: str
    seed: int | None = None
    wall_time: float | None = None
    ending: str = ""


@dataclass(frozen=True)
class RunOrigin:
    """One run with all that it came from. scores: named, as shown; wall_time: seconds, trainings and test together."""

    run: int
    fingerprint: str
    seed: int
    wall_time: float
    finished_at: str
    environment: RunEnvironment
    folds: tuple[FoldOrigin, ...]
    scores: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class MethodOrigin:
    """A method's runs. key: as in `Row.key`; hyperparameters: of the best trial, by name, as shown."""

    key: str
    title: str
    hyperparameters: Mapping[str, str]
    runs: tuple[RunOrigin, ...]


@dataclass(frozen=True)
class Command:
    """A line to type, and what it does."""

    text: str
    purpose: str


@dataclass(frozen=True)
class PageContent:
    """A whole page. missing: what the experiment still lacks, said at the top; made: when, and by which version."""

    title: str
    subtitle: str = ""
    made: str = ""
    missing: tuple[str, ...] = ()
    highlights: tuple[tuple[str, str], ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    tables: tuple[TableSection, ...] = ()
    figures: tuple[FigureView, ...] = ()
    galleries: tuple[Gallery, ...] = ()
    protocol: tuple[Facts, ...] = ()
    origins: tuple[MethodOrigin, ...] = ()
    commands: tuple[Command, ...] = ()
