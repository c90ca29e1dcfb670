"""Runs from the command line to the table: interrupted, resumed, with one worker or two."""

import io
import os
import re
import signal
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from results.store.store import Store
from tests.support.command_line import TINY, ask, command, in_background, reproduce
from tests.support.processes import group_members

TRAININGS = 2 + 2 * (2 + 1)
"""Untrained: one run of two folds; contrastive: two trials and one reproduction of two folds."""

# Twelve trainings, each long enough to be caught in the middle.
LONGER = TINY.replace("iterations_per_epoch: 5", "iterations_per_epoch: 100").replace("trials: 2", "trials: 4")
LONGER_TRAININGS = 2 + 2 * (4 + 1)


def run(folder: Path, *more: str):
    return reproduce(folder, "run", "tiny.yaml", *more)


def made(out: str) -> tuple[int, int]:
    """The numbers of trainings made and found, from the last line of a run."""
    found = re.search(r"(\d+) trainings made in .*, (\d+) found in the store", out)
    return int(found[1]), int(found[2])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder in which two workers finished the tiny experiment, and the output of this run."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.yaml").write_text(TINY)
    planned = reproduce(folder, "plan", "tiny.yaml", "--workers", "2")
    answer = run(folder, "--workers", "2")
    assert answer.code == 0, answer.err
    return folder, planned, answer


def test_a_run_ends_with_a_table_on_screen_and_in_three_files(finished):
    folder, _, answer = finished
    assert answer.err == ""
    assert made(answer.out) == (TRAININGS, 0)
    assert "Contrastive" in answer.out
    assert "Untrained trunk (128-dim)" in answer.out
    tables = folder / "runs" / "tables"
    (own,) = tables.glob("tiny-*.csv")
    names = [f"{stem}.{suffix}" for stem in (own.stem, "tiny") for suffix in ("csv", "md", "tex")]
    assert sorted(path.name for path in tables.iterdir()) == names
    assert (tables / "tiny.csv").resolve() == own
    frame = pd.read_csv(tables / "tiny.csv")
    assert len(frame) == 2 * 2 * 3
    assert frame["mean"].between(0.0, 1.0).all()
    assert frame["mean"].gt(0.0).all()
    assert (frame["n"] == 1).all()


def test_progress_is_printed_with_the_time_left(finished):
    _, _, answer = finished
    lines = [line for line in answer.out.splitlines() if line.startswith("[")]
    assert any(f"/{TRAININGS}, about" in line for line in lines)
    assert any("contrastive: search" in line for line in lines)
    assert any("run 1 tested, separated MAP@R" in line for line in lines)


def test_the_first_lines_name_device_data_and_nearest_neighbour_backend(finished):
    _, _, answer = finished
    assert re.search(r"glyphs: \d+ images of \d+ classes", answer.out)
    assert "device cpu" in answer.out


def test_the_tables_numbers_are_the_means_of_the_stored_runs(finished):
    folder, _, _ = finished
    runs = Store(f"sqlite:///{folder}/runs/store.sqlite", folder).runs().set_index("method")
    frame = pd.read_csv(folder / "runs" / "tables" / "tiny.csv")
    for row in frame.itertuples():
        assert row.mean == pytest.approx(runs.loc[row.method, f"{row.variant}_{row.metric}"], rel=1e-12)


def test_a_second_run_trains_nothing(finished):
    folder, _, _ = finished
    csv = folder / "runs" / "tables" / "tiny.csv"
    before, written = csv.read_bytes(), csv.stat().st_mtime_ns
    again = run(folder, "--workers", "1")
    assert again.code == 0, again.err
    assert made(again.out) == (0, TRAININGS)
    assert csv.read_bytes() == before
    assert csv.stat().st_mtime_ns > written


def test_a_finished_run_opens_everything_once(finished, monkeypatch, capsys):
    from reproduce.config import method_card
    from reproduce.forecast import plan_trainings

    counts: Counter[str] = Counter()

    def counted(place, name, key=lambda *arguments: ""):
        real = getattr(place, name)

        def call(*arguments, **options):
            counts[f"{name} {key(*arguments)}".strip()] += 1
            return real(*arguments, **options)

        monkeypatch.setattr(place, name, call)

    counted(plan_trainings, "plan")
    counted(method_card, "read_model", lambda path, model: path.stem)
    method_card._read_once.cache_clear()
    monkeypatch.chdir(finished[0])
    answer = ask("run", "tiny.yaml", "--workers", "1", capsys=capsys, monkeypatch=monkeypatch, page=True)
    assert (answer.code, made(answer.out)) == (0, (0, TRAININGS))
    assert counts == {
        "plan": 1,
        "read_model untrained": 1,
        "read_model contrastive": 1,
    }


def test_the_plan_counts_stored_trainings_before_and_after_the_run(finished):
    folder, before, _ = finished
    after = reproduce(folder, "plan", "tiny.yaml", "--workers", "2")
    assert (before.code, after.code) == (0, 0)
    assert f"{TRAININGS} trainings, 0 in the store; about" in before.out
    assert "estimated" in before.out, "before the first training, the table of machines gives a rough rate"
    assert f"{TRAININGS} trainings, {TRAININGS} in the store; about 0 s left" in after.out


def test_a_plan_for_more_trials_counts_the_stored_trainings(finished):
    folder, _, _ = finished
    more = reproduce(folder, "plan", "tiny.yaml", "--trials", "4", "--reproductions", "2", "--workers", "1")
    # An unfinished search has no best setting yet, so the stored reproductions may not belong to the plan.
    total = 2 * 2 + 2 * (4 + 2)
    assert f"{total} trainings, {2 + 2 * 2} in the store" in more.out


