"""The fingerprint of a page changes with what the page shows and with what draws it, and with nothing else."""

from dataclasses import replace
from importlib import metadata

import numpy as np
import pytest

from reproduce.outputs.page_inputs import forget, is_current, page_fingerprint, remember
from tests.support.page_material import figure_data, material, replace_run, values


@pytest.fixture
def folders(tmp_path):
    """Two folders with one template each."""
    made = tmp_path / "code", tmp_path / "templates"
    for folder in made:
        folder.mkdir()
        (folder / "page.html").write_text("<html>")
    return made


@pytest.fixture
def shown():
    return material(values(a=[0.5, 0.6], b=[0.4, 0.5]), figure_data={"a": figure_data()})


def test_equal_materials_have_the_same_fingerprint(shown, folders):
    same = material(values(a=[0.5, 0.6], b=[0.4, 0.5]), figure_data={"a": figure_data()})
    assert page_fingerprint(shown, folders) == page_fingerprint(same, folders)


def test_the_date_of_the_page_does_not_count(shown, folders):
    assert page_fingerprint(shown, folders) == page_fingerprint(replace(shown, made="another day"), folders)


def test_a_record_changes_the_fingerprint(shown, folders):
    first, *others = shown.measured.records
    changed = replace(shown.measured, records=(replace_run(first, wall_time=first.wall_time + 1), *others))
    fewer = replace(shown.measured, records=tuple(others))
    prints = {page_fingerprint(replace(shown, measured=known), folders) for known in (shown.measured, changed, fewer)}
    assert len(prints) == 3


def test_an_array_of_an_exhibit_changes_the_fingerprint(shown, folders):
    other = replace(figure_data(), spectrum=np.linspace(8, 2, 8).astype(np.float32))
    assert page_fingerprint(shown, folders) != page_fingerprint(replace(shown, figure_data={"a": other}), folders)


@pytest.mark.parametrize("change", [{"deviations": ("other seed",)}, {"unreadable": ("x.npz",)}, {"name": "other"}])
def test_every_other_part_changes_the_fingerprint(shown, folders, change):
    assert page_fingerprint(shown, folders) != page_fingerprint(replace(shown, **change), folders)


def test_a_template_changes_the_fingerprint(shown, folders):
    before = page_fingerprint(shown, folders)
    (folders[1] / "page.html").write_text("<html lang=en>")
    assert page_fingerprint(shown, folders) != before


def test_compiled_modules_do_not_change_the_fingerprint(shown, folders):
    before = page_fingerprint(shown, folders)
    (folders[0] / "__pycache__").mkdir()
    (folders[0] / "__pycache__" / "page.pyc").write_bytes(b"compiled")
    assert page_fingerprint(shown, folders) == before


def test_the_version_of_a_package_changes_the_fingerprint(shown, folders, monkeypatch):
    before = page_fingerprint(shown, folders)
    monkeypatch.setattr(metadata, "version", lambda package: "99.0")
    assert page_fingerprint(shown, folders) != before


def test_a_page_is_current_only_with_all_its_files_and_the_same_fingerprint(tmp_path):
    assert not is_current(tmp_path, "f")
    (tmp_path / "index.html").write_text("page")
    remember(tmp_path, "f", ["index.html"])
    assert is_current(tmp_path, "f")
    assert not is_current(tmp_path, "g")
    (tmp_path / "index.html").unlink()
    assert not is_current(tmp_path, "f")


def test_a_forgotten_page_is_not_current(tmp_path):
    remember(tmp_path, "f", [])
    forget(tmp_path)
    assert not is_current(tmp_path, "f")
