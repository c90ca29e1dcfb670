"""Tables drawn from a store, without torch: an experiment's own, and published ones beside what was run."""

from collections.abc import Callable

from reports.costs import costs
from reports.differences import differences
from reports.drawing import Drawing
from reports.hyperparameters import hyperparameters
from reports.peeking_table import peeking_table
from reports.printed_conditions import StoredExperiment, concerns
from reports.published_tables import PrintedTable, join
from reports.tables import table_of
from reproduce.departures import departures
from reproduce.reading import METHODS, read_mapping, short_name
from results.measured import MeasuredExperiment
from results.published import PublishedTable, published_table
from results.store import Store


def printed(name: str, store: Store | None) -> PrintedTable:
    """A published table beside what the store has of it; without a store nothing was run."""
    table = published_table(name)
    return join(table, [] if store is None else _stored(store, table))


def experiments_of(store: Store, name: str) -> list[str]:
    """Fingerprints of the latest run of an experiment, or of each of its panels, by name."""
    latest, wanted = store.latest_experiments(), short_name(name)
    return [latest[each] for each in sorted(latest) if each == wanted or each.startswith(f"{wanted}/")]


def names_of(store: Store) -> list[str]:
    """The names of the experiments in the store."""
    return sorted(store.latest_experiments())


def _stored(store: Store, table: PublishedTable) -> list[StoredExperiment]:
    """The experiments that may have runs for the table, the latest first."""
    found = []
    for row in store.experiments().itertuples():
        name, summary = str(row.name), store.experiment(str(row.fingerprint))
        if concerns(table, name, summary):
            measured = MeasuredExperiment.from_store(store, str(row.fingerprint))
            # MLRC's tables take any experiment of MLRC's settings, whatever its file is called.
            own_file = name.partition("/")[0] == table.name and not table.name.startswith("mlrc_")
            apart = departures(name, summary["settings"]) if own_file else ()
            found.append(StoredExperiment(name, measured, apart))
    return found


def _results(measured: MeasuredExperiment) -> Drawing:
    return table_of(measured).drawing()


def _hyperparameters(measured: MeasuredExperiment) -> Drawing:
    return hyperparameters(measured, printed_names(measured))


def printed_names(measured: MeasuredExperiment) -> dict[str, dict[str, str]]:
    """MLRC's names of searched hyperparameters, by method, from the suite's own cards."""
    names = {}
    for method in measured.summary["methods"]:
        if (path := METHODS / f"{method}.yaml").is_file():
            search = read_mapping(path).get("search") or {}
            names[method] = {target: each["published_as"] for target, each in search.items() if "published_as" in each}
    return names


KINDS: dict[str, Callable[[MeasuredExperiment], Drawing]] = {
    "results": _results,
    "differences": differences,
    "peeking": peeking_table,
    "hyperparameters": _hyperparameters,
    "costs": costs,
}
"""What can be drawn of an experiment."""
