"""Tables drawn from a store, without torch: an experiment's own, and published ones beside what was run."""

from collections.abc import Callable

from reports.published.eligibility import StoredExperiment, concerns
from reports.published.join import PrintedTable, join
from reports.tables.costs import costs
from reports.tables.differences import differences
from reports.tables.hyperparameters import hyperparameters
from reports.tables.peeking import peeking_table
from reports.tables.result_table import table_of
from reports.tables.table import Drawing
from reproduce.config.deviations import departures
from reproduce.config.yaml_files import METHODS, read_mapping
from results.experiment_results import MeasuredExperiment
from results.mlrc_constants import is_mlrc_table
from results.published.tables import PublishedTable, published_table
from results.store import Store


def printed(name: str, store: Store | None) -> PrintedTable:
    """A published table beside what the store has of it; without a store nothing was run."""
    table = published_table(name)
    return join(table, [] if store is None else _stored(store, table))


def _stored(store: Store, table: PublishedTable) -> list[StoredExperiment]:
    """The experiments that may have runs for the table, the latest first."""
    found = []
    for row in store.experiments().itertuples():
        name, summary = str(row.name), store.experiment(str(row.fingerprint))
        if concerns(table, name, summary):
            measured = MeasuredExperiment.from_store(store, str(row.fingerprint))
            # MLRC's tables take any experiment of MLRC's settings, whatever its file is called.
            own_file = name.partition("/")[0] == table.name and not is_mlrc_table(table.name)
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
