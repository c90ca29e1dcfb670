"""Dependencies, locks and environments agree; so do licence, version and type information wherever they are said."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from reproduce.config.strict_yaml import read_yaml
from tests.house import imported

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
ROOMS = ("losses", "results", "protocols", "reports", "reproduce")

# Distributions whose module has another name.
MODULES = {
    "pytorch-metric-learning": "pytorch_metric_learning",
    "ruamel-yaml": "ruamel",
    "pillow": "PIL",
    "scikit-learn": "sklearn",
    "faiss-cpu": "faiss",
}

# The same package under conda's name. conda-forge's `playwright` has no Python.
CONDA = {"torch": "pytorch", "playwright": "playwright-python"}


def test_version_and_licence_are_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {PROJECT['version']}\n" in citation
    assert f"\n## {PROJECT['version']}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert PROJECT["license"] == "MIT"
    assert "license: MIT\n" in citation
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")


def test_every_package_says_that_it_is_typed() -> None:
    data = PYPROJECT["tool"]["setuptools"]["package-data"]
    for room in ROOMS:
        assert (ROOT / room / "py.typed").is_file()
        assert "py.typed" in data[room]


@pytest.mark.late
def test_the_losses_are_built_as_a_package_of_their_own(tmp_path: Path) -> None:
    """The wheel is built without network, and works without any package of the suite."""
    build = [sys.executable, str(ROOT / "packaging" / "losses" / "build.py"), "--to", str(tmp_path / "wheels")]
    wheel = subprocess.run(build, check=True, capture_output=True, text=True, cwd=tmp_path).stdout.strip()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", str(tmp_path / "site"), wheel], check=True, capture_output=True)
    code = (
        "import sys, torch, metric_losses as m; loss = m.ProxyISALoss(4, 3); "
        "loss(torch.randn(8, 3), torch.arange(8) % 4); m.Schedule; "
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


def test_every_imported_package_is_declared() -> None:
    extras = ("torchvision", "timm", "nmi", "tensorboard", "onnx", "ray")
    optional = [line for name in extras for line in PROJECT["optional-dependencies"][name]]
    declared = {canonicalize_name(Requirement(line).name) for line in [*PROJECT["dependencies"], *optional]}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    packages = set().union(*map(imported, trees)) - set(sys.stdlib_module_names) - set(ROOMS)
    assert packages <= {MODULES.get(name, name) for name in declared}


def locked(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    pins = [re.fullmatch(r"([\w.-]+)==([\w.!+]+)", line) for line in lines if line and not line.startswith("#")]
    assert all(pins), f"{name}: every line must be package==version"
    return {canonicalize_name(pin[1]): pin[2] for pin in pins}


def test_the_locks_pin_every_dependency_within_its_range() -> None:
    runtime, dev = locked("requirements.lock"), locked("requirements-dev.lock")
    assert not set(runtime) & set(dev)
    for wanted, pins in ((PROJECT["dependencies"], runtime), (PROJECT["optional-dependencies"]["dev"], dev)):
        assert wanted
        for requirement in map(Requirement, wanted):
            pin = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pin, prereleases=True), f"{requirement} is pinned to {pin}"


def test_the_locks_are_closed() -> None:
    """Everything that a pinned package needs in turn is pinned as well, so that pip has nothing to choose."""
    pins = {**locked("requirements.lock"), **locked("requirements-dev.lock")}
    gaps = set()
    for name in pins:
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for requirement in map(Requirement, needs):
            linux_only = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            key = canonicalize_name(requirement.name)
            if linux_only and key not in pins and not key.startswith(("nvidia-", "cuda-", "triton")):
                gaps.add(f"{name} needs {requirement}")
    assert gaps == set()


def conda(file: str = "environment.yml") -> dict[str, Requirement]:
    content = read_yaml((ROOT / file).read_text())["dependencies"]
    plain = [line for line in content if isinstance(line, str)]
    pip = next(line["pip"] for line in content if isinstance(line, dict))
    return {canonicalize_name(requirement.name): requirement for requirement in map(Requirement, plain + pip)}


@pytest.mark.parametrize(("file", "gpu"), [("environment.yml", True), ("environment-cpu.yml", False)])
def test_the_conda_environments_are_in_step_with_pyproject(file: str, gpu: bool) -> None:
    wanted = {}
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        wanted[CONDA.get(name, name)] = requirement.specifier
    wanted["python"] = Requirement("python" + PROJECT["requires-python"]).specifier
    wanted["pip"] = Requirement("pip").specifier
    if gpu:
        wanted["faiss-gpu"] = wanted.pop("faiss-cpu")
        wanted["pytorch-gpu"] = wanted["pytorch"]
    assert {name: requirement.specifier for name, requirement in conda(file).items()} == wanted
    assert read_yaml((ROOT / file).read_text())["channels"] == ["conda-forge"]


def test_ci_runs_what_a_developer_runs() -> None:
    script = ROOT / ".ci" / "run"
    commands = [line for line in script.read_text().splitlines() if line and not line.startswith(("#", "set ", "cd "))]
    # Before the tests, the script only installs programs that they use.
    statistics = '[ -z "$other" ] || make test-statistics PYTHON="$other"'
    assert commands[-5:] == ["make test", "make test-standin", "make test-late", "make test-cluster", statistics]
    assert [line for line in commands[:-5] if "make" in line or "pytest" in line] == []
    assert script.stat().st_mode & 0o100, ".ci/run must be executable"


def test_data_files_are_packaged() -> None:
    """What `importlib.resources` and the command line read must be in a wheel."""
    data = PYPROJECT["tool"]["setuptools"]["package-data"]
    covered = {path for room, globs in data.items() for glob in globs for path in (ROOT / room).glob(glob)}
    present = {path for room in ROOMS for kind in ("csv", "yaml") for path in (ROOT / room).rglob(f"*.{kind}")}
    assert present
    assert present <= covered


def test_the_listed_durations_are_of_tests_that_exist() -> None:
    listed = json.loads((ROOT / "tests" / "durations.json").read_text())
    for file, tests in listed.items():
        defined = set(re.findall(r"^def (test_\w+)", (ROOT / file).read_text(), re.MULTILINE))
        assert set(tests) <= defined, file
