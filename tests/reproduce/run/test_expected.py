"""The expected time of a run, held against what finished runs took."""

import math

import pytest

from protocols.protocol_registry import PROTOCOLS
from reproduce.outputs.store_files import unpack_store
from reproduce.run.expected import STAGES, duration, rate_of_records, rows_left
from reproduce.run.session import open_session
from reproduce.storage import open_store, storage_paths
from results.store.experiment_results import FOLDER
from tests.support.experiment_files import load_experiment


@pytest.mark.slow
def test_fourteen_losses_took_what_is_expected(tmp_path):
    """All trainings and tests of the searches that come with the suite, within a factor of 1.5."""
    store = open_store(unpack_store(FOLDER / "reality_check_glyphs.zip", tmp_path))
    start, *_ = store.starts()
    took = math.fsum(one.wall_time for one in store.trainings())
    methods = list(start.plan.rows)
    experiment = load_experiment("reality_check/glyphs", {"methods": methods})
    session = open_session("glyphs", experiment, storage_paths(str(tmp_path / "none.sqlite")), outline=True)
    rows = rows_left(session.studies(), PROTOCOLS["mlrc"], None, session.fingerprint, rate_of_records())
    expected = math.fsum(row.left(stage).total for row in rows.values() for stage in STAGES)
    assert took / 1.5 < expected < took * 1.5
    trainings = sum(row.left(stage).expected for row in rows.values() for stage in ("search", "reproductions"))
    assert trainings == pytest.approx(sum(1 for _ in store.trainings()), rel=0.05)


def test_more_workers_than_the_trials_of_a_search_leave_room_for_change_nothing(tmp_path):
    experiment = load_experiment("quickstart", {"methods": ["untrained", "triplet"]})
    session = open_session("q", experiment, storage_paths(str(tmp_path / "none.sqlite")), outline=True)
    rows = rows_left(session.studies(), session.protocol, None, session.fingerprint, rate_of_records())
    few, many = duration(rows, 2), duration(rows, 100)
    assert few.work == many.work
    assert few.seconds == pytest.approx(few.work / 2)
    assert few.longest is None
    assert many.longest == "Triplet"
    # Four raced searches side by side, each with 10 trials of 4 folds in turn; the untrained trunk takes a second.
    assert many.seconds == pytest.approx(few.work / 4, rel=0.3)
    assert many.most > many.seconds
