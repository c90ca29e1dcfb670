"""What a record says that another record, or another of its fields, says too: a change of it alone is named.

Every value of the records of real runs is changed, with its copy in a column. What is not noticed is listed here.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reproduce.errors import InputError
from reproduce.storage import storage_paths
from reproduce.store_care.merge_stores import merge_stores
from results.records.records import Scores
from results.store.check_records import check_records
from results.store.database import Database
from tests.support.command_line import reproduce
from tests.support.feature_files import some_features, write_features

pytestmark = pytest.mark.long

EXPERIMENT = """\
title: Mine
dataset: {name: features, root: feat}
methods: [untrained, contrastive]
embedding_size: 8
training: {batch_size: 16, iterations_per_epoch: 3, max_epochs: 4, validate_every: 1, patience: 1,
  optimizer: {name: Adam, lr: 1.0e-2, arguments: {}}}
metrics: [recall@2, nmi]
test_curves: true
reproductions: 2
"""
RACED = EXPERIMENT + "search: {trials: 4, searches: 2, racing: true}\n"
STANDARD = EXPERIMENT + "protocol: standard\nsearch: {trials: 0}\nsettings: {contrastive: {loss.pos_margin: 0.2}}\n"

# Text column with a record, key columns, and columns that repeat a part of the record.
RECORDS = {
    "fold_results": ("result", ("fingerprint",), ("status", "best_map_at_r", "iterations", "wall_time")),
    "test_curves": ("curve", ("fingerprint",), ()),
    "runs": ("record", ("fingerprint",), ("dataset", "method")),
    "experiments": ("settings", ("fingerprint",), ()),
    "searches": ("identity", ("fingerprint",), ()),
    "search_trials": ("trial", ("study", "number"), ("state", "score")),
}

# Only `verify`, which trains again, can tell of these, and of a title or an origin nothing can.
SAID_ONCE = {
    "fold_results": {"wall_time", "curve.*.precision_at_1", "curve.*.r_precision"},
    "test_curves": {"evaluation_version", *(f"points.*.scores.{name}" for name in Scores.model_fields)},
    "runs": {
        "wall_time",
        *(f"last_epoch.{name}" for name in Scores.model_fields),
        *(f"metrics_{kind}.{name}" for kind in ("separated", "concatenated") for name in ("recall@2", "nmi")),
    },
    "experiments": {"experiment.title", "methods.contrastive", "methods.untrained"},
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a raced search that was repeated, and with a run of protocol `standard`."""
    folder = tmp_path_factory.mktemp("sound")
    write_features(folder / "feat", some_features(), np.repeat(np.arange(16), 4))
    for name, text in (("raced", RACED), ("standard", STANDARD)):
        (folder / f"{name}.yaml").write_text(text)
        ran = reproduce(folder, "run", f"{name}.yaml", "--workers", "1", "--device", "cpu", "--store", "store.sqlite")
        assert ran.code == 0, ran.err
    assert findings(folder / "store.sqlite") == []
    return folder / "store.sqlite"


def findings(store: Path) -> list[str]:
    checked = check_records(Database(store)).findings
    return [f"{finding.kind} {finding.name}: {finding.reason}" for finding in checked if finding.kind != "foreign"]


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all values below a value, whole lists and dictionaries too."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))


def changed(value: Any) -> Any:
    """Another value of the same type that looks like it."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value * 0.99 + 0.004
        case str():
            return f"{value[:-1]}{'0' if value[-1:] != '0' else '1'}"
        case list():
            return value[:-1] if value else None
    return None  # A record without a key that this release needs is one of another release.


def changes(connection: sqlite3.Connection, table: str) -> Iterator[tuple[str, str]]:
    """Change one value after another of a table's records; yield its name, with list places left out, and the change.

    Values of the same name are changed once for each kind of record.
    """
    text, keys, copies = RECORDS[table]
    done: set[tuple[Any, ...]] = set()
    for row in connection.execute(f"SELECT * FROM {table}").fetchall():
        record = json.loads(row[text])
        kind = [record.get(key) for key in ("status", "stopped_by", "state", "protocol", "method", "title")]
        for path in leaves(record):
            name = ".".join("*" if isinstance(part, int) else part for part in path)
            if (json.dumps(kind), name) in done:
                continue
            done.add((json.dumps(kind), name))
            forged = json.loads(row[text])
            place = forged
            for part in path[:-1]:
                place = place[part]
            if (new := changed(place[path[-1]])) is None:
                continue
            place[path[-1]] = new
            values = {text: json.dumps(forged), **{copy: forged[copy] for copy in copies if copy in forged}}
            where = " AND ".join(f"{key} = :{key}" for key in keys)
            update = f"UPDATE {table} SET {', '.join(f'{name} = :{name}' for name in values)} WHERE {where}"
            with connection:
                connection.execute(update, {**dict(row), **values})
            yield name, json.dumps(new)[:60]
            with connection:
                connection.execute(update, dict(row))


@pytest.mark.parametrize("table", RECORDS)
def test_a_change_of_one_value_is_named(sound, tmp_path, table):
    store = tmp_path / "store.sqlite"
    store.write_bytes(sound.read_bytes())
    unnoticed, tried = set(), 0
    with closing(sqlite3.connect(store)) as connection:
        connection.row_factory = sqlite3.Row
        for name, _ in changes(connection, table):
            tried += 1
            if not findings(store):
                unnoticed.add(name)
    assert tried > 5
    told = {name for name in unnoticed if not name.startswith("provenance.")}
    assert told == SAID_ONCE.get(table, set())
    assert findings(store) == []


FORGERIES = {
    "a run of 7.5": "UPDATE runs SET record = json_set(record, '$.concatenated.map_at_r', 7.5)",
    "a run listed twice": "UPDATE experiment_runs SET run_fingerprint = (SELECT run_fingerprint FROM experiment_runs e "
    "WHERE e.method = 'contrastive' AND e.run = 0) WHERE method = 'contrastive' AND run = 1",
    "a run of another search": "UPDATE experiment_runs SET search = search + 2 WHERE method = 'contrastive'",
    "another start": "UPDATE experiments SET last_started = 'yesterday'",
    "a search of another method": "UPDATE experiment_searches SET method = 'untrained'",
    "a search lost its last trial": "DELETE FROM search_trials WHERE number = 3",
    "a summary that says its title twice": "UPDATE experiments SET settings = json_set(settings, '$.title', 'forged')",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_store_is_not_merged_and_leaves_nothing(sound, tmp_path, name):
    store, target = tmp_path / "store.sqlite", storage_paths(str(tmp_path / "new/s.sqlite"), None, None, None)
    store.write_bytes(sound.read_bytes())
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(FORGERIES[name])
    assert findings(store)
    with pytest.raises(InputError, match="so nothing was written"):
        merge_stores(target, storage_paths(str(store), None, None, None))
    assert not (tmp_path / "new").exists()
