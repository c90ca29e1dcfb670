"""What an experiment lists, its searches and its runs, where two stores have it and become one.

A later round of an experiment, or a changed card, lists other searches and runs than before, though no outcome differs.
So the later start decides. An earlier one adds its further runs of the same searches, which two machines can share.
"""

import sqlite3
from typing import Any, NamedTuple

from results.spec.plan import Plan
from results.store.database import Database


def listed_runs(database: str = "main") -> str:
    """Return the rows of runs that experiments list, as a source for SQL.

    Runs of a study that is no longer one of the experiment's, because a method's card has changed, are left out.
    """
    return (
        f"(SELECT listed.* FROM {database}.experiment_runs AS listed "
        f"LEFT JOIN {database}.experiment_studies AS searched USING (experiment, method, search) "
        "WHERE listed.study IS searched.study)"
    )


class Listing(NamedTuple):
    """What a store lists of an experiment.

    Attributes:
        last_started: Time of its last start in UTC, ISO 8601.
        plan: The plan of this start.
        studies: Fingerprints of the studies, by method and number of the search.
        runs: Fingerprints of the runs, by method, search and number; without those of a study that is not listed.
    """

    last_started: str
    plan: Plan
    studies: dict[tuple[str, int], str]
    runs: dict[tuple[str, int, int], str]

    def joined(self, other: "Listing") -> "Listing":
        """Return what the later of two starts lists, with what the earlier one has more of the same searches."""
        earlier, later = sorted((self, other), key=lambda one: one.last_started)
        studies = {place: study for place, study in earlier.studies.items() if later._takes(earlier, *place)}
        runs = {place: run for place, run in earlier.runs.items() if later._takes(earlier, *place[:2])}
        return later._replace(studies=studies | later.studies, runs=runs | later.runs)

    def _takes(self, earlier: "Listing", method: str, search: int) -> bool:
        """Whether a search of an earlier start is one of this start, so that its runs are too."""
        if self._planned(method) != earlier._planned(method):
            return False  # It went on with more trials or in wider ranges, and can have found another setting.
        if all(place[0] != method for place in (*self.studies, *self.runs)):
            return True
        place = method, search
        return self.studies.get(place) == earlier.studies.get(place) and self._agrees(earlier, method)

    def _planned(self, method: str) -> Any:
        row = self.plan.rows.get(method)
        return row and (row.trials, row.ranges)

    def _agrees(self, earlier: "Listing", method: str) -> bool:
        """Whether no run of a method has become another one; a changed card without a search has no other study."""
        both = self.runs.keys() & earlier.runs.keys()
        return all(self.runs[place] == earlier.runs[place] for place in both if place[0] == method)


def joined_listings(connection: sqlite3.Connection, into: Database, other: Database) -> dict[str, Listing]:
    """Return what is to be listed of the experiments that both stores have, by fingerprint.

    Args:
        connection: That of `into.writing(other)`, before rows are added.
        into: The store that gets the rows of the other.
        other: The other store.
    """
    both = connection.execute("SELECT fingerprint FROM main.experiments JOIN other.experiments USING (fingerprint)")
    return {
        experiment: _listing(connection, "main", into, experiment).joined(
            _listing(connection, "other", other, experiment)
        )
        for (experiment,) in both.fetchall()
    }


def _listing(connection: sqlite3.Connection, name: str, store: Database, experiment: str) -> Listing:
    def rows(query: str) -> list[sqlite3.Row]:
        return connection.execute(query, (experiment,)).fetchall()

    (started,) = rows(f"SELECT * FROM {name}.experiments WHERE fingerprint = ?")
    studies = rows(f"SELECT method, search, study FROM {name}.experiment_studies WHERE experiment = ?")
    runs = rows(f"SELECT method, search, run, run_fingerprint FROM {listed_runs(name)} WHERE experiment = ?")
    return Listing(
        started["last_started"],
        store.parsed(Plan, started, f"row {experiment} of experiments"),
        {(method, search): study for method, search, study in studies},
        {(method, search, run): fingerprint for method, search, run, fingerprint in runs},
    )


def put_listing(connection: sqlite3.Connection, experiment: str, listing: Listing) -> None:
    """Write what an experiment lists in place of what the store had."""
    for table in ("experiment_studies", "experiment_runs"):
        connection.execute(f"DELETE FROM main.{table} WHERE experiment = ?", (experiment,))
    connection.executemany(
        "INSERT INTO main.experiment_studies (experiment, method, search, study) VALUES (?, ?, ?, ?)",
        [(experiment, *place, study) for place, study in listing.studies.items()],
    )
    connection.executemany(
        "INSERT INTO main.experiment_runs (experiment, method, search, run, run_fingerprint, study) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        [(experiment, *place, run, listing.studies.get(place[:2])) for place, run in listing.runs.items()],
    )
