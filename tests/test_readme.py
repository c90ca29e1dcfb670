"""The README's commands are run, its snippets executed, and its table is what the code draws from the kept records."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from protocols.evaluation.evaluate_run import evaluate_run
from protocols.evaluation.test_data import test_data as data_for_testing
from protocols.jobs import EvaluateJob
from protocols.training.train_fold import train_fold
from protocols.trunks.bn_inception import BNInception
from reports.tables.markdown import to_markdown
from reports.tables.result_table import result_cells, table_of
from reproduce.execution.session import open_session
from reproduce.storage import storage_paths
from results.experiment_results import FOLDER, MeasuredExperiment
from tests.support.experiment_files import load_experiment

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

# What is added to a command so that it ends in seconds: later options win over earlier ones.
BRIEF = ["--methods", "untrained", "--trials", "1", "--reproductions", "1", "--folds", "1", "--workers", "1"]
TINY_CUB = [*BRIEF, "--subset", "--image-size", "32"]
HOW = {
    "python -m reproduce experiments": [],
    "python -m reproduce methods": [],
    "python -m reproduce methods proxy_anchor": [],
    "python -m reproduce datasets": [],
    "python -m reproduce data check cub200 --data CUB_200_2011": ["--subset"],
    "python -m reproduce data prepare cub200 --data CUB_200_2011": ["--subset"],
    "python -m reproduce plan mlrc_cub200": [*BRIEF, "--image-size", "32"],
    "python -m reproduce plan mlrc_cub200 --rate 800": [],
    "python -m reproduce plan proxy_isa_table1 --rate 800": [],
    "python -m reproduce run proxy_isa_table1/cub200 --data CUB_200_2011": TINY_CUB,
    "python -m reproduce run mlrc_cub200 --data CUB_200_2011": TINY_CUB,
    "python -m reproduce status": [],
    "python -m reproduce run mlrc_cub200 --data CUB_200_2011 --methods untrained,contrastive,proxy_anchor "
    "--trials 10 --reproductions 3": TINY_CUB,
    "python -m reproduce run cub200_small --data CUB_200_2011 --subset": TINY_CUB,
    "python -m reproduce table": [],
    "python -m reproduce table proxy_isa_table1": [],
    "python -m reproduce table mlrc_cub200 --what results --format latex": [],
    "python -m reproduce table quickstart --what differences": [],
    "python -m reproduce report quickstart": [],
    "python -m reproduce export runs --to exported": [],
    "python -m reproduce run folder --data my_images": [*BRIEF, "--image-size", "32"],
    "python -m reproduce run quickstart --methods contrastive,angular.yaml": [
        *("--methods", "untrained,angular.yaml", "--trials", "1", "--reproductions", "1", "--folds", "1"),
        *("--workers", "1"),
    ],
}
BY_MAKE = ["make quickstart", "make test"]
# Over a gigabyte from a publisher's server; tests/reproduce/commands/test_data.py fetches from a server of its own.
DOWNLOADS = ["python -m reproduce data fetch cub200 --to ."]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands() -> list[str]:
    return [line for block in blocks("bash") for line in block.splitlines() if line.strip()]


def test_every_command_of_the_readme_is_run_here_or_by_ci() -> None:
    assert set(commands()) == {*HOW, *BY_MAKE, *DOWNLOADS}
    assert "make test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.slow
def test_the_readmes_commands_work_as_they_stand(tmp_path: Path) -> None:
    make_cub(tmp_path / "CUB_200_2011")
    make_folder(tmp_path / "my_images")
    torch.manual_seed(0)
    torch.save(BNInception().state_dict(), tmp_path / "weights.pth")
    (tmp_path / "angular.yaml").write_text(blocks("yaml")[0])
    run("python -m reproduce run quickstart", [*BRIEF, "--reproductions", "2"], tmp_path)  # As `make quickstart` did.
    for command in commands():
        if command in HOW:
            run(command, HOW[command], tmp_path)
    code = "\n".join(blocks("python"))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "angular" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.skipif(not (ROOT / ".venv" / "runtime.stamp").exists(), reason="make quickstart would install packages")
def test_make_quickstart_runs_and_trains_nothing_the_second_time(tmp_path: Path) -> None:
    arguments = (
        f"--store {tmp_path}/store.sqlite --methods untrained,contrastive --trials 1 --reproductions 1 --folds 1"
    )
    outputs = [
        subprocess.run(
            ["make", "quickstart", f"ARGS={arguments}"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert "3 trainings made" in outputs[0].stdout
    assert "0 trainings made" in outputs[1].stdout
    assert "3 found in the store" in outputs[1].stdout


def test_the_readmes_table_is_drawn_from_the_kept_records() -> None:
    shown = README.split("<!-- table: quickstart -->")[1].split("<!-- end of table -->")[0].strip()
    assert shown == to_markdown(table_of(kept())).strip()


def test_the_kept_records_show_trained_methods_far_above_the_untrained_trunk() -> None:
    rows = {row.key: result_cells(row)["separated", "map_at_r"] for row in table_of(kept()).rows}
    untrained = rows.pop("untrained")
    assert len(rows) >= 4
    for cell in rows.values():
        assert cell.half_width is not None
        assert cell.value - cell.half_width > 3 * untrained.value


@pytest.mark.slow
def test_a_kept_run_can_be_made_again(tmp_path: Path) -> None:
    session = open_session(
        "quickstart",
        load_experiment("quickstart", {}),
        storage_paths(str(tmp_path / "store.sqlite"), None, None, None),
        None,
    )
    record = next(record for record in kept().records if (record.method, record.run) == ("normalized_softmax", 0))
    method = session.open_methods()["normalized_softmax"].at(record.hyperparameters)
    specs = session.problem.fold_specs(method, "reproduction", 0)
    if session.problem.dataset.fingerprint == record.data_fingerprint:
        assert tuple(spec.fingerprint for spec in specs) == record.fold_fingerprints
    torch.set_num_threads(1)
    trained = train_fold(specs[0], session.problem.training_data(specs[0]))
    job = EvaluateJob(specs[:1], record.protocol, record.hyperparameters, 0, record.seed, trained.result.wall_time)
    again = evaluate_run(job, [trained.weights], data_for_testing(session.problem.dataset, session.problem.split))
    # Twice the half width of the row's interval: other machines and library builds round differently.
    assert again.separated.map_at_r == pytest.approx(record.fold_scores[0].map_at_r, abs=0.03)


def kept() -> MeasuredExperiment:
    return MeasuredExperiment.from_json((FOLDER / "quickstart.json").read_text(encoding="utf-8"))


def run(command: str, extra: Sequence[str], folder: Path) -> None:
    words = command.split()
    assert words[:3] == ["python", "-m", "reproduce"]
    done = subprocess.run(
        [sys.executable, *words[1:], *extra],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "METRIC_LEARNING_WEIGHTS": str(folder / "weights.pth")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert done.stdout.strip(), command


def photograph(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (40, 48, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


def make_folder(root: Path) -> None:
    for label in range(8):
        for number in range(2):
            photograph(root / f"class_{label}" / f"{number}.png", 10 * label + number)


def make_cub(root: Path) -> None:
    images, labels = [], []
    for label in range(8):
        for number in range(2):
            name = f"{label + 1:03d}.Bird_{label}/{number}.jpg"
            photograph(root / "images" / name, 10 * label + number)
            images.append(f"{len(images) + 1} {name}")
            labels.append(f"{len(labels) + 1} {label + 1}")
    (root / "classes.txt").write_text("".join(f"{k + 1} {k + 1:03d}.Bird_{k}\n" for k in range(8)))
    (root / "images.txt").write_text("\n".join(images) + "\n")
    (root / "image_class_labels.txt").write_text("\n".join(labels) + "\n")
