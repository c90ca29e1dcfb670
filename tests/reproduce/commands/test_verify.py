"""`reproduce verify` trains a sample of a finished run's trainings again."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from results.store.database import Database, digest_of
from tests.support.command_line import refused

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")

ALL = 8
"""Trainings of the tiny run: two untrained, four of the search, two of the reproduction."""


@pytest.fixture
def runs(tiny_run: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_run / "runs", tmp_path / "runs")


@pytest.fixture
def verify(tiny_run, say):
    images = ("--data", str(tiny_run / "images"), "--device", "cpu")
    return lambda *more: say("verify", "tiny", *images, *more)


def contents(folder: Path) -> dict[str, str]:
    files = [folder / "store.sqlite", *(path for path in (folder / "artifacts").rglob("*") if path.is_file())]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def forge(runs: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Change the results of all trainings, and their hashes with them."""
    with Database(runs / "store.sqlite").writing() as connection:
        for fingerprint, text in connection.execute("SELECT fingerprint, content FROM trainings").fetchall():
            content = json.loads(text)
            change(content)
            text = json.dumps(content)
            values = text, digest_of(text), fingerprint
            connection.execute("UPDATE trainings SET content = ?, sha256 = ? WHERE fingerprint = ?", values)


def forge_a_score(result):
    result["curve"][0]["map_at_r"] = 0.9


def test_all_trainings_of_a_run_are_equal_and_the_store_stays_as_it_is(runs, verify):
    before = contents(runs)
    answer = verify("--sample", "99").done()
    assert f"{ALL} of {ALL} equal" in answer.out
    assert contents(runs) == before


def test_a_forged_result_that_agrees_with_itself_is_found(runs, verify):
    forge(runs, forge_a_score)
    answer, again, other = (verify("--sample", "1", "--seed", seed) for seed in ("1", "1", "4"))
    assert answer.out == again.out != other.out
    assert answer.code == 1
    assert re.search(r"another result \(MAP@R 0\.\d+ after \d+ iterations, stored is 0\.\d+ after \d+\)", answer.out)
    assert "processor and packages are the same" in answer.out


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("threads", 64, "threads 1 instead of 64"),
        ("processor", "Z80", "instead of Z80"),
        ("versions", {"torch": "1.0", "scipy": "0.1"}, "instead of 1.0"),
    ],
)
def test_differences_from_another_machine_are_only_reported(runs, verify, name, value, said):
    def change(result):
        forge_a_score(result)
        result["provenance"][name] = value

    forge(runs, change)
    answer = verify("--sample", "1")
    assert answer.code == 0
    assert said in answer.out


def test_changed_missing_and_damaged_checkpoints_are_found(runs, verify):
    first, second, *others = [
        path for path in sorted((runs / "artifacts").glob("??/*.pt")) if path.name.count(".") == 1
    ]
    first.unlink()
    second.write_bytes(b"")
    for path in others:
        tensors = torch.load(path, weights_only=True)
        if tensors:
            next(iter(tensors.values())).view(-1)[0] += 1e-6
            torch.save(tensors, path)
    answer = verify("--sample", "99")
    assert answer.code == 1
    for said in ("(FileNotFoundError)", "(EOFError)", "other weights than those in"):
        assert said in answer.out


def test_trainings_of_another_version_are_one_line(runs, verify, monkeypatch):
    monkeypatch.setattr("reproduce.outputs.train_again.TRAINING_VERSION", 99)
    refused(verify(), "this version of the code made no training of it")


def test_bad_input_is_one_line(runs, tiny_run, say):
    refused(say("verify", "tiny", "--sample", "0"), "--sample")
    refused(say("verify", "other"), "no experiment 'other'")
    refused(say("verify", "tiny", "--device", "cpu"), "give the folder of its images")
    shutil.copytree(tiny_run / "images", "changed")
    Path("changed/class_00/0.png").unlink()
    refused(say("verify", "tiny", "--device", "cpu", "--data", "changed"), "not the images of")
