"""Licence, version and type information agree wherever they are said."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def test_version_and_licence_are_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {PROJECT['version']}\n" in citation
    assert f"\n## {PROJECT['version']}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert PROJECT["license"] == "MIT"
    assert "license: MIT\n" in citation
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")


def test_every_package_says_that_it_is_typed() -> None:
    data = PYPROJECT["tool"]["setuptools"]["package-data"]
    for room in ("losses", "results", "protocols", "reports", "reproduce"):
        assert (ROOT / room / "py.typed").is_file()
        assert "py.typed" in data[room]


def test_the_losses_are_built_as_a_package_of_their_own(tmp_path: Path) -> None:
    """The wheel is built without network, and works without any package of the suite."""
    build = [sys.executable, str(ROOT / "packaging" / "losses" / "build.py"), "--to", str(tmp_path / "wheels")]
    wheel = subprocess.run(build, check=True, capture_output=True, text=True, cwd=tmp_path).stdout.strip()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", str(tmp_path / "site"), wheel], check=True, capture_output=True)
    code = (
        "import sys, torch, metric_losses as m; loss = m.ProxyISALoss(4, 3); "
        "loss(torch.randn(8, 3), torch.arange(8) % 4); m.Schedule; m.attach; "
        "print(type(loss).__module__, sorted({'losses', 'results', 'protocols'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.stdout == "metric_losses.proxy_isa []\n", done.stderr


def test_the_package_of_the_losses_agrees_with_the_suite() -> None:
    losses = tomllib.loads((ROOT / "packaging" / "losses" / "pyproject.toml").read_text())["project"]
    assert losses["version"] == PROJECT["version"]
    assert losses["requires-python"] == PROJECT["requires-python"]
    assert losses["license"] == PROJECT["license"]
    assert {line.split(">")[0] for line in losses["dependencies"]} == {"torch", "pytorch-metric-learning"}
    assert set(losses["dependencies"]) <= set(PROJECT["dependencies"])
