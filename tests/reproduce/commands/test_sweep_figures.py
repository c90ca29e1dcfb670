"""`reproduce report`: scores against the numbers in which rows or panels differ."""

import csv

import pytest
import yaml

from results.store.store import Store
from tests.support.command_line import reproduce, torchless
from tests.support.figure_material import put_in_store, sweep
from tests.support.panels import SHARED


@pytest.fixture
def store(tmp_path):
    (tmp_path / "runs").mkdir()
    return Store(tmp_path / "runs" / "store.sqlite", tmp_path / "runs" / "artifacts")


def test_panels_have_figures_of_their_own_and_one_over_their_setting(store, tmp_path):
    for size in (16, 64):
        settings = {"training": {"batch_size": size, "max_epochs": 1}}
        panel = sweep([({"loss.r": r}, (0.5, 0.6)) for r in (0.05, 0.07)], name=f"mine/of_{size}", settings=settings)
        put_in_store(store, panel)
    answer = torchless(tmp_path, "report", "mine")
    assert (answer.code, answer.err) == (0, "")
    reports = tmp_path / "runs" / "reports"
    names = {path.name for path in (reports / "mine_of_16" / "figures").iterdir()}
    assert {"intervals.png", "sweep_loss.r.svg", "sweep_loss.r.csv"} <= names
    over_panels = {path.name for path in (reports / "mine" / "figures").iterdir()}
    assert over_panels == {f"sweep_training.batch_size.{suffix}" for suffix in ("png", "svg", "pdf", "csv")}
    with (reports / "mine" / "figures" / "sweep_training.batch_size.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert [(row["x"], row["values"].count(" ")) for row in rows][:2] == [("16.0", 1), ("64.0", 1)], (
        "of one line, in rising order"
    )
    assert "runs/reports/mine/figures/sweep_training.batch_size.png: " in answer.out


@pytest.mark.long
def test_a_sweep_of_ones_own_runs_and_is_drawn(tmp_path):
    """A user's own file with two sweeps: hyperparameters, and conditions of rows."""
    values = {"loss.alpha": [4.0, 32.0], "loss.margin": [0.1]}
    content = {
        **SHARED,
        "protocol": "standard",
        "methods": ["untrained"],
        "sweeps": [{"of": "proxy_anchor", "grid": values}, {"of": "contrastive", "with": {"embedding_size": [8, 32]}}],
        "reproductions": 2,
        "test_curves": True,
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
    done = reproduce(tmp_path, "run", "mine.yaml", "--workers", "1", page=True)
    assert done.code == 0, done.err
    names = {path.name for path in (tmp_path / "runs" / "reports" / "mine" / "figures").iterdir()}
    assert {"sweep_loss.alpha.png", "sweep_embedding_size.svg", "test_curves.png", "intervals.png"} <= names
