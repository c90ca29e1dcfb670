"""Paths in an experiment file are relative to the file."""

from pathlib import Path

from reproduce.config.relative_paths import with_paths


def test_the_folder_and_the_split_of_the_data_are_beside_the_file(tmp_path: Path) -> None:
    dataset = {"name": "folder", "root": "images", "split": "../halves.csv", "subset": True}
    changed = with_paths({"dataset": dataset}, tmp_path)["dataset"]
    assert changed == {
        **dataset,
        "root": str(tmp_path / "images"),
        "split": str(tmp_path / "../halves.csv"),
    }
    assert with_paths({"dataset": {"name": "glyphs"}}, tmp_path) == {"dataset": {"name": "glyphs"}}
