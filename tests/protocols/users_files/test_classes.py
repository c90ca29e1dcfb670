"""Users' files are found by the hash of their source, and refused in one line where they cannot be used."""

import hashlib
import sys
from pathlib import Path

import pytest

from protocols.users_files.loaded_files import LoadedSource
from protocols.users_files.sources import SourceError, hashed_name, known_sources, load_source, remember_sources
from results.spec.source_names import SourceName


def named(text: str) -> SourceName:
    parsed = SourceName.parse(text)
    assert parsed is not None
    return parsed


def test_a_hashed_name_has_the_hash_and_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def f(): return 3\n")
    settled = hashed_name(f"{file}:f")
    name = named(settled)
    assert name.source == "mine.py"
    assert name.digest is not None
    assert known_sources()[name.digest].file == file
    assert load_source(name)() == 3
    assert hashed_name(settled) == settled
    assert hashed_name("ContrastiveLoss") == "ContrastiveLoss"


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    name = named(hashed_name(f"{file}:x"))
    assert load_source(name) == 1
    file.write_text("x = 2\n")
    with pytest.raises(SourceError, match=f"{file} has changed: this run began with sha256 {name.digest}, .*undo"):
        load_source(name)
    assert load_source(named(hashed_name(f"{file}:x"))) == 2


def test_another_process_finds_the_file_by_its_hash(tmp_path: Path) -> None:
    file = tmp_path / "moved.py"
    file.write_text("x = 'moved'\n")
    digest = named(hashed_name(f"{file}:x")).digest
    assert digest is not None
    other = file.rename(tmp_path / "elsewhere.py")
    with pytest.raises(SourceError, match=r"moved\.py: no such file"):
        load_source(SourceName("moved.py", "x", digest))
    content = hashlib.sha256(other.read_bytes()).hexdigest()
    remember_sources({digest: LoadedSource(other, {"moved.py": (other, content)})})
    assert load_source(SourceName("moved.py", "x", digest)) == "moved"
    with pytest.raises(SourceError, match="this file is not known here"):
        load_source(SourceName("moved.py", "x", "f" * 16))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class A(:\n", r"^bad\.py, line 1: invalid syntax$"),
        ("\nimport no_such_module\n", r"^bad\.py, line 2: ModuleNotFoundError: No module named 'no_such_module'$"),
        ("import os\nclass B: pass\ndef c(): pass\n", r"^bad\.py has no 'A'; it defines B, c$"),
        ("import sys\nsys.exit(3)\n", r"^bad\.py, line 2: SystemExit: 3$"),
        ("x = 1\n", r"^bad\.py has no 'A'; it defines no class and no function$"),
    ],
)
def test_bad_files_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(SourceError, match=message):
        load_source(named(f"{tmp_path}/bad.py:A"))


def test_a_missing_file_or_module_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"none\.py: no such file; a path in a card or an experiment"):
        hashed_name(f"{tmp_path}/none.py:A")
    with pytest.raises(SourceError, match=r"there is no Python module 'no_package.module'; install its package, or"):
        hashed_name("no_package.module:A")


def test_modules_are_imported_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "users_module.py").write_text("class A: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    settled = hashed_name("users_module:A")
    assert settled.startswith("users_module:A (sha256 ")
    assert load_source(named(settled)).__name__ == "A"
    monkeypatch.delitem(sys.modules, "users_module")


def test_a_neighbour_can_be_imported_and_must_be_the_hashed_one(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "users_helper.py").write_text(f"x = '{folder}'\n")
        (tmp_path / folder / "mine.py").write_text(f"from users_helper import x\nfolder = '{folder}'\n")
    try:
        assert load_source(named(f"{tmp_path}/one/mine.py:x")) == "one"
        with pytest.raises(SourceError, match=r"two/users_helper\.py is hidden by .*one/users_helper\.py"):
            load_source(named(f"{tmp_path}/two/mine.py:x"))
    finally:
        sys.modules.pop("users_helper", None)
