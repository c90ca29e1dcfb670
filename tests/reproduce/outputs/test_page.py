"""The end of a run names the places of its page and figures."""

import pytest

from reproduce.outputs.page import page_or_reason
from reproduce.storage import open_store, storage_paths
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import some_run, some_summary

FINGERPRINT = "e" * 32


@pytest.fixture
def where(tmp_path):
    """A store with an experiment of one method with two runs."""
    where = storage_paths(str(tmp_path / "store.sqlite"))
    store = open_store(where)
    store.put_experiment(FINGERPRINT, "tiny", some_summary(methods={"triplet": "Triplet"}, trials=0))
    for number in range(2):
        store.put_run(run := some_run("triplet", number, 0.5 + number / 100))
        store.enlist(FINGERPRINT, "triplet", run)
    return where


def said_of(where):
    store = open_store(where)
    found = answer_of(MeasuredExperiment.from_store(store, FINGERPRINT, trainings=True))
    return page_or_reason("tiny", FINGERPRINT, store, where.reports, found)


def test_the_end_of_a_run_names_page_and_figures(where):
    page = where.reports / f"tiny-{FINGERPRINT[:12]}" / "index.html"
    assert said_of(where) == [f"figures (PDF, SVG, PNG): {page.parent / 'figures'}", f"page: {page}"]
    assert "Triplet" in page.read_text()


def test_an_error_in_the_page_does_not_end_the_run(where, monkeypatch):
    def fail(_):
        raise ValueError("no font\nmore lines")

    monkeypatch.setattr("reports.page.page.build_page", fail)
    (said,) = said_of(where)
    assert said.startswith("no page was written (no font); ")
    assert said.endswith("try `reproduce report tiny`")
