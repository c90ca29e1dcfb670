"""The tables of the store (described in SCHEMA.md in the folder of this room)."""

import sqlalchemy as sa

SCHEMA_VERSION = 4

_CREATION_LOCK = 7_231_904_518
"""Number of PostgreSQL's advisory lock for the creation of tables. It only has to be the same for all processes."""

METADATA = sa.MetaData()

VERSION = sa.Table("suite_schema", METADATA, sa.Column("version", sa.Integer, nullable=False))
FOLD_RESULTS = sa.Table(
    "fold_results",
    METADATA,
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
)
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
    sa.Column("search", sa.Integer, primary_key=True),
    sa.Column("run", sa.Integer, primary_key=True),
    sa.Column("run_fingerprint", sa.ForeignKey("runs.fingerprint"), nullable=False),
    sa.Column("study", sa.String(32), nullable=True),
)
STUDIES = sa.Table(
    "searches",
    METADATA,
    sa.Column("fingerprint", sa.String(32), primary_key=True),
    sa.Column("identity", sa.Text, nullable=False),
)
TRIALS = sa.Table(
    "search_trials",
    METADATA,
    sa.Column("study", sa.ForeignKey("searches.fingerprint"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("score", sa.Float, nullable=True),
    sa.Column("trial", sa.Text, nullable=False),
)
EXPERIMENT_STUDIES = sa.Table(
    "experiment_searches",
    METADATA,
    sa.Column("experiment", sa.ForeignKey("experiments.fingerprint"), primary_key=True),
    sa.Column("method", sa.String(64), primary_key=True),
    sa.Column("search", sa.Integer, primary_key=True),
    sa.Column("study", sa.ForeignKey("searches.fingerprint"), nullable=False),
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


def prepare(engine: sa.Engine) -> None:
    """Create the tables if there are none, in one transaction under a lock.

    A crash, a full disk or a second process never leaves a part of them.
    """
    if is_made(engine):
        return
    with engine.begin() as connection:
        lock_creation(connection)
        if not sa.inspect(connection).has_table(VERSION.name):  # No other process was faster.
            METADATA.create_all(connection)
            connection.execute(sa.insert(VERSION).values(version=SCHEMA_VERSION))


def is_made(engine: sa.Engine) -> bool:
    """Tell whether a database has tables of the store, of any version."""
    return sa.inspect(engine).has_table(VERSION.name)


def stored_version(engine: sa.Engine) -> int | None:
    """Return the schema version of a store; None if its table is empty."""
    with engine.connect() as connection:
        return connection.execute(sa.select(sa.func.max(VERSION.c.version))).scalar_one_or_none()


def lock_creation(connection: sa.Connection) -> None:
    """Let only one process at a time create tables, until the transaction ends."""
    if connection.dialect.name == "sqlite":
        # Without this, the driver begins the transaction only after the tables were created.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))
