"""Paths in an experiment file are relative to that file."""

from pathlib import Path

import pytest

from reproduce.cli import with_home
from reproduce.config.experiment_file import with_paths


def test_cards_and_metrics_are_joined_to_the_folder() -> None:
    content = {
        "methods": ["contrastive", "cards/mine.yaml", "/code/other.yaml"],
        "metrics": ["nmi", "./my_metrics.py:spread", "package.module:spread"],
        "variants": [{"of": "cards/mine.yaml", "key": "a"}],
        "sweeps": [{"of": "proxy_anchor"}, {"grid": {}}],
        "seed": 3,
    }
    assert with_paths(content, Path("exp")) == {
        "methods": ["contrastive", "exp/cards/mine.yaml", "/code/other.yaml"],
        "metrics": ["nmi", "exp/my_metrics.py:spread", "package.module:spread"],
        "variants": [{"of": "exp/cards/mine.yaml", "key": "a"}],
        "sweeps": [{"of": "proxy_anchor"}, {"grid": {}}],
        "seed": 3,
    }


def test_values_of_a_wrong_type_are_left_to_the_validation() -> None:
    content = {"methods": [3, None], "metrics": "nmi", "variants": ["a"]}
    assert with_paths(content, Path("exp")) == content


def test_the_folder_and_the_split_of_the_data_are_beside_the_file(tmp_path: Path) -> None:
    dataset = {"name": "folder", "root": "images", "split": "../halves.csv", "subset": True}
    changed = with_paths({"dataset": dataset}, tmp_path)["dataset"]
    assert changed == {
        **dataset,
        "root": str(tmp_path / "images"),
        "split": str(tmp_path / "../halves.csv"),
    }
    assert with_paths({"dataset": {"name": "glyphs"}}, tmp_path) == {"dataset": {"name": "glyphs"}}


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/mine")
    content = {
        "dataset": {"root": "~/images"},
        "methods": ["~/cards/mine.yaml"],
        "metrics": ["~/mine.py:spread"],
        "trunk": {"name": "~/net.py:build", "weights": "~/net.pt"},
    }
    assert with_paths(content, Path("exp")) == {
        "dataset": {"root": "/mine/images"},
        "methods": ["/mine/cards/mine.yaml"],
        "metrics": ["/mine/mine.py:spread"],
        "trunk": {"name": "/mine/net.py:build", "weights": "/mine/net.pt"},
    }
    assert with_home(["run", "~/e.yaml", "--store=~/s.sqlite", "cub200=~", "a~/b"]) == [
        *("run", "/mine/e.yaml", "--store=/mine/s.sqlite", "cub200=/mine", "a~/b")
    ]
