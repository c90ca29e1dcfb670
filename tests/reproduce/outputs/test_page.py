"""The end of a run names the places of its page and figures."""

import pytest

from reproduce.outputs.page import page_or_reason
from reproduce.storage import open_store, storage_paths
from results.findings.experiment import answer_of
from results.records.records import TestCurve
from results.records.trials import Trial
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_records import some_plan, some_run

FINGERPRINT = "e" * 32


@pytest.fixture
def where(tmp_path):
    """A store with an experiment of one method with two runs."""
    where = storage_paths(str(tmp_path / "store.sqlite"))
    store = open_store(where)
    store.put_experiment(FINGERPRINT, "tiny", some_plan(methods={"triplet": "Triplet"}, trials=0))
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


def test_a_page_is_drawn_again_when_something_has_changed(where, monkeypatch):
    said_of(where)
    drawn = []
    monkeypatch.setattr("reproduce.outputs.page.write_page", lambda *_: drawn.append("again"))
    store, figures = open_store(where), where.reports / f"tiny-{FINGERPRINT[:12]}" / "figures"
    assert (said_of(where), drawn) == (said_of(where), [])
    (figures / "intervals.png").unlink()
    said_of(where)
    store.put_experiment(FINGERPRINT, "tiny", some_plan(methods={"triplet": "Triplet Margin"}, trials=0))
    said_of(where)
    assert drawn == ["again"] * 2


@pytest.mark.parametrize("change", ["run", "plan", "trial", "test curve"])
def test_the_state_of_an_experiment_changes_with_everything_that_its_page_shows(where, change):
    store = open_store(where)
    before = store.state_of(FINGERPRINT)
    store.put_run(run := some_run("triplet", 7, 0.9))
    store.put_experiment("f" * 32, "other", some_plan(methods={"triplet": "Triplet"}))
    store.enlist("f" * 32, "triplet", run)
    assert store.state_of(FINGERPRINT) == before, "what others have does not count"
    if change == "run":
        store.enlist(FINGERPRINT, "triplet", run)
    elif change == "plan":
        store.put_experiment(FINGERPRINT, "tiny", some_plan(methods={"triplet": "Triplet"}, trials=1))
    elif change == "trial":
        store.searches.enlist(FINGERPRINT, {"triplet": [("s", {})]})
        store.searches.put_trial("s", Trial(number=0, setting={}))
    else:
        store.put_test_curve(TestCurve(fingerprint="t", points=()))
    assert store.state_of(FINGERPRINT) != before


def test_an_error_in_the_page_does_not_end_the_run(where, monkeypatch):
    def fail(_):
        raise ValueError("no font\nmore lines")

    monkeypatch.setattr("reports.page.page.build_page", fail)
    (said,) = said_of(where)
    assert said.startswith("no page was written (no font); ")
    assert said.endswith("try `reproduce report tiny`")
