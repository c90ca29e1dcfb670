"""The hash of a user's file covers what it imports from beside it, and files of no use are refused in one line."""

import hashlib
import os

import pytest
import torch

from protocols.training.build_method import MethodError
from protocols.training.check_method import check_method, with_versions
from protocols.users_code import sources
from protocols.users_code.kept import is_whole, keep_sources, remember_kept_sources
from protocols.users_code.sources import SourceError, hashed_name, known_sources, load_source
from results.spec.component import Component, SourceName
from results.spec.method import Method

forked = pytest.mark.usefixtures("forked_processes")

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
WAYS = {
    "beside": ({"top": "from helper import x"}, "sub/helper.py"),
    "importlib": ({"top": "import importlib\nimportlib.import_module('helper')"}, "sub/helper.py"),
    "package beside": ({"top": "from package.inner import x"}, "sub/package/inner.py"),
    "in the construction": ({"construction": "import helper"}, "sub/helper.py"),
    "in the first step": ({"step": "import helper"}, "sub/helper.py"),
    "a symbolic link": ({"top": "import helper"}, "sub/helper.py"),
    "a package": ({"top": "from . import helper"}, "sub/helper.py"),
    "a package around": ({"top": "from ..other.helper import x"}, "outer/other/helper.py"),
}
"""What imports the helper, and where it is."""


def named(text):
    parsed = SourceName.parse(text)
    assert parsed is not None
    return parsed


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def loss(file, **parts):
    empty = {"top": "", "construction": "pass", "step": "pass"}
    write(file, LOSS.format(**{**empty, **parts}))
    return Method(name="mine", loss=Component(name=f"{file}:Mine"))


def hashed(method):
    versioned = with_versions(method).loss
    return versioned.name


@forked
@pytest.mark.parametrize("way", WAYS)
def test_a_module_beside_the_file_or_in_its_package_counts(tmp_path, way):
    parts, place = WAYS[way]
    helper = tmp_path / place
    packages = {"a package": ["sub"], "a package around": ["outer/sub", "outer/other", "outer"]}.get(way, [])
    method = loss(tmp_path / (packages or ["sub"])[0] / "mine.py", **parts)
    for package in packages:
        write(tmp_path / package / "__init__.py", "")
    if "link" in way:
        helper.symlink_to(tmp_path / "real.py")
    write(helper, "x = 1.0\n")
    before = hashed(method)
    stamp = helper.stat()
    # Of the same size and time of change, as a copied file can be: Python's compiled copy would be taken.
    write(helper, "x = 2.0\n")
    os.utime(helper, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert hashed(method) != before
    write(helper, "x = 1.0\n")
    assert hashed(method) == before


@forked
def test_a_file_alone_has_the_hash_of_its_bytes_in_any_folder(tmp_path):
    text = "import torch, json, pandas\nfrom losses import TrainingPlugin\nx = 1\n"
    expected = f"alone.py:x (sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]})"
    write(tmp_path / "one" / "other.py", "x = 1\n")
    for folder in ("one", "two"):
        write(tmp_path / folder / "alone.py", text)
        assert hashed_name(f"{tmp_path / folder}/alone.py:x") == expected
    assert known_sources()[expected[-17:-1]].file == tmp_path / "two" / "alone.py"
    assert load_source(named(expected)) == 1
    assert hashed_name(expected) == expected
    assert hashed_name("ContrastiveLoss") == "ContrastiveLoss"


@forked
def test_a_changed_file_is_refused(tmp_path):
    write(tmp_path / "helper_of_changed.py", "x = 1\n")
    write(tmp_path / "changed.py", "from helper_of_changed import x\n")
    name = named(hashed_name(f"{tmp_path}/cards/../changed.py:x"))
    assert load_source(name) == 1
    write(tmp_path / "helper_of_changed.py", "x = 2\n")
    with pytest.raises(SourceError, match=rf"changed\.py, or a module .* began with sha256 {name.digest}; undo"):
        load_source(name)
    with pytest.raises(SourceError, match="this file is not known here"):
        load_source(SourceName("changed.py", "x", "f" * 16))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class A(:\n", r"^bad\.py, line 1: invalid syntax$"),
        ("\nimport no_such_module\n", r"^bad\.py, line 2: ModuleNotFoundError: No module named 'no_such_module'$"),
        ("import os\nclass B: pass\ndef c(): pass\n", r"^bad\.py has no 'A'; it defines B, c$"),
        ("import sys\nsys.exit(3)\n", r"^bad\.py, line 2: SystemExit: 3$"),
        ("raise ValueError('\\x1b[31m')\n", r"^bad\.py, line 1: ValueError: \?\[31m$"),
        (
            "class E(Exception):\n  def __str__(self): return self.x\nraise E\n",
            "line 3: E: its message cannot be made$",
        ),
        ("raise ValueError('long' * 10**4)\n", r"^bad\.py, line 1: ValueError: (long){500}$"),
    ],
)
def test_bad_files_are_one_line(tmp_path, text, message):
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(SourceError, match=message):
        load_source(named(f"{tmp_path}/bad.py:A"))


