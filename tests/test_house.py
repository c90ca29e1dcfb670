"""The house's rules: who may import whom, how large folders, files and functions are, no trace of a machine."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests import house
from tests.house import imported

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("losses", "results", "protocols", "reports", "reproduce")
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))

# What each room may import besides the standard library and itself; None allows every declared package and all rooms.
ALLOWED: dict[str, set[str] | None] = {
    "losses": {"torch", "pytorch_metric_learning", "numpy"},
    "results": {"numpy", "scipy", "pandas", "pydantic"},
    "protocols": {
        *("losses", "results"),
        *("torch", "pytorch_metric_learning", "numpy", "scipy", "pandas", "pydantic", "optuna", "PIL"),
        *(
            "filelock",
            "matplotlib",
            "sklearn",
            "faiss",
            "torchvision",
            "safetensors",
        ),
    },
    "reports": {"results", "numpy", "scipy", "pandas", "matplotlib", "PIL", "jinja2"},
    "reproduce": None,
}

MOST_MODULES_OF_A_FOLDER = 20
FEWEST_LINES_BESIDE_ONE_IMPORTER = 40

# Folders that are to become smaller.
STILL_CROWDED = {"losses"}  # One file per loss.
# One file per command and per trunk, however short.
ONE_FILE_PER_THING = ("reproduce/commands/", "protocols/trunks/")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


def foreign(path: Path) -> set[str]:
    """What a file imports from outside its room and the standard library."""
    return imported(parsed(path)) - set(sys.stdlib_module_names) - {room_of(path)}


MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in FILES}


def modules_imported_by(path: Path, nodes: Iterator[ast.AST]) -> set[Path]:
    """Files of the suite that import statements among the nodes name, relative ones of `losses` too."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = ".".join(filter(None, [room_of(path) if node.level else "", node.module]))
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return {MODULES[name] for name in names & MODULES.keys()} - {path}


def nodes_at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: neither functions nor what only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            continue
        yield node
        yield from nodes_at_import(node)


def test_the_parser_sees_lazy_and_dynamic_imports():
    text = "def f():\n    import torch.nn\n    from protocols.x import y\nimportlib.import_module('optuna.x')\n"
    assert imported(ast.parse(text)) == {"torch", "protocols", "optuna"}


def test_no_import_leads_up_or_sideways():
    guilty = {}
    for path in FILES:
        allowed = ALLOWED[room_of(path)]
        if allowed is not None and (too_much := foreign(path) - allowed):
            guilty[named(path)] = too_much
    assert guilty == {}


LIBRARY = "pytorch_metric_learning"
PUBLIC = ("losses", "distances", "reducers", "miners", "regularizers")


def public_in_version_3(package: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / "standin" / LIBRARY / package / "__init__.py").read_text())
    listed = next(
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return {str(node.value) for node in ast.walk(listed) if isinstance(node, ast.Constant)}


def used_of_the_library(path: Path) -> Iterator[tuple[str, str]]:
    """Modules of the library that a file imports from, and the names, also those after a dot, as in `miners.X`."""
    packages = {}
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "*") for alias in node.names if alias.name.startswith(LIBRARY))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(LIBRARY):
            for alias in node.names:
                if node.module == LIBRARY:
                    packages[alias.asname or alias.name] = alias.name
                else:
                    yield str(node.module), alias.name
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in packages:
            yield f"{LIBRARY}.{packages[node.value.id]}", node.attr


def test_the_product_uses_what_is_public_in_both_versions_of_the_library():
    """Version 3 promises its public packages alone. A private name works until a release that says nothing of it."""
    public = {f"{LIBRARY}.{package}": public_in_version_3(package) for package in PUBLIC}
    used = {(named(path), *use) for path in FILES for use in used_of_the_library(path)}
    assert len(used) > 20
    assert {use for use in used if use[2] not in public.get(use[1], set())} == set()