def test_the_status_counts_experiments_trainings_and_tests(finished):
    folder, _, _ = finished
    answer = reproduce(folder, "status")
    assert answer.code == 0
    assert re.search(rf"{TRAININGS} training\(s\), 2 test evaluation\(s\), 0 failure\(s\)", answer.out)
    assert "tiny" in answer.out


def test_the_table_is_drawn_from_the_store_alone(finished, capsys, monkeypatch):
    folder, _, _ = finished
    monkeypatch.chdir(folder)
    tables = folder / "runs" / "tables"
    for form, suffix in (("markdown", "md"), ("csv", "csv"), ("latex", "tex")):
        answer = ask("table", "tiny", "--format", form, capsys=capsys, monkeypatch=monkeypatch)
        assert answer.code == 0, answer.err
        assert answer.out == (tables / f"tiny.{suffix}").read_text(encoding="utf-8")
    terminal = ask("table", "tiny.yaml", capsys=capsys, monkeypatch=monkeypatch)
    assert terminal.code == 0
    cell = pd.read_csv(io.StringIO((tables / "tiny.csv").read_text()))["mean"].iloc[0]
    assert f"{100 * cell:.2f}" in terminal.out


def test_one_worker_gives_the_same_table(finished, tmp_path):
    folder, _, _ = finished
    (tmp_path / "tiny.yaml").write_text(TINY)
    answer = run(tmp_path, "--workers", "1")
    assert answer.code == 0, answer.err
    name = Path("runs") / "tables" / "tiny.csv"
    assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.long
def test_a_run_with_more_methods_shows_all_and_uses_the_stored_trainings(finished, tmp_path):
    """The name leads to the latest table, and the first one stays."""
    folder, _, _ = finished
    place = ("--store", str(folder / "more.sqlite"), "--artifacts", str(folder / "more"), "--tables", str(tmp_path))
    first = run(folder, "--methods", "untrained", "--workers", "1", *place)
    both = run(folder, "--methods", "untrained,contrastive", "--workers", "1", *place)
    assert (first.code, both.code) == (0, 0)
    assert made(first.out) == (2, 0)
    assert made(both.out) == (TRAININGS - 2, 2)
    assert (tmp_path / "tiny.csv").read_bytes() == (folder / "runs" / "tables" / "tiny.csv").read_bytes()
    assert len(list(tmp_path.glob("tiny-*.csv"))) == 2


class Started:
    """A run in the background."""

    def __init__(self, folder: Path, store: str) -> None:
        self.process = in_background(folder, command("run", "tiny.yaml", "--workers", "2", "--store", store))

    def until(self, text: str) -> None:
        """Read lines until one contains `text`."""
        for line in self.process.stdout:
            if text in line:
                return
        pytest.fail(f"the run ended without saying {text!r}: {self.process.stderr.read()}")


def wait_until_gone(group: int) -> list[int]:
    """Wait at most a minute until a process group has ended, and return its remaining processes."""
    for _ in range(600):
        left = group_members(group)
        if not left:
            return []
        time.sleep(0.1)
    return left


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """A folder with a longer experiment, and the table of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("longer")
    (folder / "tiny.yaml").write_text(LONGER)
    answer = run(folder, "--workers", "2", "--store", "whole/store.sqlite")
    assert answer.code == 0, answer.err
    return folder


@pytest.mark.long
def test_a_killed_and_then_stopped_run_ends_with_the_same_table(longer):
    killed = Started(longer, "cut/store.sqlite")
    killed.until("contrastive: search")
    os.kill(killed.process.pid, signal.SIGKILL)
    assert killed.process.wait(60) == -signal.SIGKILL
    assert wait_until_gone(killed.process.pid) == [], "a worker outlives the killed run"
    store = Store(f"sqlite:///{longer}/cut/store.sqlite", longer)
    kept = len(store.folds())
    assert 0 < kept < LONGER_TRAININGS

    stopped = Started(longer, "cut/store.sqlite")
    stopped.until("contrastive: search")
    os.killpg(stopped.process.pid, signal.SIGINT)
    _, said = stopped.process.communicate(timeout=60)
    assert stopped.process.returncode == 130
    assert said == "stopped; everything finished is kept, run the same command to continue\n"
    assert wait_until_gone(stopped.process.pid) == [], "a worker outlives the stopped run"
    assert kept < len(store.folds()) < LONGER_TRAININGS
    kept = len(store.folds())

    again = run(longer, "--workers", "2", "--store", "cut/store.sqlite")
    assert again.code == 0, again.err
    assert made(again.out) == (LONGER_TRAININGS - kept, kept)
    csv = Path("tables") / "tiny.csv"
    assert (longer / "cut" / csv).read_bytes() == (longer / "whole" / csv).read_bytes()


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
    store = Store(f"sqlite:///{tmp_path}/runs/store.sqlite", tmp_path)
    records = store.experiment_runs(store.latest_experiments()["tiny"])
    assert [(record.search, record.run) for record in records] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len({str(record.hyperparameters) for record in records}) == 2
    table = reproduce(tmp_path, "table", "tiny", "--format", "markdown").out
    assert "Single searches, concatenated MAP@R: Contrastive" in table
    assert "added after results were known (1 search)" in table
    answer = reproduce(tmp_path, "table", "tiny", "--what", "uncertainty", "--format", "csv")
    assert pd.read_csv(io.StringIO(answer.out)).empty, "a single method has no pair"
