"""The parts of `make bench-gpu` work on a CPU with tiny sizes, so that their first use on a GPU can succeed."""

import json
import sys
from pathlib import Path

import pytest
import torch

from reproduce.config.experiment_file import load_experiments
from tests.benchmarks import gpu, gpu_parts


def part(name: str, folder: Path) -> dict:
    out = folder / "part.json"
    gpu_parts.PARTS[name](gpu_parts.Setup(torch.device("cpu"), True, None, out))
    return json.loads(out.read_text())


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_without_cuda_one_line_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert gpu.main(["--out", str(tmp_path / "out.json")]) == 2
    assert capsys.readouterr().out == "bench-gpu: this machine has no CUDA, so nothing was measured\n"
    assert not (tmp_path / "out.json").exists()


def test_a_smoke_test_does_not_replace_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--smoke"]) == 2
    assert "--smoke needs --out" in capsys.readouterr().out


def test_all_limits_together_stay_below_nine_minutes() -> None:
    assert gpu.LIMITS.keys() == gpu_parts.PARTS.keys()
    assert sum(gpu.LIMITS.values()) <= 530


def test_steps_are_measured(tmp_path: Path) -> None:
    rates = part("steps", tmp_path)
    assert rates["small_conv, batch 8, float32"]["median"] > 0
    assert rates["small_conv, batch 8, amp"]["median"] > 0


def test_both_augmentations_are_measured(tmp_path: Path) -> None:
    rates = part("augmentation", tmp_path)
    assert list(rates) == ["faithful", "device, images kept on the device", "device, images sent"]
    assert all(rate["lowest"] <= rate["median"] <= rate["highest"] for rate in rates.values())


def test_retrieval_is_measured(tmp_path: Path) -> None:
    assert len(part("retrieval", tmp_path)["seconds_each"]) == 3


@pytest.mark.long
def test_folds_side_by_side_are_measured(tmp_path: Path) -> None:
    rates = part("folds", tmp_path)
    assert list(rates) == ["small_conv, 1 folds", "small_conv, 2 folds"]
    assert all(rate > 0 for rate in rates.values())


def test_a_short_run_needs_images(tmp_path: Path) -> None:
    assert "left_out" in part("run", tmp_path)
    (experiment,) = load_experiments(str(gpu_parts.short_experiment(tmp_path)), {}).values()
    assert experiment.training.max_epochs == 2


def test_a_part_that_takes_too_long_is_ended() -> None:
    assert gpu._failure([sys.executable, "-c", "import time; time.sleep(60)"], 0.5) == "took longer than 0.5 seconds"
    assert gpu._failure([sys.executable, "-c", "raise ValueError('why')"], 60) == "ValueError: why"
    assert gpu._failure([sys.executable, "-c", ""], 60) is None


@pytest.mark.long
def test_the_file_has_all_parts_and_their_origin(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert gpu.main(["--smoke", "--out", str(out), "--parts", "retrieval", "run"]) == 0
    content = json.loads(out.read_text())
    assert list(content) == ["smoke", "retrieval", "run", "provenance"]
    assert content["provenance"]["device"] == "cpu"