def test_a_missing_file_or_module_is_one_line(tmp_path):
    with pytest.raises(SourceError, match=r"none\.py: no such file; a path in a card or an experiment"):
        hashed_name(f"{tmp_path}/none.py:A")
    with pytest.raises(SourceError, match=r"there is no Python module 'no_package.module'; install its package, or"):
        hashed_name("no_package.module:A")


@forked
def test_modules_are_imported_by_name_with_a_hash_of_their_package(tmp_path, monkeypatch):
    write(tmp_path / "users_package" / "__init__.py", "")
    write(tmp_path / "users_package" / "module.py", "from .inner import A\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = []
    for text in ("class A: pass\n", "class A: b = 1\n"):
        write(tmp_path / "users_package" / "inner.py", text)
        names.append(hashed_name("users_package.module:A"))
    assert names[0].startswith("users_package.module:A (sha256 ")
    assert names[0] != names[1]
    assert load_source(named(names[1])).b == 1


def test_a_neighbour_that_another_file_hides_is_refused(tmp_path):
    for folder in ("one", "two"):
        write(tmp_path / folder / "users_helper.py", f"x = '{folder}'\n")
        write(tmp_path / folder / "mine.py", f"from users_helper import x\nfolder = '{folder}'\n")
    assert load_source(named(f"{tmp_path}/one/mine.py:x")) == "one"
    with pytest.raises(SourceError, match=r"two/users_helper\.py is hidden by .*one/users_helper\.py"):
        load_source(named(f"{tmp_path}/two/mine.py:x"))


@forked
def test_code_that_ends_its_process_is_refused_in_one_line(tmp_path):
    method = loss(tmp_path / "mine.py", construction="import os; os._exit(7)")
    with pytest.raises(MethodError, match=r"mine\.py:Mine: the code ended its process \(exit code 7\)$"):
        check_method(method)


@forked
def test_foreign_code_is_not_imported_into_this_process_and_asked_once(tmp_path, monkeypatch):
    change = "torch.set_default_dtype(torch.float64)"
    method = loss(tmp_path / "mine.py", top=change)
    first = hashed(method)
    assert torch.get_default_dtype() == torch.float32
    monkeypatch.setattr(sources, "run_in_subprocess", None)  # A second process would fail.
    assert hashed(method) == first


@forked
def test_a_copy_serves_after_the_files_are_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_known", {})
    source, artifacts = tmp_path / "source", tmp_path / "artifacts"
    write(source / "kept_main.py", "from kept_helper import x\n")
    write(source / "kept_helper.py", "x = 5\n")
    settled = hashed_name(f"{source}/kept_main.py:x")
    keep_sources(artifacts)
    write(source / "kept_helper.py", "x = 6\n")
    keep_sources(artifacts)  # The copy stays as it is.
    for file in source.iterdir():
        file.unlink()
    remember_kept_sources(artifacts, [settled, "ContrastiveLoss", f"other.py:A (sha256 {'f' * 16})"])
    assert load_source(named(settled)) == 5
    (copy,) = (artifacts / "sources").iterdir()
    write(copy / "kept_helper.py", "x = 7\n")
    assert not is_whole(copy)
