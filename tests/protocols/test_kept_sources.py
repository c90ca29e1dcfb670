"""Copies of users' files serve after the files are gone."""

from pathlib import Path

from protocols.kept_sources import keep_sources, remember_kept_sources
from protocols.source_files import load_source, settled_name
from results.source_names import SourceName


def test_a_copy_with_its_neighbours_is_found_by_hash(tmp_path: Path) -> None:
    source, artifacts = tmp_path / "source", tmp_path / "artifacts"
    source.mkdir()
    (source / "kept_main.py").write_text("from kept_helper import x\n")
    (source / "kept_helper.py").write_text("x = 5\n")
    settled = settled_name(f"{source}/kept_main.py:x")
    keep_sources(artifacts)
    for file in source.iterdir():
        file.unlink()
    remember_kept_sources(artifacts, [settled, "ContrastiveLoss", f"other.py:A (sha256 {'f' * 16})"])
    name = SourceName.parse(settled)
    assert name is not None
    assert load_source(name) == 5
