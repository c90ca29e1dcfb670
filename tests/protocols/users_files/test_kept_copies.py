"""Copies of users' files serve after the files are gone."""

from pathlib import Path

from protocols.users_files.kept_sources import keep_sources, remember_kept_sources
from protocols.users_files.sources import hashed_name, load_source
from results.spec.source_names import SourceName


def digest_of(settled: str) -> str:
    name = SourceName.parse(settled)
    assert name is not None
    return str(name.digest)


def _loaded(settled: str) -> object:
    name = SourceName.parse(settled)
    assert name is not None
    return load_source(name)


def test_a_copy_with_its_neighbours_is_found_by_hash(tmp_path: Path) -> None:
    source, artifacts = tmp_path / "source", tmp_path / "artifacts"
    source.mkdir()
    (source / "kept_main.py").write_text("from kept_helper import x\n")
    (source / "kept_helper.py").write_text("x = 5\n")
    settled = hashed_name(f"{source}/kept_main.py:x")
    keep_sources(artifacts)
    for file in source.iterdir():
        file.unlink()
    remember_kept_sources(artifacts, [settled, "ContrastiveLoss", f"other.py:A (sha256 {'f' * 16})"])
    assert _loaded(settled) == 5


def test_a_later_change_of_a_file_does_not_change_its_copy(tmp_path: Path) -> None:
    file, artifacts = tmp_path / "kept_edited.py", tmp_path / "artifacts"
    file.write_text("x = 5\n")
    settled = hashed_name(f"{file}:x")
    digest = digest_of(settled)
    keep_sources(artifacts)
    for later in ("x = 6\n", "x = \n", "x = '\0'\n"):
        file.write_text(later)
        keep_sources(artifacts)
        assert (artifacts / "sources" / digest / file.name).read_text() == "x = 5\n"
    file.unlink()
    keep_sources(artifacts)
    remember_kept_sources(artifacts, [settled])
    assert _loaded(settled) == 5


def test_a_file_that_has_changed_is_not_copied_under_its_old_hash(tmp_path: Path) -> None:
    file, artifacts = tmp_path / "kept_changed.py", tmp_path / "artifacts"
    file.write_text("x = 7\n")
    digest = digest_of(hashed_name(f"{file}:x"))
    file.write_text("x = 8\n")
    keep_sources(artifacts)
    assert not (artifacts / "sources" / digest).exists()
