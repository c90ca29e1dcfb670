"""Files that hold a whole published table: panels, settings of their own, and plans before any image is there."""

from pathlib import Path

import pytest
import torch
import yaml

from reproduce.commands.options import Choices
from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_card import load_card
from reproduce.config.method_on_dataset import open_method
from reproduce.config.yaml_files import short_name
from reproduce.errors import InputError
from results.experiment_spec import Experiment
from tests.support.command_line import ask
from tests.support.experiment_files import load_experiment

SHARED = {
    "title": "Two panels",
    "methods": ["untrained", "normalized_softmax"],
    "trunk": {"name": "small_conv", "weights": "random"},
    "embedding_size": 16,
    "dataset": {"name": "glyphs"},
    "images": {"resize": None, "crop": 32, "area": [0.6, 1.0], "ratio": [0.9, 1.1], "flip": False},
    "training": {
        "batch_size": 16,
        "iterations_per_epoch": 3,
        "max_epochs": 2,
        "validate_every": 1,
        "optimizer": {"name": "Adam", "lr": 1e-3, "arguments": {}},
    },
    "search": {"trials": 0},
    "reproductions": 1,
    "folds": 1,
}


def table_file(folder: Path, panels: object, **changes: object) -> str:
    path = folder / "both.yaml"
    path.write_text(yaml.safe_dump({**SHARED, **changes, "panels": panels}))
    return str(path)


def written(folder: Path, **changes: object) -> Experiment:
    path = folder / "one.yaml"
    path.write_text(yaml.safe_dump({**SHARED, **changes}))
    return load_experiment(str(path), {})


PANELS = {"small": {"training": {"batch_size": 8}}, "wide": {"embedding_size": 32, "protocol": "standard"}}


def test_a_panel_is_what_all_share_with_its_own_keys_on_top(tmp_path):
    path = table_file(tmp_path, PANELS)
    experiments = load_experiments(path, {"seed": 3})
    assert list(experiments) == ["both/small", "both/wide"]
    small, wide = experiments.values()
    assert (small.training.batch_size, small.training.max_epochs, small.embedding_size) == (8, 2, 16)
    assert (wide.training.batch_size, wide.embedding_size, wide.protocol) == (16, 32, "standard")
    assert small.seed == wide.seed == 3
    assert load_experiments(f"{path}/wide", {}).keys() == {"both/wide"}
    assert load_experiment(f"{path}/wide", {"seed": 3}) == wide
    assert short_name(f"{path}/wide") == "both/wide"


@pytest.mark.parametrize(
    ("panels", "name", "said"),
    [
        (PANELS, "/narrow", "no panel 'narrow'; it has small, wide"),
        (None, "/small", "has no panels"),
        ({"small": 3}, "", "panels must be keys and values"),
        ({"small": {"trainin": {}}}, "", "panels.small: unknown key 'trainin'"),
    ],
)
def test_a_slip_in_a_panel_is_one_line(tmp_path, panels, name, said):
    path = table_file(tmp_path, panels)
    with pytest.raises(InputError) as error:
        load_experiments(path + name, {})
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_no_search_takes_the_published_values(tmp_path):
    card = load_card("cosface")
    birds = written(tmp_path, dataset={"name": "cub200"})
    opened = open_method(birds, card)
    assert opened.space == ()
    assert opened.given == card.published["cub200"]
    assert opened.method.loss.arguments["margin"] == card.published["cub200"]["loss.margin"]
    glyphs = open_method(written(tmp_path), card)
    assert glyphs.given == {}
    assert glyphs.method.loss == card.loss


def test_settings_are_set_and_no_longer_searched(tmp_path):
    experiment = written(tmp_path, search={"trials": 2}, settings={"cosface": {"loss.margin": 0.25}})
    opened = open_method(experiment, load_card("cosface"))
    assert opened.method.loss.arguments["margin"] == 0.25
    assert {parameter.target for parameter in opened.space} == {"loss_optimizer.lr", "loss.scale"}
    assert opened.given == {"loss.margin": 0.25}


