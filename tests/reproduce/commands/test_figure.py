"""`reproduce figure`: the list, figures from stored runs, and messages."""

import csv

import pytest
import yaml

from results.store.store import Store
from tests.support.command_line import ask, reproduce, torchless
from tests.support.figure_material import put_in_store, with_curves
from tests.support.panels import SHARED

SIX = ("proxy_anchor", "nir_proxy_anchor", "proxy_nca", "nir_proxy_nca", "soft_triple", "nir_soft_triple")


@pytest.fixture
def say(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: ask("figure", *arguments, capsys=capsys, monkeypatch=monkeypatch)


@pytest.fixture
def store(tmp_path):
    (tmp_path / "runs").mkdir()
    return Store(tmp_path / "runs" / "store.sqlite", tmp_path / "runs" / "artifacts")


def listed(answer):
    """The last cell of each row of the list, by figure."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in answer.out.splitlines() if line[:1] == "│"]
    return {row[0]: row[-1] for row in rows if row[0]}


def test_the_list_counts_the_runs_of_each_figure_and_names_own_experiments(say, store):
    assert set(listed(say()).values()) == {"none"}
    put_in_store(store, with_curves({"proxy_anchor": [(0.5,), (0.6,)]}, name="nir_table1/cars196"))
    put_in_store(store, with_curves({"proxy_anchor": [(0.5,)]}, name="nir_table1/sop", dataset="sop"))
    answer = say()
    assert listed(answer)["nir_figure3"] == "2", "the paper's figure has no panel for SOP"
    assert listed(answer)["proxy_gml_figure4"] == "none"
    assert "experiments in the store: nir_table1/cars196, nir_table1/sop" in answer.out


def test_a_figure_is_drawn_from_the_suites_experiments(say, store, tmp_path):
    for dataset in ("cars196", "cub200"):
        runs = {key: [(0.5, 0.6), (0.6, 0.7)] for key in SIX}
        put_in_store(store, with_curves(runs, name=f"nir_table1/{dataset}", dataset=dataset))
    answer = say("nir_figure3")
    assert answer.code == 0, answer.err
    files = [tmp_path / "runs" / "figures" / f"nir_figure3.{suffix}" for suffix in ("png", "svg", "csv")]
    *named, caption = answer.out.splitlines()
    assert [tmp_path / name for name in named] == files
    assert files[0].read_bytes()[:4] == b"\x89PNG"
    with files[2].open(newline="") as text:
        values = list(csv.DictReader(text))
    assert [row["panel"] for row in values[::4]] == [
        *("cub200: Proxy-Anchor", "cub200: ProxyNCA", "cub200: SoftTriple"),
        *("cars196: Proxy-Anchor", "cars196: ProxyNCA", "cars196: SoftTriple"),
    ]
    assert {row["n"] for row in values} == {"2"}
    assert "Drawn from nir_table1/cub200 (cub200), nir_table1/cars196 (cars196)." in caption
    assert "nir_table1/cub200 differs from the suite's file: " in caption


def test_what_cannot_be_drawn_is_one_line(say, store, tmp_path):
    answer = say("nir_figure3")
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert "make them with `reproduce run nir_table1/cub200` and `reproduce run nir_table1/cars196`" in answer.err
    assert "make one with `reproduce run ccp_figure4`" in say("ccp_figure4", "--store", "elsewhere.sqlite").err
    assert not (tmp_path / "elsewhere.sqlite").exists()
    assert "no experiment 'figure9'" in (error := say("figure9").err)
    assert "figures of papers: proxy_isa_figure11, " in error
    put_in_store(store, with_curves({"other": [(0.5,)]}, name="proxy_isa_table1/cars196"))
    assert "no run of proxy_anchor, proxy_isa, proxy_nca has test curves" in say("proxy_isa_figure11").err
    assert not (tmp_path / "runs" / "figures").exists()


@pytest.mark.long
def test_a_sweep_of_ones_own_runs_and_is_drawn_without_torch(tmp_path):
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
    done = reproduce(tmp_path, "run", "mine.yaml", "--workers", "1")
    assert done.code == 0, done.err
    drawn = torchless(tmp_path, "figure", "mine", "--to", "drawn")
    assert (drawn.code, drawn.err) == (0, "")
    names = {path.name for path in (tmp_path / "drawn" / "mine").iterdir()}
    assert {"sweep_loss.alpha.png", "sweep_embedding_size.svg", "test_curves.png", "intervals.png"} <= names
    assert "drawn/mine/sweep_loss.alpha.png: " in drawn.out
