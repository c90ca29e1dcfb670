"""The hash of a source covers all users' code that is really loaded, however Python finds it, and nothing else."""

import hashlib
import os
import py_compile
from collections.abc import Callable
from pathlib import Path

import pytest

from protocols.training.build_method import MethodError
from protocols.training.check_method import check_method, with_versions
from protocols.users_files.sources import hashed_name
from results.spec.training_spec import Component, MethodSpec

LOSS = """\
import torch
from torch import nn
{top}

class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        {construction}

    def forward(self, embeddings, labels, indices_tuple=None):
        {step}
        return embeddings.square().mean()
"""

BY_PATH = (
    "import importlib.util, pathlib\n"
    "spec = importlib.util.spec_from_file_location('free', pathlib.Path(__file__).parent / 'helper.py')\n"
    "free = importlib.util.module_from_spec(spec)\n"
    "spec.loader.exec_module(free)\n"
)
WAYS = {
    "beside": ({"top": "from helper import x"}, "sub/helper.py"),
    "current folder": ({"top": "from helper import x"}, "helper.py"),
    "importlib": ({"top": "import importlib\nimportlib.import_module('helper')"}, "sub/helper.py"),
    "by its path": ({"top": BY_PATH}, "sub/helper.py"),
    "runpy": ({"top": "import runpy, os\nrunpy.run_path(os.path.dirname(__file__) + '/helper.py')"}, "sub/helper.py"),
    "sys.path": (
        {"top": "import os, sys\nsys.path.insert(0, os.path.dirname(__file__) + '/../lib')\nimport helper"},
        "lib/helper.py",
    ),
    "PYTHONPATH": ({"top": "import helper"}, "path/helper.py"),
    "package": ({"top": "from package.inner import x"}, "sub/package/inner.py"),
    "in the construction": ({"construction": "import helper"}, "sub/helper.py"),
    "in the first step": ({"step": "import helper"}, "sub/helper.py"),
    "a text that is executed": (
        {"top": "import os\np = os.path.dirname(__file__) + '/helper.py'\nexec(compile(open(p).read(), p, 'exec'))"},
        "sub/helper.py",
    ),
}


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def loss(file: Path, **parts: str) -> MethodSpec:
    empty = {"top": "", "construction": "pass", "step": "pass"}
    write(file, LOSS.format(**{**empty, **parts}))
    return MethodSpec(name="mine", loss=Component(name=f"{file}:Mine"))


def hashed(method: MethodSpec) -> str:
    versioned = with_versions(method).loss
    assert versioned is not None
    return versioned.name


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    return tmp_path


@pytest.mark.parametrize("way", WAYS)
def test_a_helper_counts_however_it_is_found(project: Path, way: str) -> None:
    parts, helper = WAYS[way]
    method = loss(project / "sub" / "mine.py", **parts)
    write(project / helper, "x = 1.0\n")
    before = hashed(method)
    stamp = (project / helper).stat()
    # Of the same size and time of change, as a copied file can be: Python's compiled copy would be taken.
    write(project / helper, "x = 2.0\n")
    os.utime(project / helper, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert hashed(method) != before
    write(project / helper, "x = 1.0\n")
    assert hashed(method) == before


def test_a_compiled_helper_counts(project: Path) -> None:
    method = loss(project / "mine.py", top="import helper")
    digests = []
    for value in ("1", "2"):
        write(project / "source.py", f"x = {value}\n")
        py_compile.compile(str(project / "source.py"), cfile=str(project / "helper.pyc"), doraise=True)
        digests.append(hashed(method))
    assert digests[0] != digests[1]


def test_a_helper_of_a_hook_counts(project: Path) -> None:
    file = project / "mine.py"
    method = loss(file, top="from losses import TrainingPlugin")
    text = file.read_text().replace("class Mine(nn.Module)", "class Mine(TrainingPlugin, nn.Module)")
    write(file, text + "\n    def on_evaluation(self, clock, metrics):\n        import helper\n")
    digests = []
    for value in ("1", "2"):
        write(project / "helper.py", f"x = {value}\n")
        digests.append(hashed(method))
    assert digests[0] != digests[1]


def test_a_file_alone_has_the_hash_of_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "alone.py"
    file.write_text("import torch, json, pandas\nfrom losses import TrainingPlugin\nx = 1\n")
    (tmp_path / "other.py").write_text("x = 1\n")
    expected = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    assert hashed_name(f"{file}:x") == f"alone.py:x (sha256 {expected})"


@pytest.mark.parametrize("place", ["beside", "on the path"])
def test_the_hash_does_not_depend_on_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    names: list[str] = []
    for folder in ("one", "two"):
        helpers = tmp_path / folder / ("" if place == "beside" else "lib")
        write(helpers / "helper.py", "x = 1\n")
        write(tmp_path / folder / "main.py", "from helper import x\n")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(helpers))
            names.append(hashed_name(f"{tmp_path / folder}/main.py:x"))
    assert names[0] == names[1]


def test_code_that_ends_its_process_is_refused_in_one_line(tmp_path: Path) -> None:
    method = loss(tmp_path / "mine.py", construction="import os; os._exit(7)")
    with pytest.raises(MethodError, match=r"mine\.py:Mine: the code ended its process \(exit code 7\)$"):
        check_method(method)


def test_foreign_code_is_not_imported_into_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    change = "torch.set_default_dtype(torch.float64)"
    hashed(loss(tmp_path / "mine.py", top=change, construction=change, step=change))
    hashed_name(f"{tmp_path}/mine.py:Mine")
    assert torch.get_default_dtype() == torch.float32


def test_nothing_is_asked_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from protocols.users_files import sources

    method = loss(tmp_path / "mine.py")
    first = hashed(method)

    def ask_again(*_: object) -> Callable[[], None]:
        raise AssertionError("a second process")

    monkeypatch.setattr(sources, "apart", ask_again)
    assert hashed(method) == first
