"""`reproduce verify` trains a sample of a finished run's trainings again."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
import torch

from results.store.database import Database
from results.store.schema import FOLD_RESULTS
from tests.support.command_line import ask

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")

ALL = 8
"""Trainings of the tiny run: two untrained, four of the search, two of the reproduction."""


@pytest.fixture
def runs(tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(tiny_run / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


@pytest.fixture
def verify(tiny_run, capsys, monkeypatch):
    images = ("--data", str(tiny_run / "images"), "--workers", "1", "--device", "cpu")
    return lambda *more: ask("verify", "tiny", *images, *more, capsys=capsys, monkeypatch=monkeypatch)


def contents(folder: Path) -> dict[str, str]:
    files = [folder / "store.sqlite", *(path for path in (folder / "artifacts").rglob("*") if path.is_file())]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def change_results(runs: Path, **changes: object) -> None:
    with Database(f"sqlite:///{runs / 'store.sqlite'}").writing() as connection:
        for row in connection.execute(sa.select(FOLD_RESULTS.c.fingerprint, FOLD_RESULTS.c.result)).all():
            text = json.dumps({**json.loads(row.result), **changes})
            key = FOLD_RESULTS.c.fingerprint == row.fingerprint
            connection.execute(sa.update(FOLD_RESULTS).where(key).values(result=text))


def changed_origin(runs: Path, **changes: object) -> dict[str, object]:
    with Database(f"sqlite:///{runs / 'store.sqlite'}").reading() as connection:
        result = connection.execute(sa.select(FOLD_RESULTS.c.result).limit(1)).scalar_one()
    return {**json.loads(result)["provenance"], **changes}


def test_all_trainings_of_a_run_are_equal_and_the_store_stays_as_it_is(runs, verify):
    before = contents(runs)
    answer = verify("--sample", "99")
    assert answer.code == 0, answer.out + answer.err
    assert f"{ALL} of {ALL} equal bit for bit" in answer.out
    assert answer.out.count("(record and checkpoint)") == 4
    assert contents(runs) == before


def test_there_can_be_more_trainings_than_workers(runs, verify):
    answer = verify("--sample", "5", "--workers", "2")
    assert answer.code == 0, answer.out + answer.err
    assert "5 of 5 equal bit for bit" in answer.out


def test_the_seed_decides_the_sample(runs, verify):
    first, again, other = (verify("--sample", "2", "--seed", seed).out.splitlines()[1:3] for seed in ("1", "1", "4"))
    assert first == again != other


def test_another_result_in_the_store_is_found(runs, verify):
    change_results(runs, best_iteration=1, best_map_at_r=0.9)
    answer = verify("--sample", "1")
    assert answer.code == 1
    assert "best_iteration" in answer.out
    assert "points" in answer.out
    assert "processor and packages are the same" in answer.out
    assert "do not name the processor" not in answer.out


def test_a_result_without_its_processor_leaves_another_one_possible(runs, verify):
    change_results(runs, best_map_at_r=0.9, provenance=changed_origin(runs, processor=""))
    answer = verify("--sample", "1")
    assert answer.code == 1
    assert "the records of 1 of them do not name the processor" in answer.out


@pytest.mark.parametrize(
    ("changes", "said"), [({"threads": 64}, "threads 1 instead of 64"), ({"processor": "Z80"}, "Z80")]
)
def test_differences_from_another_machine_are_only_reported(runs, verify, changes, said):
    change_results(runs, best_map_at_r=0.9, provenance=changed_origin(runs, **changes))
    answer = verify("--sample", "1")
    assert answer.code == 0
    assert said in answer.out
    assert "the differences are only reported" in answer.out


def test_a_changed_tensor_is_found(runs, verify):
    for path in (runs / "artifacts").glob("??/*.pt"):
        tensors = torch.load(path, weights_only=True)
        if isinstance(tensors, dict) and tensors:
            next(iter(tensors.values())).view(-1)[0] += 1e-6
            torch.save(tensors, path)
    answer = verify("--sample", "99")
    assert answer.code == 1
    assert "tensors in" in answer.out


def test_a_missing_and_a_damaged_checkpoint_are_found(runs, verify):
    first, second, *_ = [path for path in sorted((runs / "artifacts").glob("??/*.pt")) if path.name.count(".") == 1]
    first.unlink()
    second.write_bytes(b"")
    out = verify("--sample", "99").out
    assert "is missing" in out
    assert "cannot be loaded" in out


def test_trainings_of_another_version_are_one_line(runs, verify, monkeypatch):
    monkeypatch.setattr("reproduce.store_care.train_again.TRAINING_VERSION", 99)
    answer = verify()
    assert answer.code == 2
    assert answer.out.startswith(f"{ALL} training(s) were made by another version")
    assert "no stored training can be verified" in answer.err


def test_bad_input_is_one_line(runs, verify, tiny_run, capsys, monkeypatch):
    def asked(*arguments: str) -> str:
        answer = ask("verify", *arguments, "--device", "cpu", capsys=capsys, monkeypatch=monkeypatch)
        assert answer.code == 2
        assert answer.err.count("\n") == 1
        return answer.err

    assert "at least one training" in asked("tiny", "--sample", "0")
    assert "no experiment 'other'" in asked("other")
    assert "give the folder of its images" in asked("tiny")
    shutil.copytree(tiny_run / "images", "changed")
    Path("changed/class_00/0.png").unlink()
    assert "not the images of" in asked("tiny", "--data", "changed", "--workers", "1")
