"""`reproduce report` on a real run: without torch, from the store and the artifacts; commands that run it again."""

import csv
import html
import re
import shutil
import sqlite3

import pytest

from reproduce.outputs.page import histories
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from tests.support.command_line import refused, refusing, reproduce_all
from tests.support.figure_material import put_in_store, sweep


@pytest.fixture
def here(glyph_run, tmp_path):
    """A copy of the folder, which a test may damage."""
    return shutil.copytree(glyph_run.folder, tmp_path / "copy", symlinks=True)


@pytest.fixture
def say(say, here, monkeypatch):
    monkeypatch.chdir(here)
    return say


def page_identity(page):
    return re.search(r"from experiment ([0-9a-f]{12})[0-9a-f]{20} of the store", page)[1]


def whole_page(folder):
    return (folder / "runs" / "reports" / "tiny" / "index.html").read_text()


def test_the_last_line_of_a_run_names_its_page(glyph_run):
    folder, answer = glyph_run.folder, glyph_run.ran
    page = whole_page(folder)
    own = f"runs/reports/tiny-{page_identity(page)}/index.html"
    assert answer.out.splitlines()[-1] == f"page: {own}"
    assert (folder / own).read_text() == page
    assert "<script>alert" not in page
    assert "A tiny &lt;script&gt;" in page
    figures = {path.name for path in (folder / "runs" / "reports" / "tiny" / "figures").iterdir()}
    names = {"validation_curves", "search_contrastive_history"}
    assert {f"{name}.{kind}" for name in names for kind in ("svg", "png")} <= figures
    for heading in ("Gain from peeking", "Hyperparameters found"):
        assert heading in page
    said = re.search(r'class="headline">(.*?)</h2>', page)[1]
    assert html.unescape(said) in answer.out.splitlines()


def test_the_page_has_every_training_and_the_searches_that_led_to_the_runs(glyph_run):
    folder = glyph_run.folder
    store = Store(folder / "runs" / "store.sqlite", folder / "runs" / "artifacts")
    (fingerprint,) = [start.fingerprint for start in store.starts()]
    known, page = MeasuredExperiment.from_store(store, fingerprint, trainings=True), whole_page(folder)
    assert len(known.trainings) == 8
    for name, result in known.trainings.items():
        place = page.index(f"<code>{name}</code>")
        line = page[place : page.index("</li>", place)]
        assert f"seed {result.spec.seed}" in line
        assert f"iteration {result.best_iteration} of {result.iterations} kept" in line
    studies = store.searches.of_experiment(fingerprint)
    found = histories(studies, known.plan)
    assert set(found) == {"contrastive", "proxy_anchor"}
    for key, trials in found.items():
        assert len(trials) == 2
        setting = next(record.hyperparameters for record in known.records if record.method == key)
        best = max(trials, key=lambda trial: trial.score)
        assert best.setting == {name: setting[name] for name in best.setting}


def test_a_damaged_store_makes_a_page_that_says_so(here, say):
    with sqlite3.connect(here / "runs" / "store.sqlite") as connection:
        connection.execute("DELETE FROM experiment_runs WHERE method = 'proxy_anchor'")
    connection.close()
    assert say("report", "tiny.yaml").code == 0
    page = whole_page(here)
    assert "Not finished: Proxy-Anchor has 0 of 2 runs." in page
    assert "Nothing is claimed before all searches and runs are there." in page
    names = {path.stem for path in (here / "runs" / "reports" / "tiny" / "figures").iterdir()}
    assert "validation_curves" in names


def test_impossible_reports_give_one_line(here, say):
    refused(say("report", "tine"), "no experiment 'tine' in runs/store.sqlite; did you mean tiny? `reproduce status`")
    assert "there is no store yet" in refused(say("report", "--store", "nowhere.sqlite"))
    (here / "file").write_text("")
    assert "choose another folder with --to" in refused(say("report", "--to", "file"))
    Store(here / "empty.sqlite", here)
    assert "holds no experiment yet" in refused(say("report", "--store", "empty.sqlite"))
    with sqlite3.connect(here / "empty.sqlite") as connection:
        connection.execute("UPDATE suite_schema SET version = 99")
    connection.close()
    assert "made by schema version 99" in refused(say("report", "--store", "empty.sqlite"))


def test_panels_have_figures_of_their_own_and_one_over_their_setting(tmp_path):
    (tmp_path / "runs").mkdir()
    store = Store(tmp_path / "runs" / "store.sqlite", tmp_path / "runs" / "artifacts")
    for size in (16, 64):
        settings = {"training": {"batch_size": size, "max_epochs": 1}}
        panel = sweep([({"loss.r": r}, (0.5, 0.6)) for r in (0.05, 0.07)], name=f"mine/of_{size}", settings=settings)
        put_in_store(store, panel)
    (answer,) = reproduce_all(tmp_path, ["report", "mine"], before=refusing("torch"))
    assert (answer.code, answer.err) == (0, "")
    reports = tmp_path / "runs" / "reports"
    names = {path.name for path in (reports / "mine_of_16" / "figures").iterdir()}
    assert {"intervals.png", "sweep_loss.r.svg", "sweep_loss.r.csv"} <= names
    over_panels = {path.name for path in (reports / "mine" / "figures").iterdir()}
    assert over_panels == {f"sweep_training.batch_size.{suffix}" for suffix in ("png", "svg", "pdf", "csv")}
    with (reports / "mine" / "figures" / "sweep_training.batch_size.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert [(float(row["x"]), row["values"].count(" ")) for row in rows][:2] == [(16, 1), (64, 1)], (
        "of one line, in rising order"
    )
    assert "runs/reports/mine/figures/sweep_training.batch_size.png: " in answer.out