@pytest.mark.parametrize("target", ["loss.marginn", "miner.epsilon", "loss_optimizer.momentum"])
def test_a_setting_without_a_place_is_one_line(tmp_path, target):
    with pytest.raises(InputError, match="settings of method 'cosface': "):
        open_method(written(tmp_path, settings={"cosface": {target: 1.0}}), load_card("cosface"))


def test_ranges_replace_the_cards_bounds(tmp_path):
    search = {"trials": 2, "ranges": {"cosface": {"loss.scale": {"low": 1.0, "high": 2.0}}}}
    space = {p.target: p for p in open_method(written(tmp_path, search=search), load_card("cosface")).space}
    assert (space["loss.scale"].low, space["loss.scale"].high) == (1.0, 2.0)
    assert (space["loss.margin"].low, space["loss.margin"].high) == (0.0, 1.0)


def test_proxies_train_at_a_multiple_of_the_networks_rate(tmp_path):
    experiment = written(tmp_path, search={"trials": 2}, proxies={"lr_multiplier": 100.0, "warmup_passes": 1})
    proxies, pairs = (open_method(experiment, load_card(name)) for name in ("proxy_anchor", "contrastive"))
    assert proxies.method.loss_lr == pytest.approx(0.1)
    assert proxies.method.warmup_passes == 1
    assert "loss_optimizer.lr" not in {parameter.target for parameter in proxies.space}
    assert pairs.method.loss_lr is None
    assert pairs.method.warmup_passes is None


def test_folders_are_given_by_dataset():
    several = {"cub200", "cars196"}
    choices = Choices(data=["cub200=birds", "cars196=cars=old"])
    assert choices.root_of("cub200", several) == Path("birds")
    assert choices.root_of("cars196", several) == Path("cars=old")
    assert choices.root_of("sop", several) is None
    assert Choices(data=["birds"]).root_of("cub200", {"cub200"}) == Path("birds")
    assert Choices().root_of("cub200", {"cub200"}) is None
    with pytest.raises(InputError, match=r"--data birds: say which dataset it is: --data cars196=FOLDER --data cub200"):
        Choices(data=["birds"]).root_of("cub200", several)


@pytest.fixture
def say(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    yield lambda *arguments: ask(*arguments, capsys=capsys, monkeypatch=monkeypatch)
    torch.set_num_threads(threads)


def test_all_panels_run_and_have_their_tables(say, tmp_path):
    path = table_file(tmp_path, PANELS, test_curves=True, metrics=["recall@2"])
    answer = say("run", path, "--workers", "1")
    assert answer.code == 0, answer.err
    assert "2 trainings made" in answer.out
    assert "3 trainings made" in answer.out, "the untrained trunk, one that chooses, one on all classes"
    again = say("run", path, "--workers", "1")
    assert again.out.count("0 trainings made") == 2
    both = say("table", "both", "--format", "csv").out
    one = say("table", "both/wide", "--format", "csv").out
    assert one in both
    assert both.count("Normalized Softmax") == 2 * one.count("Normalized Softmax")
    assert {path.name for path in (tmp_path / "runs" / "tables").iterdir()} >= {"both_small.csv", "both_wide.csv"}


def test_a_panel_without_images_is_passed_over_and_said(say, tmp_path):
    path = table_file(tmp_path, {"here": {}, "there": {"dataset": {"name": "cub200"}}})
    answer = say("run", path, "--workers", "1")
    assert answer.code == 0, answer.err
    assert "both/there: not run, no --data cub200=FOLDER" in answer.out


def test_a_plan_needs_no_images(say, tmp_path):
    changes = {"dataset": {"name": "cub200"}, "images": {"resize": 32, "crop": 24}, "search": {"trials": 5}, "folds": 4}
    (tmp_path / "birds.yaml").write_text(yaml.safe_dump({**SHARED, **changes}))
    answer = say("plan", "birds.yaml", "--workers", "1")
    assert answer.code == 0, answer.err
    assert "noise in place of cub200's images" in answer.out
    assert "28 trainings, 0 in the store" in answer.out
    assert not (tmp_path / "runs").exists()
    elsewhere = say("plan", "birds.yaml", "--rate", "1000")
    assert "1000.0 images a second in training" in elsewhere.out
