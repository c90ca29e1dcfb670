"""The versions of users' losses in a store: what was trained with each state of a file."""

from dataclasses import dataclass, field

from results.spec.method import Method, sources_of
from results.store.database import Database
from results.values import identity_of

_USERS = "content LIKE '%(sha256 %'"

_TRAINED = f"""
    SELECT json_extract(content, '$.spec.method') AS method, count(*) AS trainings,
    max(json_extract(content, '$.provenance.finished_at')) AS last FROM trainings WHERE {_USERS} GROUP BY method
"""
_TESTED = f"""
    SELECT DISTINCT json_extract(runs.content, '$.specs[0].method') AS method, name, experiment FROM runs
    JOIN experiment_runs ON run_fingerprint = runs.fingerprint JOIN experiments ON experiments.fingerprint = experiment
    WHERE runs.{_USERS} ORDER BY last_started
"""


@dataclass
class Version:
    """A user's class in one state of its source, as one method used it.

    Attributes:
        method: The method's key.
        source: The class with the hash of its source.
        trainings: Number of trainings.
        last: Time of the last one in UTC, ISO 8601.
        experiments: Names with identities of the experiments whose runs are of this version.
    """

    method: str
    source: str
    trainings: int = 0
    last: str = ""
    experiments: list[str] = field(default_factory=list)


def versions(database: Database) -> list[Version]:
    """Return the versions of all users' classes in a store, the latest first."""
    found: dict[tuple[str, str], Version] = {}

    def of(method: str) -> list[Version]:
        spec = Method.model_validate_json(method)
        return [found.setdefault((spec.name, name), Version(spec.name, name)) for name in sources_of(spec)]

    for row in database.rows(_TRAINED):
        for version in of(row["method"]):
            version.trainings += row["trainings"]
            version.last = max(version.last, row["last"])
    for row in database.rows(_TESTED):
        for version in of(row["method"]):
            named = f"{row['name']} {identity_of(row['experiment'])}"
            version.experiments = list(dict.fromkeys([*version.experiments, named]))
    return sorted(found.values(), key=lambda version: version.last, reverse=True)
