"""Damaged checkpoints are named, removed and made again, with equal results."""

import logging
from pathlib import Path

import pytest

from protocols.setup import Setup
from protocols.training.train_fold import train_fold
from results.atomic_files import is_sound
from results.records.artifacts import weights_path
from results.store.store import Store
from tests.support.labs import Observer, reproduction, run_here, without_time
from tests.support.sample_records import some_result
from tests.support.small_setup import COSFACE, small_setup


def only_line(caplog: pytest.LogCaptureFixture, *words: str) -> None:
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "\n" not in line
    for word in words:
        assert word in line


@pytest.fixture
def opened(tmp_path: Path) -> tuple[Setup, Store]:
    return small_setup(tmp_path / "cache"), Store(tmp_path / "store.sqlite", tmp_path / "artifacts")


def test_a_damaged_checkpoint_is_trained_again_with_the_same_result(opened, caplog):
    setup, store = opened
    (whole,) = run_here(setup, store, {"cosface": reproduction(setup, COSFACE)})["cosface"]
    results = {name: store.fold_result(name) for name in whole.fold_fingerprints}
    with store.database.writing() as connection:
        connection.execute("DELETE FROM runs")
    spec = setup.fold_specs(COSFACE, "reproduction", 0)[0]
    weights = weights_path(store.artifacts, spec)
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    again, observer = {"cosface": reproduction(setup, COSFACE)}, Observer()
    (repeated,) = run_here(setup, store, again, observer=observer)["cosface"]
    only_line(caplog, "the checkpoint", "removed and made again")
    exclude = {"wall_time", "provenance"}
    assert repeated.model_dump(exclude=exclude) == whole.model_dump(exclude=exclude)
    assert next(name for _, name, from_store in observer.seen if not from_store) == spec.fingerprint
    assert {name: store.fold_result(name) for name in results} == results
    assert is_sound(weights)


def test_a_repeated_training_with_another_result_is_reported(opened, caplog):
    setup, store = opened
    spec = setup.fold_specs(COSFACE, "reproduction", 0)[0]
    result = train_fold(spec, setup.training_data(spec), device="cpu").result
    store.put_fold(some_result(spec, 0.99))
    run_here(setup, store, {"cosface": reproduction(setup, COSFACE)})
    only_line(caplog, "cosface, fold 0", "another result", "0.99")
    assert store.fold_result(spec.fingerprint).best_map_at_r == 0.99
    assert without_time([result]) != without_time([store.fold_result(spec.fingerprint)])
