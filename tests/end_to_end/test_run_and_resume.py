"""Runs from the command line to the table: interrupted, resumed, with one worker or two."""

import io
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from results.records.frame import runs_table
from results.spec.search_settings import LOOKS
from results.store.store import Store
from tests.support.command_line import TINY, reproduce

TRAININGS = 2 * 2 * (2 + 2)
"""Two methods with two folds each, two trials and two reproductions."""


def run(folder: Path, *more: str):
    return reproduce(folder, "run", "tiny.yaml", *more)


def made(out: str) -> tuple[int, int]:
    """The numbers of trainings made and found, from the end of a run."""
    found = re.search(r"(\d+) trainings made in .*, (\d+) found in the store", out)
    return int(found[1]), int(found[2])


@pytest.fixture
def here(glyph_run, tmp_path):
    """A copy of the finished run, in the current folder."""
    return shutil.copytree(glyph_run.folder, tmp_path, symlinks=True, dirs_exist_ok=True)


def test_a_run_says_what_it_does_and_ends_with_a_table_on_screen_and_in_three_files(glyph_run):
    out = glyph_run.ran.out
    assert glyph_run.ran.err == ""
    assert made(out) == (TRAININGS, 0)
    assert re.search(r"glyphs: \d+ images of \d+ classes", out)
    assert "device cpu" in out
    lines = [line for line in out.splitlines() if line.startswith("[")]
    for said in (f"/{TRAININGS}, time left ", "contrastive: search", "run 1 tested, separated MAP@R"):
        assert any(said in line for line in lines), said
    tables = glyph_run.folder / "runs" / "tables"
    (own,) = tables.glob("tiny-*.csv")
    names = [f"{stem}.{suffix}" for stem in (own.stem, "tiny") for suffix in ("csv", "md", "tex")]
    assert sorted(path.name for path in tables.iterdir()) == names
    assert (tables / "tiny.csv").resolve() == own
    frame = pd.read_csv(tables / "tiny.csv")
    assert len(frame) == 2 * 2 * 3
    assert (frame["n"] == 2).all()
    runs = runs_table(Store(glyph_run.folder / "runs" / "store.sqlite", glyph_run.folder).exported_runs())
    for row in frame.itertuples():
        mean = runs[runs["method"] == row.method][f"{row.variant}_{row.metric}"].mean()
        assert row.mean == pytest.approx(mean, rel=1e-12)


def test_a_second_run_trains_nothing(here, say):
    csv = here / "runs" / "tables" / "tiny.csv"
    before, written = csv.read_bytes(), csv.stat().st_mtime_ns
    answer = say("run", "tiny.yaml", "--workers", "1")
    assert (answer.code, made(answer.out)) == (0, (0, TRAININGS))
    assert csv.read_bytes() == before
    assert csv.stat().st_mtime_ns > written


def test_plan_and_status_count_stored_trainings(here, say):
    before = say("plan", "tiny.yaml", "--workers", "2", "--store", "none.sqlite")
    assert f"{TRAININGS} trainings, 0 in the store, {TRAININGS} to do" in before.out
    after = say("plan", "tiny.yaml", "--workers", "2")
    assert f"{TRAININGS} trainings, {TRAININGS} in the store; nothing is left to do" in after.out
    more = say("plan", "tiny.yaml", "--trials", "4", "--reproductions", "3", "--workers", "1")
    # An unfinished search has no best setting yet, so the stored reproductions may not belong to the plan.
    assert f"{2 * 2 * (4 + 3)} trainings, {2 * 2 * 2} in the store, {2 * 2 * 5} to do" in more.out
    status = say("status").out
    assert re.search(rf"{TRAININGS} trainings, 4 test evaluations, 0 failures", status)


def test_one_worker_gives_the_same_table(glyph_run, here, say):
    shutil.rmtree(here / "runs")
    say("run", "tiny.yaml", "--workers", "1").done()
    name = Path("runs") / "tables" / "tiny.csv"
    assert (here / name).read_bytes() == (glyph_run.folder / name).read_bytes()


@pytest.mark.long
def test_a_repeated_search_adds_to_the_first_one(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    once, more = ("--methods", "contrastive", "--workers", "1"), ("--searches", "2", "--reproductions", "2")
    assert made(run(tmp_path, *once).out) == (6, 0)
    # Two trials and two reproductions of two folds; the first search has all but one reproduction already.
    planned = reproduce(tmp_path, "plan", "tiny.yaml", *once, *more, "--rate", "800")
    assert "16 trainings, 6 in the store" in planned.out
    repeated = run(tmp_path, *once, *more)
    assert made(repeated.out) == (10, 6)
    assert "run 1 of search 2 tested" in repeated.out
    store = Store(tmp_path / "runs" / "store.sqlite", tmp_path)
    records = store.experiment_runs(store.latest_experiments()["tiny"])
    assert [(record.search, record.run) for record in records] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len({str(record.hyperparameters) for record in records}) == 2
    table = reproduce(tmp_path, "table", "tiny", "--format", "markdown").out
    assert "Single searches, concatenated MAP@R: Contrastive" in table
    assert "added after results were known (1 search)" in table
    answer = reproduce(tmp_path, "table", "tiny", "--what", "differences", "--format", "csv")
    assert pd.read_csv(io.StringIO(answer.out)).empty, "a single method has no pair"


@pytest.mark.long
def test_searches_are_added_at_planned_looks_until_every_comparison_is_decided(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    asked = ("--until-decided", "--methods", "contrastive,untrained", "--workers", "2")
    first = run(tmp_path, *asked).done()
    store = Store(tmp_path / "runs" / "store.sqlite", tmp_path)
    (start,) = store.starts()
    searches = start.plan.experiment.search.searches
    assert searches in LOOKS
    assert made(first.out)[0] == (2 * 2 + 2) * searches + 2 * searches
    notes = reproduce(tmp_path, "table", "tiny", "--format", "markdown").out
    assert f"ecided after {searches} searches of each method; looks were planned after 3, 4, 5, 6 and 8." in notes
    assert "added after results were known" not in notes
    again = run(tmp_path, *asked)
    assert made(again.out)[0] == 0, "a second run finds everything, and stops at the same look"
    assert [one.plan for one in store.starts()] == [start.plan]


@pytest.mark.long
def test_defaults_are_trained_beside_the_searches(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    asked = ("--set", "search.default=true", "--searches", "2", "--reproductions", "2", "--workers", "2")
    answer = run(tmp_path, *asked).done()
    assert made(answer.out)[0] == 2 * (2 * 2 + 2 * 2) + 2 * 2 * 2 + 2 * 2
    table = reproduce(tmp_path, "table", "tiny", "--format", "markdown").out
    assert "| Contrastive, default§ | 2 runs |" in table
    gains = reproduce(tmp_path, "table", "tiny", "--what", "differences", "--format", "markdown").out
    assert "| Contrastive − Contrastive, default | " in gains
    store = Store(tmp_path / "runs" / "store.sqlite", tmp_path)
    records = store.experiment_runs(store.latest_experiments()["tiny"])
    assert [record.hyperparameters for record in records if record.method == "contrastive_default"] == [{}, {}]
    searches = store.searches.of_experiment(store.latest_experiments()["tiny"])
    own = [search.trials[0].setting for (method, _), search in searches.items() if method == "contrastive"]
    assert own == 2 * [{"loss.pos_margin": 0.0, "loss.neg_margin": 0.5}]
