"""The tables of the store and the upgrade of older stores (described in SCHEMA.md in this folder).

Version 2 added `test_curves`. It also allows an empty `fold_results.best_map_at_r`, for trainings without validation
classes. Version 3 added `leases`.
"""

import sqlalchemy as sa

SCHEMA_VERSION = 3

_OLDER_VERSIONS = (1, 2)

_CREATION_LOCK = 7_231_904_518
"""Number of PostgreSQL's advisory lock for the creation of tables. It only has to be the same for all processes."""

METADATA = sa.MetaData()

RUNS_OF_A_SEARCH = 1_000_000
"""`experiment_runs.run` is the number of the run plus this times the number of its search.

So stores of experiments with one search stay as they were.
"""


def _fold_columns() -> list[sa.Column[object]]:
    return [
        sa.Column("fingerprint", sa.String(32), primary_key=True),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.Column("method", sa.String(64), nullable=False),
        sa.Column("fold", sa.Integer, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("best_map_at_r", sa.Float, nullable=True),
        sa.Column("iterations", sa.Integer, nullable=False),
        sa.Column("wall_time", sa.Float, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("result", sa.Text, nullable=False),
    ]


VERSION = sa.Table("suite_schema", METADATA, sa.Column("version", sa.Integer, nullable=False))
FOLD_RESULTS = sa.Table("fold_results", METADATA, *_fold_columns())
TEST_CURVES = sa.Table(
    "test_curves",
    METADATA,
    sa.Column("fingerprint", sa.String(32), primary_key=True),
    sa.Column("curve", sa.Text, nullable=False),
)
RUNS = sa.Table(
    "runs",
    METADATA,
    sa.Column("fingerprint", sa.String(32), primary_key=True),
    sa.Column("dataset", sa.String(64), nullable=False),
    sa.Column("method", sa.String(64), nullable=False),
    sa.Column("record", sa.Text, nullable=False),
)
EXPERIMENTS = sa.Table(
    "experiments",
    METADATA,
    sa.Column("fingerprint", sa.String(32), primary_key=True),
    sa.Column("name", sa.String(128), nullable=False),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("last_started", sa.String(32), nullable=False),
)
EXPERIMENT_RUNS = sa.Table(
    "experiment_runs",
    METADATA,
    sa.Column("experiment", sa.ForeignKey("experiments.fingerprint"), primary_key=True),
    sa.Column("method", sa.String(64), primary_key=True),
    sa.Column("run", sa.Integer, primary_key=True),
    sa.Column("run_fingerprint", sa.ForeignKey("runs.fingerprint"), nullable=False),
)
FAILURES = sa.Table(
    "failures",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("fold_fingerprint", sa.String(32), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("at", sa.String(32), nullable=False),
)

LEASES = sa.Table(
    "leases",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("machine", sa.Text, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("started", sa.String(32), nullable=False),
    sa.Column("beats", sa.Integer, nullable=False),
)


def belongs_to_another_program(engine: sa.Engine) -> bool:
    """Tell whether the database has tables with our names but no table with our schema version."""
    tables = set(sa.inspect(engine).get_table_names())
    return VERSION.name not in tables and bool(tables & set(METADATA.tables))


def prepare(engine: sa.Engine) -> int | None:
    """Create the tables, or upgrade them from an older version.

    All changes are one transaction under a lock. A crash, a full disk or a second process never leaves a part of them.

    Args:
        engine: The store's database.

    Returns:
        The store's schema version afterwards; None if the version table is empty.
    """
    present = None
    if (
        VERSION.name in sa.inspect(engine).get_table_names()
        and (present := _read_version(engine)) not in _OLDER_VERSIONS
    ):
        return present
    try:
        with engine.begin() as connection:
            lock_creation(connection)
            _create_or_upgrade(connection)
    except sa.exc.OperationalError as error:
        # Version 2 lacks only the leases, which nobody needs who cannot write.
        if present == 2 and "readonly" in str(error.orig):
            return SCHEMA_VERSION
        raise
    return _read_version(engine)


def readable_version(engine: sa.Engine) -> int | None:
    """Return the current version for a store that can be read without an upgrade. Nothing is written.

    Older stores lack tables that only a run or a figure needs.

    Args:
        engine: The store's database.

    Returns:
        The schema version of a newer store; None if the version table is empty.
    """
    version = _read_version(engine)
    return SCHEMA_VERSION if version in _OLDER_VERSIONS else version


def is_made(engine: sa.Engine) -> bool:
    """Tell whether a database has tables of the store, of any version."""
    return sa.inspect(engine).has_table(VERSION.name)


def lock_creation(connection: sa.Connection) -> None:
    """Let only one process at a time create tables, until the transaction ends.

    Args:
        connection: Connection to the store's database.
    """
    if connection.dialect.name == "sqlite":
        # Without this, the driver begins the transaction only after the tables were created.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))


# Older releases could write the version twice when two processes created a store on PostgreSQL.
_VERSION_QUERY = sa.select(sa.func.max(VERSION.c.version))


def _read_version(engine: sa.Engine) -> int | None:
    with engine.connect() as connection:
        return connection.execute(_VERSION_QUERY).scalar_one_or_none()


def _create_or_upgrade(connection: sa.Connection) -> None:
    """Create or upgrade the tables, unless another process did so before this one got the lock."""
    if not sa.inspect(connection).has_table(VERSION.name):
        METADATA.create_all(connection)
        connection.execute(sa.insert(VERSION).values(version=SCHEMA_VERSION))
        return
    version = connection.execute(_VERSION_QUERY).scalar_one_or_none()
    if version == 1:
        _upgrade_from_1(connection)
    if version in _OLDER_VERSIONS:
        LEASES.create(connection)
        connection.execute(sa.update(VERSION).values(version=SCHEMA_VERSION))


def _upgrade_from_1(connection: sa.Connection) -> None:
    """Copy `fold_results` to a new table of the same name, since SQLite cannot remove a column's NOT NULL."""
    fresh = sa.Table("fold_results_version_2", sa.MetaData(), *_fold_columns())
    fresh.create(connection)
    connection.execute(sa.insert(fresh).from_select(fresh.columns.keys(), sa.select(*FOLD_RESULTS.c)))
    FOLD_RESULTS.drop(connection)
    quoted = connection.dialect.identifier_preparer.quote
    connection.execute(sa.text(f"ALTER TABLE {quoted(fresh.name)} RENAME TO {quoted(FOLD_RESULTS.name)}"))
    TEST_CURVES.create(connection)
