"""Files of experiments of one name stay apart, and the name leads to the latest."""

from pathlib import Path

import pytest

from reproduce.outputs.page import write_page
from reproduce.storage import latest_name, link_latest, open_store, own_name, storage_paths
from results.store.store import Store
from tests.support.sample_records import put_experiment, some_plan, some_run

FIRST, SECOND = "1" * 32, "2" * 32


def put(store, fingerprint, *methods):
    plan = some_plan(methods={key: key.title() for key in methods}, trials=0)
    runs = [some_run(method, fingerprint=f"{method}-{number}") for number, method in enumerate(methods)]
    put_experiment(store, fingerprint, "tiny", plan, runs)


def test_pages_of_one_name_stay_and_the_name_leads_to_the_latest(tmp_path):
    store = open_store(storage_paths(str(tmp_path / "store.sqlite")))
    put(store, FIRST, "triplet", "contrastive")
    first = write_page("tiny", FIRST, store, tmp_path)
    both = first.read_text()
    put(store, SECOND, "triplet")
    second = write_page("tiny", SECOND, store, tmp_path)
    assert (first.parent.name, second.parent.name) == ("tiny-111111111111", "tiny-222222222222")
    assert first.read_text() == both
    write_page("tiny", FIRST, store, tmp_path)  # The page of an earlier experiment moves no link.
    assert (tmp_path / "tiny").resolve() == second.parent


@pytest.mark.parametrize("name", ["x" * 300, "й" * 200, "脸" * 128, "plain", "file/panel"])
def test_names_fit_into_file_names_with_identity_and_suffix(tmp_path, name):
    store = Store(tmp_path / "store.sqlite", tmp_path)
    for fingerprint in (FIRST, SECOND):
        store.put_experiment(fingerprint, name, some_plan())
        target = tmp_path / f"{own_name(name, fingerprint)}.tex"
        assert target.stem.endswith(f"-{fingerprint[:12]}")
        target.write_text(fingerprint)
        link_latest(name, fingerprint, store, [target])
        assert (tmp_path / f"{latest_name(name)}.tex").read_text() == fingerprint


def test_what_is_no_link_is_left_as_it_is(tmp_path, monkeypatch):
    store = Store(tmp_path / "store.sqlite", tmp_path)
    store.put_experiment(FIRST, "tiny", some_plan())
    page = tmp_path / own_name("tiny", FIRST)
    page.mkdir()
    (tmp_path / "tiny").mkdir()
    link_latest("tiny", FIRST, store, [page])
    assert not (tmp_path / "tiny").is_symlink()
    (tmp_path / "tiny").rmdir()
    monkeypatch.setattr(Path, "symlink_to", lambda *_, **__: (_ for _ in ()).throw(OSError("no links")))
    link_latest("tiny", FIRST, store, [page])
    assert not (tmp_path / "tiny").exists()
