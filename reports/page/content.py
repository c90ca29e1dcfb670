"""What stands on an experiment's page, as plain values: `page.render_page` turns a `PageContent` into HTML.

Every text is text, never markup. Images are data URIs, which `images` makes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Verdict:
    """One sentence of what came out.

    kind: `best` what has the highest mean of a score, `real` a difference that stands, `open` methods that are not told
    apart, `inside` and `outside` a printed value with regard to our interval, `warning` what a reader must know first.
    detail: numbers behind it.
    """

    kind: Literal["best", "real", "open", "inside", "outside", "warning"]
    sentence: str
    detail: str = ""


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    text: as shown; None for what was not run. spread: shown smaller beside it, such as "± 0.40". sort: what the column
    is sorted by; without it, the text. mark: whether it is the best of its column or tied with that. verdict: whether
    the printed value lies inside our interval. tooltip: where the number comes from.
    """

    text: str | None
    spread: str = ""
    sort: float | str | None = None
    mark: Literal["", "best", "tied"] = ""
    verdict: Literal["", "inside", "outside"] = ""
    tooltip: str = ""

    @property
    def sort_key(self) -> str:
        """The value that sorting reads; empty for a missing one, which stands last in either direction."""
        if self.text is None:
            return ""
        return self.text if self.sort is None else str(self.sort)


@dataclass(frozen=True)
class Column:
    """A column's title.

    group: a common heading over neighbouring columns. numeric: sorted as numbers, from the highest.
    """

    title: str
    group: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class TableRow:
    """One method: its name, a cell per column, a sign of a note below the table. key: leads to its runs' origin."""

    title: str
    cells: tuple[Cell, ...]
    sign: str = ""
    key: str = ""


@dataclass(frozen=True)
class Download:
    """A file that the page carries. name: of the file; media_type: such as `text/csv`."""

    name: str
    media_type: str
    text: str


@dataclass(frozen=True)
class Table:
    """Rows under columns, and the sentences that say what they are. first: the heading of the rows' names."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    caption: str = ""
    notes: tuple[str, ...] = ()
    first: str = "Method"
    downloads: tuple[Download, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                counts = f"{len(row.cells)} cells for {len(self.columns)} columns"
                raise ValueError(f"table {self.title!r}, row {row.title!r}: {counts}")

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The columns' groups with the number of columns under each, in their order."""
        runs: list[tuple[str, int]] = []
        for column in self.columns:
            if runs and runs[-1][0] == column.group:
                runs[-1] = (column.group, runs[-1][1] + 1)
            else:
                runs.append((column.group, 1))
        return runs


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
class Environment:
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
    environment: Environment
    folds: tuple[FoldOrigin, ...]
    scores: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class MethodOrigin:
    """A method's runs. key: as in `TableRow.key`; hyperparameters: of the best trial, by name, as shown."""

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
    tables: tuple[Table, ...] = ()
    figures: tuple[FigureView, ...] = ()
    galleries: tuple[Gallery, ...] = ()
    protocol: tuple[Facts, ...] = ()
    origins: tuple[MethodOrigin, ...] = ()
    commands: tuple[Command, ...] = ()
