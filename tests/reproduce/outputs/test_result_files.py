"""Files of experiments of one name stay apart, and the name leads to the latest, with links or without."""

from pathlib import Path

import pytest

from reproduce.outputs.page import write_page
from reproduce.outputs.result_files import latest_name, lead_to, own_name
from reproduce.storage import open_store, storage_paths
from tests.support.sample_records import some_run, some_summary

FIRST, SECOND = "1" * 32, "2" * 32


@pytest.fixture(params=["links", "no links"])
def links(request, monkeypatch):
    """Whether the file system has links."""

    def refused(*_, **__):
        raise OSError("a required privilege is not held by the client")

    if request.param == "no links":
        monkeypatch.setattr(Path, "symlink_to", refused)
    return request.param == "links"


def put(store, fingerprint, *methods):
    store.put_experiment(fingerprint, "tiny", some_summary(methods={key: key.title() for key in methods}, trials=0))
    for number, method in enumerate(methods):
        run = some_run(method, fingerprint=f"{method}-{number}")
        store.put_run(run)
        store.enlist(fingerprint, method, run)


def test_pages_of_one_name_stay_and_the_name_leads_to_the_latest(tmp_path, links):
    store = open_store(storage_paths(str(tmp_path / "store.sqlite"), None, None, None))
    put(store, FIRST, "triplet", "contrastive")
    first = write_page("tiny", FIRST, store, tmp_path)
    both = first.read_text()
    put(store, SECOND, "triplet")
    second = write_page("tiny", SECOND, store, tmp_path)
    assert (first.parent.name, second.parent.name) == ("tiny-111111111111", "tiny-222222222222")
    assert first.read_text() == both
    latest = tmp_path / "tiny"
    write_page("tiny", FIRST, store, tmp_path)  # The page of an earlier experiment moves no link.
    if links:
        assert latest.resolve() == second.parent
    else:
        assert 'href="../tiny-222222222222/index.html"' in (latest / "index.html").read_text()


def test_a_file_replaces_what_its_name_led_to(tmp_path, links):
    targets = [tmp_path / f"tiny-{number}.csv" for number in range(2)]
    for target in targets:
        target.write_text(target.name)
        lead_to(tmp_path / "tiny.csv", target)
        assert (tmp_path / "tiny.csv").read_text() == target.name
    assert [target.read_text() for target in targets] == [target.name for target in targets]
    assert (tmp_path / "tiny.csv").is_symlink() == links
    assert len(list(tmp_path.iterdir())) == 3


def test_links_that_cease_to_be_possible_do_not_write_into_their_target(tmp_path, monkeypatch):
    for number in range(2):
        (tmp_path / f"tiny-{number}").mkdir()
        (tmp_path / f"tiny-{number}" / "index.html").write_text(f"page {number}")
    lead_to(tmp_path / "tiny", tmp_path / "tiny-0")
    monkeypatch.setattr(Path, "symlink_to", lambda *_, **__: (_ for _ in ()).throw(OSError("no links")))
    lead_to(tmp_path / "tiny", tmp_path / "tiny-1")
    assert (tmp_path / "tiny-0" / "index.html").read_text() == "page 0"
    assert "../tiny-1/index.html" in (tmp_path / "tiny" / "index.html").read_text()


def test_a_folder_that_is_no_link_gets_a_page_that_leads_on(tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "index.html").write_text("copied without links")
    (tmp_path / "tiny-0").mkdir()
    lead_to(tmp_path / "tiny", tmp_path / "tiny-0")
    assert "../tiny-0/index.html" in (tmp_path / "tiny" / "index.html").read_text()


@pytest.mark.parametrize("name", ["x" * 300, "й" * 200, "脸" * 128, "plain", "file/panel"])
def test_names_fit_into_file_names_with_identity_and_suffix(tmp_path, name):
    own = own_name(name, FIRST)
    assert own.endswith("-111111111111")
    target = tmp_path / f"{own}.tex"
    target.write_text("table")
    lead_to(tmp_path / f"{latest_name(name)}.tex", target)
    assert (tmp_path / f"{latest_name(name)}.tex").read_text() == "table"
