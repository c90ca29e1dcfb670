"""`reproduce table`: published tables with and without a store, tables of experiments, and lists of names."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from reports.tables.formats import WRITERS
from reproduce.config import experiment_file as experiments
from reproduce.config import strict_yaml as reading
from reproduce.config.experiment_file import departures, experiment_names, load_experiments
from reproduce.outputs.tables import KINDS
from reproduce.terminal import show_answer
from results.findings.experiment import answer_of
from results.published.tables import published_table, published_tables
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from tests.support.command_line import ROOT, refused, refusing, reproduce_all
from tests.support.published_world import MLRC, NOT_FILLED, changed, runs_of, single_runs
from tests.support.sample_records import changed_run, put_experiment, some_plan
from tests.support.several_datasets import experiment as on_dataset

NEAR = [0.59, 0.60, 0.605]
SETTINGS = {
    "title": "One",
    "protocol": "standard",
    "dataset": {"name": "cub200"},
    "methods": ["proxy_isa"],
    "trunk": {"name": "bn_inception", "weights": "imagenet"},
    "embedding_size": 512,
    "images": {"resize": None, "evaluation_resize": 256, "crop": 224},
    "search": {"trials": 0},
    "reproductions": 5,
    "panels": {"cub200": {}, "cars196": {"dataset": {"name": "cars196"}}},
}


@pytest.fixture
def store(tmp_path):
    (tmp_path / "runs").mkdir()
    return Store(tmp_path / "runs" / "store.sqlite", tmp_path / "runs" / "artifacts")


@pytest.fixture
def own_files(tmp_path, monkeypatch):
    """The suite has only one experiment file: proxy_isa_table1."""
    folder = tmp_path / "experiments"
    folder.mkdir()
    (folder / "proxy_isa_table1.yaml").write_text(json.dumps(SETTINGS))
    for module in (reading, experiments):
        monkeypatch.setattr(module, "EXPERIMENTS", folder)
    return load_experiments("proxy_isa_table1", {})


def keep(store, name, plan, records, identity="f"):
    put_experiment(store, identity, name, plan, records)


def keep_quickstart(store):
    kept = MeasuredExperiment.kept("quickstart")
    keep(store, "quickstart", kept.plan, kept.records)
    return kept


def plan(settings, title="T"):
    return some_plan(title=title, methods={"contrastive": "C"}, settings=settings)


def cells(answer):
    assert answer.code == 0, answer.err
    return pd.read_csv(io.StringIO(answer.out))


def test_a_published_table_needs_no_store(say, tmp_path):
    name = "proxy_gml_table2"
    answer = say("table", name)
    assert answer.code == 0
    assert answer.err == "runs/store.sqlite: there is no store yet, so the table has no runs\n"
    assert answer.out.lower().count("not run") == 1
    for cell in (cell for row in published_table(name).rows for cell in row.cells.values()):
        assert cell.as_published in answer.out
    assert list(tmp_path.iterdir()) == [], "looking makes no store"


def test_mlrcs_table_shows_the_stored_runs(say, store):
    keep(store, "mlrc_cub200", plan(MLRC), runs_of("contrastive", NEAR))
    frame = cells(say("table", "mlrc_cub200", "--format", "csv"))
    run = frame[~frame["verdict"].isin(NOT_FILLED)]
    assert set(run["row"]) == {"Contrastive"}
    assert len(run) == 6
    terminal = say("table", "mlrc_cub200")
    assert terminal.err == ""
    assert "±1.90 (3)" in terminal.out
    assert "Our runs are those of mlrc_cub200." in terminal.out
    assert max(map(len, terminal.out.splitlines())) <= 140
    assert terminal.out.count("┏") == 1
    latex = say("table", "mlrc_cub200", "--format", "latex", "--columns", "P@1", "--rows", "contrastive").out
    assert latex.count("Contrastive") == 1
    assert r"\begin{tabular}{@{}lrr@{}}" in latex
    assert ": no row 'x'; there are " in say("table", "mlrc_cub200", "--rows", "x").err
    found = [
        cell
        for cell in json.loads(say("table", "mlrc_cub200", "--format", "json").out)
        if cell["origin"] == "mlrc_cub200"
    ]
    assert len(found) == 6
    keep(store, "mlrc_cub200", plan(MLRC, title="Ours alone"), runs_of("contrastive", NEAR), "ours")
    assert "Ours alone" in say("table", "mlrc_cub200", "--what", "results").out
    assert "Ours alone" in say("table", "mlrc_cub200.yaml").out
    assert "Ours alone" not in say("table", "mlrc_cub200").out


def test_a_table_that_nothing_is_in_is_refused_with_the_reason(say):
    record = str(ROOT / "results" / "measured" / "quickstart.json.xz")
    for output in ("terminal", "csv"):
        answer = say("table", record, "--what", "peeking", "--format", output)
        refused(answer, "no checkpoint was chosen beside test scores; `--set test_curves=true` records them")
        assert answer.out == ""


def test_a_later_short_run_does_not_hide_the_complete_run(say, store):
    keep(store, "mlrc_cub200", plan(MLRC), runs_of("contrastive", NEAR), "whole")
    short = [changed_run(run, **{"fingerprint": f"short-{run.run}"}) for run in runs_of("contrastive", NEAR[:1])]
    keep(store, "mlrc_cub200", plan(changed(MLRC, search={"trials": 1})), short, "short")
    frame = cells(say("table", "mlrc_cub200", "--format", "csv"))
    assert set(frame[frame["row"] == "Contrastive"]["n"]) == {3}
    assert "search.trials 1 where the suite's file has 50" in say("table", "mlrc_cub200", "--format", "markdown").out


def test_deviations_contain_settings_but_not_free_choices(own_files):
    name = "proxy_isa_table1/cub200"
    whole = own_files[name].model_dump(mode="json")
    free = {"training": {"precision": "amp"}, "dataset": {"skip_broken_images": True}, "title": "Another", "seed": 9}
    free |= {"metrics": ["nmi"], "test_curves": True, "peeking_metric": "precision_at_1", "reproductions": 1}
    free |= {"primary": {"metric": "precision_at_1"}, "methods": ["triplet"]}
    assert departures(name, plan(changed(whole, **free))) == ()
    for changes, said in (
        ({"embedding_size": 64}, "embedding_size 64 where the suite's file has 512"),
        ({"images": {"crop": 96}}, "images.crop 96 where the suite's file has 224"),
        ({"settings": {"proxy_isa": {"loss.k": 0.5}}}, "settings.proxy_isa.loss.k 0.5 where the suite's file has None"),
        ({"proxies": {"lr_multiplier": 3.0}}, "proxies.lr_multiplier 3.0 where the suite's file has None"),
    ):
        assert said in departures(name, plan(changed(whole, **changes)))
    variant = {"of": "proxy_isa", "key": "v", "title": "V", "set": {"loss.k": 0.1}}
    assert departures(name, plan(changed(whole, variants=[variant]))) == ("variant v is not that of the suite's file",)
    assert departures("proxy_isa_table1/none", plan(whole)) == ("the suite's file has no panel 'none'",)
    assert departures("proxy_isa_table1", plan(whole)) == ("the suite's file has panels",)
    assert departures("nir_table1", plan(whole)) == ("the suite has no experiment file of this name",)


def test_more_trials_or_none_are_no_deviation():
    searched = load_experiments("mlrc_cub200", {})["mlrc_cub200"].model_dump(mode="json")
    for trials, found in ((0, ()), (60, ()), (10, ("search.trials 10 where the suite's file has 50",))):
        assert departures("mlrc_cub200", plan(changed(searched, search={"trials": trials}))) == found


def test_no_experiment_of_the_suite_deviates_from_its_file():
    """Every experiment is compared in its stored form, after a round trip through JSON."""
    for file in experiment_names():
        for name, one in load_experiments(file, {}).items():
            assert departures(name, plan(json.loads(json.dumps(one.without_folder())))) == (), name


def test_tables_claims_and_boards_are_drawn_without_torch(store, tmp_path):
    """The store has runs of the table's experiment, so that the experiment's file is read."""
    keep_quickstart(store)
    whole = load_experiments("proxy_isa_table1", {})["proxy_isa_table1/cub200"].model_dump(mode="json")
    keep(store, "proxy_isa_table1/cub200", plan(whole), single_runs("proxy_isa", [0.67, 0.68]), "isa")
    for dataset in ("cub200", "sop"):
        (tmp_path / f"{dataset}.json").write_text(on_dataset(dataset).to_json())
    commands = (
        *(["table", "mlrc_cub200"], ["table", "quickstart", "--what", "hyperparameters"], ["claims"], ["coverage"]),
        *(["board", "cub200.json", "sop.json", "--to", "board"], ["table", "proxy_isa_table1"]),
    )
    answers = reproduce_all(tmp_path, *commands, before=refusing("torch", "protocols", "losses", "optuna"))
    assert [(answer.code, answer.err) for answer in answers] == [(0, "")] * len(commands)
    assert "(2)" in answers[-1].out


def test_an_experiment_is_drawn_in_every_kind_and_format(say, store):
    kept = keep_quickstart(store)
    assert "no checkpoint was chosen beside test scores" in refused(say("table", "quickstart", "--what", "peeking"))
    for what in KINDS.keys() - {"peeking"}:
        for form in ("terminal", *WRITERS):
            answer = say("table", "quickstart", "--what", what, "--format", form)
            assert (answer.code, answer.err) == (0, ""), answer
            assert answer.out
    record = say("table", "quickstart", "--format", "json").out
    assert json.loads(record)["records"]
    Path("copy.json").write_text(record)
    assert say("table", "copy.json").out == say("table", "quickstart").out
    pairs = json.loads(say("table", "quickstart", "--what", "differences", "--format", "json").out)
    count = len(kept.plan.titles)
    assert len(pairs) == count * (count - 1) // 2
    assert all(pair["difference"] >= 0 for pair in pairs), "the higher mean comes first"
    early = replace(kept, records=tuple(run for run in kept.records if run.search < 2))
    Path("early.json").write_text(early.to_json())
    refused(say("table", "early.json", "--what", "holds"), "searches or runs are missing, so there is no verdict yet")


def test_other_comparisons_can_be_asked_for_and_are_said_in_sentences(say, store):
    kept = MeasuredExperiment.kept("all_methods_glyphs_three_searches")
    keep(store, "glyphs", kept.plan, kept.records)
    answer = say("table", "glyphs", "--what", "differences", "--compare", "cosface")
    assert answer.out.splitlines()[:2] == [
        "Cannot tell yet: CosFace 34.0, Proxy-Anchor 35.4 and 3 others. "
        "None is told apart from CosFace: the differences are up to 1.3 points; a difference "
        "of 5.9 to 8.6 points would have shown.",
        "CosFace is 1.3 ± 3.2 points below Proxy-Anchor: cannot tell; a difference of 5.9 points would have shown",
    ]
    assert "highest mean" not in answer.out
    assert "These comparisons are not those of the experiment (all)." in answer.out
    rows = cells(say("table", "glyphs", "--what", "differences", "--compare", "cosface", "--format", "csv"))
    assert set(rows["a"]) == {"cosface"}
    assert "--compare nothing: use all, best, or one of " in refused(say("table", "glyphs", "--compare", "nothing"))
    assert "sentences are text" in refused(say("table", "glyphs", "--what", "sentences", "--format", "json"))
    one = say("table", "glyphs", "--what", "sentences", "--rows", "cosface")
    assert "a pair takes two methods; --compare cosface takes all" in refused(one)


def test_the_end_of_a_run_is_short(capsys):
    kept = answer_of(MeasuredExperiment.kept("reality_check_glyphs"))
    show_answer(kept)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == (
        "No verdict about methods: only after 400 steps and within the searched ranges, a difference in 37 of 91 "
        "pairs. The highest mean: Proxy-Anchor 34.9."
    )
    assert len([line for line in lines if line.startswith("- ")]) == 6, "of 91 pairs a few of the highest mean"
    assert "- Proxy-Anchor is 5.6 ± 3.0 points above ArcFace after 400 steps" in lines
    (head,) = [place for place, line in enumerate(lines) if line.startswith("Method")]
    shown = ["concatenated", "P@1", "concatenated", "MAP@R", "rank", "searches", "×", "runs"]
    assert lines[head].split()[1:] == shown
    assert lines[head + 1].startswith("Proxy-Anchor ")
    assert "1 to 14" in lines[head + 1]
    assert len(lines[head:]) <= 12
    assert lines[-1].startswith("the page has 7 more methods")


def test_unknown_names_give_one_line_with_the_known_names(say, store):
    assert "experiments in the store: none" in say("table").out
    keep_quickstart(store)
    assert "experiments in the store: quickstart" in say("table").out
    line = refused(say("table", "nonsense"))
    assert "no experiment 'nonsense'" in line
    assert all(known in line for known in ("`reproduce status` lists all", *published_tables()))
    assert "did you mean quickstart?" in refused(say("table", "quickstrat"))
    line = refused(say("table", "quickstart", "--what", "published"))
    assert "no published table 'quickstart'" in line
    assert "`reproduce table` lists all" in line
    line = refused(say("table", "quickstart", "--what", "everything"))
    assert "is not one of 'published', 'results', 'differences'" in line
    assert "'html', 'json'" in refused(say("table", "quickstart", "--format", "word"))
    assert "is not one of 'short', 'all', 'none'" in refused(say("table", "quickstart", "--notes", "few"))
