"""The commands and snippets of README, CONTRIBUTING and docs/ are run, each as it stands there."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from protocols.trunks.bn_inception import BNInception
from tests.support import image_folders
from tests.support.documentation import PAGES, ROOT, all_commands, blocks, files_to_save
from tests.support.feature_files import some_features, write_features

# What is added to a command so that it ends in seconds: later options win over earlier ones.
ONE_RUN = ["--trials", "1", "--searches", "1", "--reproductions", "1", "--folds", "1", "--workers", "1"]
BRIEF = ["--methods", "untrained", *ONE_RUN]
TINY = [*BRIEF, "--set", "images.crop=32", "--set", "images.resize=36"]
TINY_CUB = [*TINY, "--subset"]
ADDED_OPTIONS = {
    "python -m reproduce experiments": [],
    "python -m reproduce methods": [],
    "python -m reproduce methods proxy_anchor": [],
    "python -m reproduce datasets": [],
    "python -m reproduce data check cub200 --data CUB_200_2011": ["--subset"],
    "python -m reproduce data check folder --data my_images": [],
    "python -m reproduce data check folder --data shop": [],
    "python -m reproduce run folder_small --data shop": BRIEF,
    "python -m reproduce data check features --data my_features": [],
    "python -m reproduce run frozen.yaml --data my_images": TINY,
    "python -m reproduce run mine.yaml": BRIEF,
    "python -m reproduce run my_search.yaml": [*BRIEF, "--set", "training.max_epochs=2"],
    "python -m reproduce run warm_up.yaml": [*ONE_RUN, "--methods", "contrastive", "--set", "training.max_epochs=2"],
    "python -m reproduce export study quickstart --to studies.sqlite": [],
    "python -m reproduce run mlrc_frozen_cub200/pca_start --data CUB_200_2011": TINY_CUB,
    "python -m reproduce run mlrc_frozen_cub200/pca_start --data CUB_200_2011 --subset "
    "--searches 1 --trials 50 --reproductions 10 --compare all": TINY_CUB,
    "python -m reproduce run mlrc_frozen_cub200/random_start --data CUB_200_2011 --subset "
    "--searches 1 --trials 50 --reproductions 10 --compare all": TINY_CUB,
    "python -m reproduce run same_method_frozen_cub200 --data CUB_200_2011 --subset": TINY_CUB,
    "python -m reproduce plan folder --data my_images": ["--rate", "800"],
    "python -m reproduce run folder_small --data my_images": BRIEF,
    "python -m reproduce new method my_loss": [],
    "python -m reproduce run folder_small --data my_images --methods contrastive,proxy_anchor,my_loss.yaml "
    "--compare my_loss": [
        *(*BRIEF, "--methods", "my_loss.yaml", "--set", "training.max_epochs=2"),
    ],
    "python -m reproduce table folder_small --what differences": [],
    "python -m reproduce plan my_experiment.yaml": [],
    "python -m reproduce run my_experiment.yaml": [*BRIEF, "--set", "training.max_epochs=2"],
    "python -m reproduce plan my_features.yaml": [],
    "python -m reproduce run my_features.yaml": [
        *BRIEF,
        "--methods",
        "untrained,contrastive",
        "--set",
        "training.max_epochs=2",
    ],
    "python -m reproduce table my_features": [],
    "python -m reproduce table my_features --what differences": [],
    "python -m reproduce plan mlrc_cub200": TINY,
    "python -m reproduce plan mlrc_cub200 --rate 800": [],
    "python -m reproduce plan proxy_isa_table1 --rate 800": [],
    "python -m reproduce run proxy_isa_table1/cub200 --data CUB_200_2011": TINY_CUB,
    "python -m reproduce run mlrc_cub200 --data CUB_200_2011": TINY_CUB,
    "python -m reproduce status": [],
    "python -m reproduce store check": [],
    "python -m reproduce store check --records-only": [],
    "python -m reproduce verify quickstart --sample 5": ["--sample", "1"],
    "python -m reproduce run mlrc_cub200 --data CUB_200_2011 --methods untrained,contrastive,proxy_anchor "
    "--trials 10 --reproductions 3": TINY_CUB,
    "python -m reproduce run cub200_small --data CUB_200_2011 --subset": TINY_CUB,
    "python -m reproduce table": [],
    "python -m reproduce table proxy_isa_table1": [],
    "python -m reproduce table mlrc_cub200 --what results --format latex": [],
    "python -m reproduce run quickstart --searches 3": [*BRIEF, "--searches", "2"],
    "python -m reproduce table quickstart --what differences": [],
    "python -m reproduce table quickstart --what peeking": [],
    "python -m reproduce plan proxy_gml_figure5 --rate 800": [],
    "python -m reproduce claims": [],
    "python -m reproduce claims --any-dataset": [],
    "python -m reproduce claims --format latex": [],
    "python -m reproduce coverage": [],
    "python -m reproduce coverage proxy_isa_table1": [],
    "python -m reproduce coverage proxy_isa_table1 --settings": [],
    "python -m reproduce report quickstart": [],
    "python -m reproduce export runs --to exported": [],
    "python -m reproduce export embeddings frozen --method contrastive --data my_images --to embeddings": [
        *("--method", "untrained")
    ],
    "python -m reproduce export model folder --method contrastive --to best_model": [
        "--method",
        "untrained",
    ],
    "python -m reproduce fit folder --method contrastive --data my_images --to model_of_all": ["--method", "untrained"],
    "python -m reproduce run folder --data my_images": [*TINY, "--folds", "2"],
    "python -m reproduce run quickstart --methods contrastive,wide_angular.yaml --compare wide_angular": [
        *BRIEF,
        *("--methods", "wide_angular.yaml", "--compare", "wide_angular"),
    ],
    "python -m reproduce methods my_loss.yaml": [],
    # docs/search.md loads the study of contrastive from the latest quickstart.
    "python -m reproduce run quickstart --methods contrastive,my_loss.yaml --compare my_loss": [
        *(*BRIEF, "--methods", "contrastive,my_loss.yaml")
    ],
    "python -m reproduce run quickstart --methods contrastive,my_loss.yaml --compare my_loss "
    "--set metrics=+./my_metrics.py:spread": [*BRIEF, "--methods", "contrastive,my_loss.yaml"],
    "python -m reproduce run my_comparison.yaml": [*BRIEF, "--methods", "my_loss.yaml"],
}
BY_MAKE = [
    "make quickstart",
    "make example",
    "make bench",
    "make test",
    "make test-fast",
    "make test-late",
    "make test-faults",
    "make test-long",
    "make test-cluster",
    "make check",
    "make docs",
    "make durations",
    "make mutants",
    "make calibrate",
]
BY_PIP = [f"pip install -e '.[{extra}]'" for extra in ("torchvision", "ray")]
BY_PYTEST = [
    ".venv/bin/python -m pytest -q tests/losses/test_proxy_anchor.py",
    ".venv/bin/python -m pytest -q tests/test_house.py -k circle",
]
# Packages; tests/contracts/test_gpu_machine.py runs the script with a stand-in for pip.
DOWNLOADS = ["packaging/gpu_machine.sh"]


def test_every_command_has_a_rule() -> None:
    assert set(all_commands()) == {*ADDED_OPTIONS, *BY_MAKE, *BY_PIP, *BY_PYTEST, *DOWNLOADS}


def test_the_commands_that_are_not_run_here_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in BY_MAKE:
        assert re.search(rf"^{command.removeprefix('make ')}:", makefile, flags=re.MULTILINE), command
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    extras = project()["optional-dependencies"]
    assert all(re.fullmatch(r"pip install -e '\.\[(.+)\]'", command)[1] in extras for command in BY_PIP)
    for command in BY_PYTEST:
        file, *words = command.split("-q ")[1].split(" -k ")
        assert all(re.search(rf"def test_\w*{word}", (ROOT / file).read_text()) for word in words) or not words
        assert (ROOT / file).is_file()


@pytest.mark.long
def test_the_commands_and_snippets_work_as_they_stand(tmp_path: Path) -> None:
    make_inputs(tmp_path)
    run("python -m reproduce run quickstart", [*BRIEF, "--reproductions", "2"], tmp_path)  # As `make quickstart` did.
    for command in all_commands():
        if command in ADDED_OPTIONS:
            run(command, ADDED_OPTIONS[command], tmp_path)
    outputs = [run_snippets(page, tmp_path) for page in PAGES if blocks(page, "python")]
    assert len(outputs) >= 2
    assert any("angular" in output for output in outputs)


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def make_inputs(folder: Path) -> None:
    """What the pages' commands find in their folder: images, weights, and the files that a page says to save."""
    image_folders.make_cub(folder / "CUB_200_2011", classes=16)
    for number in range(16):
        image_folders.paint(folder / "my_images" / f"class_{number // 2}" / f"{number}.png", number)
    for number in range(40):
        part = "train" if number < 20 else "gallery" if number % 4 else "query"
        image_folders.paint(folder / "shop" / part / f"p{number // 4}" / f"{number}.jpg", number)
    run_snippets(ROOT / "docs" / "datasets.md", folder)  # Writes the split that the commands on shop/ need.
    # The embedder has 128 dimensions, so principal components need 128 features and training images.
    write_features(folder / "my_features", some_features(per_class=40, width=130), np.repeat(np.arange(16), 40))
    torch.manual_seed(0)
    torch.save(BNInception().state_dict(), folder / "weights.pth")
    for page in PAGES:
        for name, content in files_to_save(page).items():
            (folder / name).write_text(content)


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


def run_snippets(page: Path, folder: Path) -> str:
    """Output of a page's Python blocks, run as one program."""
    code = "\n".join(blocks(page, "python"))
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{page}\n{done.stderr}"
    return done.stdout
