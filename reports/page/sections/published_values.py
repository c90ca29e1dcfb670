"""Published tables that an experiment may stand beside, and what the comparison says."""

from collections.abc import Iterator, Mapping, Sequence

from reports.page.content import Verdict
from reports.page.material import METRIC_NAMES, Material, Score
from reports.page.sections.wording import runs
from reports.published.eligibility import StoredExperiment, concerns
from reports.published.join import PrintedCell, PrintedTable, join
from reports.published.layout import metric_name
from results.mlrc_constants import is_mlrc_table
from results.published.tables import PublishedCell, published_table, published_tables

PrintedValues = Mapping[tuple[str, Score], tuple[float, float, str]]
"""By method and score: a printed value, a fraction of 1, what its rounding may hide, and where it is printed."""


def printed_of(material: Material) -> tuple[PrintedTable, ...]:
    """The published tables that this experiment's runs fill a cell of, or are near enough to say why they do not."""
    if not material.measured.summary.get("settings"):
        return ()
    own = StoredExperiment(material.name, material.measured, material.departures)
    joined = []
    for name in published_tables():
        table = published_table(name)
        if concerns(table, material.name, material.measured.summary):
            # MLRC's tables take any experiment of MLRC's settings, whatever its file is called.
            compared = StoredExperiment(own.name, own.measured) if is_mlrc_table(name) else own
            joined.append(join(table, [compared]))
    return tuple(one for one in joined if one.notes)


def printed_values(tables: Sequence[PrintedTable]) -> PrintedValues:
    """The printed values of cells that were run, of the metrics that the table of results has; the first of several."""
    found: dict[tuple[str, Score], tuple[float, float, str]] = {}
    for table in tables:
        for cell in _run(table):
            published = cell.published
            if published.metric in METRIC_NAMES and published.key and published.measure is not None:
                value = (published.measure, published.rounding, table.published.title)
                found.setdefault((published.key, _score(published)), value)
    return found


def printed_verdicts(tables: Sequence[PrintedTable], titles: Mapping[str, str]) -> Iterator[Verdict]:
    """A sentence for every printed value that was run; or why none was compared."""
    for table in tables:
        cells = _run(table)
        for cell in cells:
            yield from _verdict(table, cell, titles)
        if not cells:
            yield Verdict("warning", f"Not compared with {table.published.title}.", " ".join(table.notes))


def _run(table: PrintedTable) -> list[PrintedCell]:
    return [cell for cell in table.cells if cell.ours is not None]


def _score(published: PublishedCell) -> Score:
    if published.kind == "single":
        return Score(published.metric, "separated", True)
    return Score(published.metric, published.kind)


def _verdict(table: PrintedTable, cell: PrintedCell, titles: Mapping[str, str]) -> Iterator[Verdict]:
    ours, published = cell.ours, cell.published
    if ours is None or not published.printed:
        return
    kind = "" if published.kind == "single" else f"{published.kind} "
    what = f"{titles.get(published.key or '', published.method_label)}, {kind}{metric_name(published.column)}"
    mean, source = f"{cell.scale * ours.mean:.2f}", f"{table.published.title}; our {runs(ours.n)}"
    if ours.low is None or ours.high is None:
        sentence = f"{what}: printed {published.printed}, ours {mean} from a single run, which has no interval."
        yield Verdict("open", sentence, source)
        return
    ends = f"{cell.scale * ours.low:.2f} to {cell.scale * ours.high:.2f}"
    if cell.verdict == "inside":
        sentence = f"{what}: printed {published.printed} lies inside our interval, {ends}."
        yield Verdict("inside", sentence, f"{source}; a wide interval is easily met")
    else:
        sentence = f"{what}: printed {published.printed}; our interval, {ends}, lies {cell.verdict} it."
        yield Verdict("outside", sentence, source)
