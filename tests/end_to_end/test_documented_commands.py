"""The commands and snippets of README, CONTRIBUTING and docs/ are run, each as it stands there."""

import os
import re
import shutil
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

# What is added to the commands that a pattern finds so that they end in seconds: later options win over earlier ones.
ONE_RUN = ["--trials", "1", "--searches", "1", "--reproductions", "1", "--folds", "1", "--workers", "1"]
BRIEF = ["--methods", "untrained", *ONE_RUN, "--set", "training.max_epochs=2"]
ADDED_OPTIONS = {
    "reproduce run ": BRIEF,
    "run .*(CUB|my_images$|frozen.yaml)": ["--set", "images.crop=32", "--set", "images.resize=36"],
    "run .*--data my_images": ["--set", "embedding_size=8"],
    "CUB_200_2011": ["--subset"],
    "run folder ": ["--folds", "2"],
    "run my_features": ["--methods", "untrained,contrastive"],
    "run warm_up": ["--methods", "contrastive"],
    "run .*(my_loss|my_comparison)": ["--methods", "my_loss.yaml"],
    # docs/search.md loads the study of Proxy-Anchor from the latest quickstart.
    "run quickstart .*my_loss": ["--methods", "proxy_anchor,my_loss.yaml"],
    "run .*wide_angular": ["--methods", "wide_angular.yaml"],
    "run .*--searches 3": ["--searches", "2"],
    "plan folder ": ["--rate", "800"],
    "export embeddings|export model|fit ": ["--method", "untrained"],
}
REPRODUCE = "python -m reproduce "


def test_the_commands_that_are_not_run_here_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    others = [command for command in all_commands() if not command.startswith(REPRODUCE)]
    assert others
    for command in others:
        if target := re.fullmatch(r"make (\S+)", command):
            assert re.search(rf"^{target[1]}:", makefile, flags=re.MULTILINE), command
        elif extra := re.fullmatch(r"pip install -e '\.\[(.+)\]'", command):
            assert extra[1] in extras
        elif tests := re.fullmatch(r"\.venv/bin/python -m pytest -q (\S+?)(?: -k (\w+))?", command):
            assert re.search(rf"def test_\w*{tests[2] or ''}", (ROOT / tests[1]).read_text()), command
        else:  # tests/contracts/test_gpu_benchmark.py runs the only one with a stand-in for pip.
            assert command == "packaging/gpu_machine.sh"


@pytest.mark.long
def test_the_commands_and_snippets_work_as_they_stand(tmp_path: Path) -> None:
    make_inputs(tmp_path)
    run("python -m reproduce run quickstart", [*BRIEF, "--reproductions", "2"], tmp_path)  # As `make quickstart` did.
    for command in all_commands():
        if command.startswith(REPRODUCE):
            added = [options for pattern, options in ADDED_OPTIONS.items() if re.search(pattern, command)]
            run(command, [word for options in added for word in options], tmp_path)
    outputs = [run_snippets(page, tmp_path) for page in PAGES if blocks(page, "python")]
    assert len(outputs) >= 2
    assert any("angular" in output for output in outputs)


def make_inputs(folder: Path) -> None:
    """What the pages' commands find in their folder: images, weights, and the files that a page says to save."""
    image_folders.make_cub(folder / "CUB_200_2011", classes=16)
    for number in range(32):
        image_folders.paint(folder / "my_images" / f"class_{number // 2}" / f"{number}.png", number)
    for number in range(80):
        part = "train" if number < 40 else "gallery" if number % 4 else "query"
        image_folders.paint(folder / "shop" / part / f"p{number // 4}" / f"{number}.jpg", number)
    run_snippets(ROOT / "docs" / "datasets.md", folder)  # Writes the split that the commands on shop/ need.
    # The embedder has 128 dimensions, so principal components need 128 features and training images.
    write_features(folder / "my_features", some_features(per_class=40, width=130), np.repeat(np.arange(16), 40))
    torch.manual_seed(0)
    torch.save(BNInception().state_dict(), folder / "weights.pth")
    shutil.copy(ROOT / "docs" / "prototree.csv", folder)
    for page in PAGES:
        for name, content in files_to_save(page).items():
            (folder / name).write_text(content)


def run(command: str, extra: Sequence[str], folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, *command.split()[1:], *extra],
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
