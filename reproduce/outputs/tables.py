"""Tables drawn from a store, without torch: an experiment's own, and published ones beside what was run."""

from collections.abc import Callable

from reports.published.eligibility import StoredExperiment, concerns
from reports.published.join import ComparedTable, join
from reports.tables.costs import costs
from reports.tables.differences import differences
from reports.tables.hyperparameters import hyperparameters
from reports.tables.peeking import peeking_table
from reports.tables.result_table import table_of
from reports.tables.table import Table
from reports.tables.uncertainty import uncertainty_table
from reproduce.config.deviations import deviations, mlrc_experiment
from reproduce.config.method_card import published_hyperparameter_names
from results.published.tables import PublishedTable, published_table
from results.store.experiment_results import MeasuredExperiment, latest_starts, runs_of_all_starts
from results.store.store import Store


def compared_with_runs(name: str, store: Store | None) -> ComparedTable:
    """A published table beside what the store has of it; without a store nothing was run."""
    table = published_table(name)
    return join(table, [] if store is None else stored_experiments(store, table))


def stored_experiments(store: Store, table: PublishedTable | None = None) -> list[StoredExperiment]:
    """Return the experiments of a store, the latest first, with the runs of all methods of all starts.

    Given a published table, those that cannot have runs for it are left out.
    """
    stored = []
    for start in latest_starts(store):
        name, summary = start.name, start.summary
        if table is None or concerns(table, name, summary):
            measured = MeasuredExperiment(summary, tuple(runs_of_all_starts(store, start.fingerprint)))
            mlrc = mlrc_experiment(summary.dataset)
            stored.append(StoredExperiment(name, measured, deviations(name, summary), mlrc))
    return stored


def _hyperparameters(measured: MeasuredExperiment) -> Table:
    return hyperparameters(measured, published_names(measured))


def published_names(measured: MeasuredExperiment) -> dict[str, dict[str, str]]:
    """MLRC's names of searched hyperparameters, by method, from the suite's own cards."""
    return {method: published_hyperparameter_names(method) for method in measured.summary.methods}


KINDS: dict[str, Callable[[MeasuredExperiment], Table]] = {
    "results": table_of,
    "differences": differences,
    "uncertainty": uncertainty_table,
    "peeking": peeking_table,
    "hyperparameters": _hyperparameters,
    "costs": costs,
}
"""What can be drawn of an experiment."""