def test_modules_form_no_circle():
    arrows = {named(path): set(map(named, modules_imported_by(path, nodes_at_import(parsed(path))))) for path in FILES}
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' imports '.join(reversed(error.args[1]))}")


def test_no_two_folders_import_each_other():
    """A folder is a room too. `__main__` starts the program and is in none of them."""
    arrows = {
        (named(path.parent), named(other.parent))
        for path in FILES
        if path.name != "__main__.py"
        for other in modules_imported_by(path, ast.walk(parsed(path)))
    }
    assert {(one, other) for one, other in arrows if one < other and (other, one) in arrows} == set()


def test_only_losses_imports_relatively():
    """`losses` is also built under another name. Elsewhere a relative import would hide which room it reaches into."""
    for path in FILES:
        levels = {node.level for node in ast.walk(parsed(path)) if isinstance(node, ast.ImportFrom)} - {0}
        if room_of(path) == "losses":
            assert levels <= {1}, named(path)
            assert "losses" not in imported(parsed(path)), named(path)
        else:
            assert levels == set(), named(path)


def test_test_classes_enter_only_in_the_evaluation():
    """Search and training must not reach the images of the test classes."""
    evaluation = ROOT / "protocols" / "evaluation"
    outside = [path for path in FILES if room_of(path) == "protocols" and evaluation not in path.parents]
    guilty = {
        named(path): sorted(map(named, reached))
        for path in outside
        if (reached := {one for one in modules_imported_by(path, ast.walk(parsed(path))) if evaluation in one.parents})
    }
    assert any(evaluation in path.parents for path in FILES)
    assert guilty == {}, "only protocols/evaluation and reproduce may import protocols.evaluation"


def test_tables_and_store_need_no_torch():
    """All of `results` and `reports`, and what `reproduce` reads experiments, draws and repairs stores with."""
    readers = (
        *("reproduce.commands.export", "reproduce.outputs.tables", "reproduce.outputs.page"),
        "reproduce.commands.store",
        *("reproduce.config.experiment_file", "reproduce.config.method_card"),
    )
    below = [name for name, path in MODULES.items() if room_of(path) in ("results", "reports")]
    code = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    code += "; print(sorted({'torch', 'protocols', 'losses', 'optuna'} & set(sys.modules)))"
    command = [sys.executable, "-c", code, *readers, *below]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_lines_of_code_are_neither_comments_nor_docstrings():
    text = '"""A\nmodule."""\n\n# comment\ndef f(x):\n    """Says."""\n    text = """two\nlines"""\n    return x\n'
    assert house.lines_of_code(text) == 4


def test_folders_can_be_seen_in_one_glance():
    modules = Counter(named(path.parent) for path in FILES if path.name != "__init__.py")
    crowded = {folder: count for folder, count in modules.items() if count > MOST_MODULES_OF_A_FOLDER}
    assert crowded.keys() <= STILL_CROWDED, crowded


def test_a_small_module_has_several_importers():
    """A small module with one importer is a part of it."""
    importers = Counter(other for path in FILES for other in modules_imported_by(path, ast.walk(parsed(path))))
    small = {
        named(path)
        for path in FILES
        if path.name not in ("__init__.py", "__main__.py")
        and importers[path] == 1
        and len(path.read_text(encoding="utf-8").splitlines()) < FEWEST_LINES_BESIDE_ONE_IMPORTER
        and not named(path).startswith(ONE_FILE_PER_THING)
    }
    assert small == set()


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
            guilty[named(path)] = found.group().decode()
    assert guilty == {}


def test_no_helper_is_imported_from_a_test():
    guilty = []
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(re.search(r"(^|\.)(test_\w+|conftest)$", name) for name in names if name.startswith("tests.")):
                guilty.append(named(path))
    assert guilty == []


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
        for name in public_types(parsed(path)):
            homes.setdefault(name, []).append(named(path))
    shared = {name: files for name, files in homes.items() if len(files) > 1}
    assert shared == {}
