"""A run that is called again writes its page again only if the page would change.

Its fingerprint changes with what the page shows and with what draws it, and with nothing else.
"""

from dataclasses import replace
from importlib import metadata

import numpy as np
import pytest

from reproduce.outputs import page as module
from reproduce.outputs.page import page_fingerprint, page_or_reason, write_page
from reproduce.storage import open_store, storage_paths
from tests.support.page_material import figure_data, material, replace_run, values
from tests.support.sample_records import some_run, some_summary

FINGERPRINT = "e" * 32


@pytest.fixture
def where(tmp_path):
    """A store with an experiment of one method with two runs, whose page was written."""
    where = storage_paths(str(tmp_path / "store.sqlite"), None, None, None)
    open_store(where).put_experiment(FINGERPRINT, "tiny", some_summary(methods={"triplet": "Triplet"}, trials=0))
    for number in range(2):
        add_run(where, number)
    assert called_again(where) == f"page: {page_of(where)}"
    return where


def add_run(where, number):
    store, run = open_store(where), some_run("triplet", number, 0.5 + number / 100)
    store.put_run(run)
    store.enlist(FINGERPRINT, "triplet", run)


def page_of(where):
    return where.reports / f"tiny-{FINGERPRINT[:12]}" / "index.html"


def called_again(where):
    """What the end of a run says about its page."""
    return page_or_reason("tiny", FINGERPRINT, open_store(where), where.reports)


def is_drawn(where, work):
    """Whether some work writes the page."""
    page_of(where).write_text("kept")
    work()
    return page_of(where).read_text() != "kept"


def test_a_second_run_keeps_the_page(where):
    assert not is_drawn(where, lambda: called_again(where))


def test_a_new_run_draws_the_page(where):
    add_run(where, 2)
    assert is_drawn(where, lambda: called_again(where))
    assert not is_drawn(where, lambda: called_again(where))


def test_changed_code_or_template_draws_the_page(where, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_suite_folders", lambda: (tmp_path / "templates",))
    (tmp_path / "templates").mkdir()
    assert is_drawn(where, lambda: called_again(where))
    (tmp_path / "templates" / "page.css").write_text("body {}")
    assert is_drawn(where, lambda: called_again(where))
    assert not is_drawn(where, lambda: called_again(where))


def test_a_removed_figure_draws_the_page(where):
    next((where.reports / "tiny" / "figures").glob("*.svg")).unlink()
    assert is_drawn(where, lambda: called_again(where))


def test_report_always_draws_the_page(where):
    assert is_drawn(where, lambda: write_page("tiny", FINGERPRINT, open_store(where), where.reports))


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


def test_an_array_of_figure_data_changes_the_fingerprint(shown, folders):
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
