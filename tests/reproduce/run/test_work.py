"""The expected time of a run, held against what finished runs took."""

import math

import pytest

from losses.bridge import THREE
from protocols.protocol_registry import PROTOCOLS
from reproduce.outputs.store_files import unpack_store
from reproduce.run.session import open_session
from reproduce.run.work import at_a_time, duration, rate_of_records, with_rates, work_of
from reproduce.storage import open_store, storage_paths
from results.answer.durations import START, TRAINING
from results.store.experiment_results import FOLDER
from tests.support.experiment_files import load_experiment


@pytest.mark.slow
@pytest.mark.skipif(THREE, reason="version 3 of pytorch-metric-learning refuses two of their cards")
def test_fourteen_losses_took_what_is_expected(tmp_path):
    """All trainings and tests of the searches that come with the suite, within a factor of 1.5."""
    store = open_store(unpack_store(FOLDER / "reality_check_glyphs.zip", tmp_path))
    start, *_ = store.starts()
    took = math.fsum(one.wall_time for one in store.trainings())
    methods = list(start.plan.rows)
    experiment = load_experiment("reality_check/glyphs", {"methods": methods})
    session = open_session("glyphs", experiment, storage_paths(str(tmp_path / "none.sqlite")), outline=True)
    planned = work_of(session.studies(), PROTOCOLS["mlrc"], None, session.fingerprint)
    rows = with_rates(planned, 2, rate_of_records())
    expected = math.fsum(one.seconds[0] for row in rows.values() for one in row)
    assert took / 1.5 < expected < took * 1.5
    trainings = sum(row.search.expected + row.reproductions.expected for row in rows.values())
    assert trainings == pytest.approx(sum(1 for _ in store.trainings()), rel=0.05)


def test_more_workers_than_the_trials_of_a_search_leave_room_for_change_nothing(tmp_path):
    experiment = load_experiment("quickstart", {"methods": ["untrained", "triplet"]})
    session = open_session("q", experiment, storage_paths(str(tmp_path / "none.sqlite")), outline=True)
    rows = with_rates(work_of(session.studies(), session.protocol, None, session.fingerprint), 2, rate_of_records())
    few, many = duration(rows, 2), duration(rows, 100)
    assert few.work.tolist() == many.work.tolist()
    assert few.seconds == pytest.approx(START + few.work / 2)
    assert few.longest is None
    assert many.longest == "Triplet"
    # Four raced searches side by side, each with 10 trials of 4 folds in turn; the untrained trunk takes a second.
    expected, most = many.seconds
    assert expected - START == pytest.approx(few.work[0] / 4, rel=0.3)
    assert most > expected


MANY = ["contrastive", "proxy_anchor", "triplet", "arcface", "cosface", "margin", "snr_contrastive", "multi_similarity"]


def on_eight_gpus(tmp_path, methods, workers=32):
    experiment = load_experiment("mlrc_cub200", {"methods": methods})
    session = open_session("m", experiment, storage_paths(str(tmp_path / "none.sqlite")), outline=True)
    planned = work_of(session.studies(), session.protocol, None, session.fingerprint)
    return with_rates(planned, workers, rate_of_records(gpus=8))


def test_the_folds_of_two_searches_have_a_gpu_each(tmp_path):
    """Eight trainings on eight GPUs have the speed of one alone, and work one GPU each."""
    rows = on_eight_gpus(tmp_path, ["contrastive", "proxy_anchor"])
    assert at_a_time(rows, 32) == {"search": 8, "reproductions": 32, "tests": 20}
    row = rows["contrastive"]
    assert 1 / row.search.rate.step == pytest.approx(74.8, rel=1e-3)
    assert 4 / row.reproductions.rate.step == pytest.approx(115.7, rel=1e-3)
    took = duration(rows, 32, gpus=8)
    expected, most = max(tuple(one.chain(32)) for one in rows.values())
    assert START + expected <= took.seconds[0] < 1.1 * (START + expected)
    assert START + most <= took.seconds[1] < 1.1 * (START + most)
    # All steps of 50 trials one after another at the speed of one alone, then those of a run with four on a GPU.
    assert most == pytest.approx(50 * 100_000 / 74.8 + 100_000 / 115.7 * 4, rel=0.02)
    search = math.fsum(one.search.seconds[0] for one in rows.values())
    assert search < took.work[0] < 1.2 * search
    assert took.work[0] < took.seconds[0] * 8


def test_many_searches_fill_all_workers(tmp_path):
    rows = on_eight_gpus(tmp_path, MANY)
    assert at_a_time(rows, 32)["search"] == 32
    took = duration(rows, 32, gpus=8)
    assert 4 / rows["triplet"].search.rate.step == pytest.approx(115.7, rel=1e-3)
    assert took.work[0] > math.fsum(one.search.seconds[0] for one in rows.values()) / 4


def test_short_trainings_take_the_start_of_processes_and_what_is_no_step(tmp_path):
    """44 trainings of two steps took 41 s on a busy machine of two cores; their steps alone take less than one."""
    few = {"methods": ["triplet"], "training.max_epochs": 1, "training.iterations_per_epoch": 2}
    experiment = load_experiment("quickstart", {**few, "reproduction_epochs": None})
    session = open_session("q", experiment, storage_paths(str(tmp_path / "none.sqlite")), outline=True)
    rows = with_rates(work_of(session.studies(), session.protocol, None, session.fingerprint), 2, rate_of_records())
    search = rows["triplet"].search
    assert search.each == pytest.approx(TRAINING + 2 * search.rate.step)
    assert START < duration(rows, 2).seconds[0] < 2 * START
