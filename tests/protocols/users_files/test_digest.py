"""The hash of a source covers the files beside it that it imports, and nothing else."""

import hashlib
from pathlib import Path

from protocols.users_files.digest import read_source, source_digest


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_file_alone_has_the_hash_of_its_bytes(tmp_path: Path) -> None:
    write(tmp_path, alone="import torch\nfrom losses import TrainingPlugin\n", losses="x = 1\n")
    expected = hashlib.sha256((tmp_path / "alone.py").read_bytes()).hexdigest()[:16]
    assert source_digest(tmp_path / "alone.py") == expected


def test_neighbours_count_wherever_they_are_imported(tmp_path: Path) -> None:
    write(
        tmp_path, main="def f():\n    from helper import g\n", helper="import deep\n", deep="x = 1\n", other="x = 1\n"
    )
    assert {path.name for path in read_source(tmp_path / "main.py")} == {"main.py", "helper.py", "deep.py"}
    before = source_digest(tmp_path / "main.py")
    write(tmp_path, other="x = 2\n")
    assert source_digest(tmp_path / "main.py") == before
    write(tmp_path, deep="x = 2\n")
    assert source_digest(tmp_path / "main.py") != before


def test_relative_and_absolute_imports_inside_a_package_count(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    for name, text in {
        "__init__": "",
        "a": "from . import b\n",
        "b": "from package.c import x\n",
        "c": "x = 1\n",
    }.items():
        (tmp_path / "package" / f"{name}.py").write_text(text)
    names = {path.name for path in read_source(tmp_path / "package" / "a.py")}
    assert names == {"a.py", "b.py", "c.py", "__init__.py"}


def test_the_hash_does_not_depend_on_the_folder(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write(tmp_path / folder, main="import helper\n", helper="x = 1\n")
    assert source_digest(tmp_path / "one" / "main.py") == source_digest(tmp_path / "two" / "main.py")


def test_other_packages_beside_a_package_do_not_count(tmp_path: Path) -> None:
    """As in site-packages, where all installed packages are beside each other."""
    for package in ("mine", "other"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("import other\n")
    assert list(read_source(tmp_path / "mine" / "__init__.py")) == [tmp_path / "mine" / "__init__.py"]
