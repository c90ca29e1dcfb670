"""Another package adds a loss and a card through entry points, and its method runs like the suite's methods."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "support" / "example_package"


@pytest.mark.long
def test_a_method_of_an_installed_package_is_listed_and_run(tmp_path: Path) -> None:
    site = install(tmp_path)
    assert "centred_contrastive" in reproduce(["methods"], site, tmp_path)
    brief = ["--trials", "1", "--reproductions", "1", "--folds", "1", "--workers", "1"]
    table = reproduce(["run", "quickstart", "--methods", "untrained,centred_contrastive", *brief], site, tmp_path)
    assert "Centred contrastive" in table


def test_without_the_package_the_method_is_unknown(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reproduce", "methods", "centred_contrastive"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "unknown method 'centred_contrastive'" in done.stderr


def install(folder: Path) -> Path:
    # A copy is needed because setuptools builds inside the source folder.
    source, site = shutil.copytree(EXAMPLE, folder / "source"), folder / "site"
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True, capture_output=True)
    return site


def reproduce(arguments: list[str], site: Path, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "reproduce", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
