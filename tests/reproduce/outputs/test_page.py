"""A run that is called again writes its page again only if its measurements have changed."""

import pytest

from reproduce.outputs.page import page_or_reason, write_page
from reproduce.storage import open_store, storage_paths
from tests.support.sample_records import some_run, some_summary

FINGERPRINT = "e" * 32


@pytest.fixture
def where(tmp_path):
    """A store with an experiment of one method with two runs, whose page was written."""
    where = storage_paths(str(tmp_path / "store.sqlite"))
    open_store(where).put_experiment(FINGERPRINT, "tiny", some_summary(methods={"triplet": "Triplet"}, trials=0))
    for number in range(2):
        add_run(where, number)
    assert called_again(where) == [
        f"figures (PDF, SVG, PNG): {page_of(where).parent / 'figures'}",
        f"page: {page_of(where)}",
    ]
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
    page_of(where).write_text(page_of(where).read_text() + "kept")
    work()
    return not page_of(where).read_text().endswith("kept")


def test_a_run_draws_its_page_if_it_has_changed_or_is_gone(where):
    assert not is_drawn(where, lambda: called_again(where))
    add_run(where, 2)
    assert is_drawn(where, lambda: called_again(where))
    assert is_drawn(where, lambda: write_page("tiny", FINGERPRINT, open_store(where), where.reports))
    page_of(where).write_text("something else")
    called_again(where)
    assert "Triplet" in page_of(where).read_text()


def test_an_error_in_the_page_does_not_end_the_run(where):
    with open_store(where).database.writing() as connection:
        connection.execute("UPDATE experiments SET content = '{}'")
    (said,) = called_again(where)
    assert said.startswith("no page was written (store ")
    assert said.endswith("try `reproduce report tiny`")
