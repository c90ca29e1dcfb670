"""Options and `--set` on top of an experiment file, its paths, and the panel that suits the size of the images."""

import json
from pathlib import Path
from typing import Any

import pytest

from reproduce.commands.cli import with_home
from reproduce.commands.options import Choices
from reproduce.config.experiment_file import load_experiments, with_paths
from reproduce.errors import InputError
from results.spec.conditions import ImageSettings
from results.spec.experiment_spec import Experiment, PrimaryScore
from results.spec.trunk_spec import TrunkSpec
from tests.support.command_line import one_line
from tests.support.experiment_files import load_experiment


def changed(name: str, *settings: str, **options: Any) -> Experiment:
    return load_experiment(name, Choices(settings=list(settings), **options).overrides())


def test_set_replaces_any_setting_by_its_dotted_key() -> None:
    settings = ("training.max_epochs=3", "training.optimizer.lr=1e-2", "images.resize=null", "training.precision=amp")
    before = load_experiment("mlrc_cub200", {}).conditions
    own = changed("mlrc_cub200", *settings, "embedding_size=16").conditions
    assert (own.training.max_epochs, own.training.optimizer.lr, own.embedding_size) == (3, 0.01, 16)
    assert (own.images.resize, own.images.crop) == (None, before.images.crop)
    assert own.training.precision == "amp"
    assert own.training.optimizer.name == before.training.optimizer.name
    assert changed("mlrc_cub200").conditions == before
    assert changed("quickstart", "primary.margin=1.0").primary == PrimaryScore(margin=1.0)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("training.max_epoch=3", "options on top of quickstart.yaml: unknown key 'training.max_epoch'"),
        ("search.n_trials=3", "unknown key 'search.n_trials'; did you mean trials?"),
        ("search.sampler.points=3", "key 'search.sampler.points'; if its class takes it, put it under 'arguments'"),
        ("search.sampler=Grid", "key 'search.sampler': needs keys and values, as in {name: 'Grid'}, found 'Grid'"),
        (
            "search.sampler=",
            "key 'search.sampler': needs keys and values, as in {key: value}, found nothing; fill it in",
        ),
        ("title=''", "key 'title': must not be empty"),
        ("training.max_epochs=many", "key 'training.max_epochs': input should be a valid integer"),
        ("folds=5", "key 'folds': input should be less than or equal to 4, found 5"),
        ("training.optimizer.lr=.inf", "key 'training.optimizer.lr': must be a finite number, found inf"),
        ("folds", "--set folds: use KEY=VALUE, as in --set training.max_epochs=3"),
        ("folds=[1", "--set folds=[1: line 1: not valid YAML"),
        ("seed=1000000000000000000000000000000", "key 'seed': input should be less than 9223372036854775808"),
        ("seed.value=3", "--set seed.value: 'seed' has no parts; give 'seed' as a whole"),
        ("trunk.frozen=true", "a frozen trunk needs trained weights"),
    ],
)
def test_a_wrong_setting_gives_one_line(setting: str, said: str) -> None:
    with one_line(said):
        changed("quickstart", "seed=1", setting)


def test_another_trunk_has_its_own_weights_and_stays_frozen() -> None:
    assert changed("quickstart", "trunk=resnet50").conditions.trunk == TrunkSpec(name="resnet50")
    assert changed("folder", "trunk=small_conv").conditions.trunk == TrunkSpec(name="small_conv", weights="random")
    assert changed("folder_small", "trunk=resnet50").conditions.trunk.frozen


def test_a_frozen_trunk_takes_back_what_has_no_effect_then() -> None:
    experiment = changed("quickstart", "trunk=resnet50", "trunk.frozen=true")
    assert experiment.conditions.trunk == TrunkSpec(name="resnet50", frozen=True)
    assert experiment.conditions.images == ImageSettings(resize=None, crop=24)
    for one in load_experiments("vit_cub200", {"trunk.frozen": True}).values():
        assert one.conditions.training.gradient_cache is one.conditions.training.optimizer.layer_decay is None
        assert one.conditions.training.optimizer.weight_decay_of == "matrices"


def test_a_plus_sign_adds_to_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").touch()
    of_file = load_experiment("quickstart", {}).methods
    assert changed("quickstart", methods="triplet").methods == ("triplet",)
    beside = changed("quickstart", methods="+contrastive,triplet,+./mine.yaml").methods
    assert beside == (*of_file, "contrastive", "./mine.yaml"), "each of them once"
    for name, experiment in load_experiments(
        "nir_table1", Choices(settings=["metrics=+nmi,a.py:f"]).overrides()
    ).items():
        assert set(experiment.metrics) == {*load_experiment(name, {}).metrics, "nmi", "a.py:f"}
    assert changed("quickstart", "metrics=[recall@4, nmi]").metrics == ("recall@4", "nmi")


FILE = {
    "title": "T",
    "dataset": {"name": "glyphs"},
    "methods": ["triplet", "mine/my_loss.yaml"],
    "variants": [{"of": "triplet", "key": "wide", "title": "Wide", "set": {"loss.margin": 1.0}}],
    "trunk": {"name": "small_conv", "weights": "random"},
}


def opened(folder: Path, compare: str | None = None, *settings: str, **keys: Any) -> Experiment:
    path = folder / "mine.yaml"
    path.write_text(json.dumps({**FILE, **keys}))
    return changed(str(path), *settings, compare=compare)


@pytest.mark.parametrize("compare", ["best", "my_loss", "wide"])
def test_a_card_from_a_file_is_compared_by_its_key_in_files_and_options(tmp_path: Path, compare: str) -> None:
    by_option = opened(tmp_path, compare)
    assert by_option.primary == PrimaryScore(compare=compare)
    assert opened(tmp_path, primary={"compare": compare}) == by_option
    assert opened(tmp_path, compare, primary={"compare": "triplet"}) == by_option
    assert by_option.rows == ("triplet", "my_loss", "wide")
    score = {"metric": "precision_at_1", "embeddings": "concatenated", "margin": 2.0}
    assert opened(tmp_path, compare, "folds=1", primary=score).primary == PrimaryScore(**{**score, "compare": compare})


def test_misspelt_methods_are_told_before_what_is_compared_with_them() -> None:
    with one_line("unknown method 'tripplet'; did you mean triplet"):
        changed("quickstart", methods="proxy_anchor,tripplet", compare="tripplet")
    with one_line("mine.yml: no such file"):
        changed("quickstart", methods="proxy_anchor,mine.yml", compare="my_loss")


@pytest.mark.parametrize(
    ("compare", "keys", "message"),
    [
        ("my_los", {}, "is no method of this experiment; did you mean my_loss? add it, or use all, best, or"),
        ("my_loss.yaml", {}, "or one of triplet, my_loss, wide"),
        (
            None,
            {"variants": [{"of": "triplet", "key": "best", "title": "Best", "set": {}}]},
            "best: 'compare: best' has another meaning; choose another key for the row",
        ),
        (None, {"primary": {"compare": "wide"}, "with": {"wide": {"embedding_size": 64}}}, "conditions of its own"),
    ],
)
def test_a_comparison_with_no_row_is_refused_in_one_line(
    tmp_path: Path, compare: str | None, keys: dict[str, Any], message: str
) -> None:
    with one_line(message):
        opened(tmp_path, compare, **keys)


def test_paths_are_joined_to_the_folder_of_the_file() -> None:
    content = {
        "methods": ["contrastive", "cards/mine.yaml", "/code/other.yaml", 3],
        "metrics": ["nmi", "./my_metrics.py:spread", "package.module:spread"],
        "variants": [{"of": "cards/mine.yaml", "key": "a"}],
        "sweeps": [{"of": "proxy_anchor"}, {"grid": {}}, "a"],
        "dataset": {"name": "folder", "root": "images", "split": "../halves.csv", "subset": True},
        "seed": 3,
    }
    assert with_paths(content, Path("exp")) == {
        "methods": ["contrastive", "exp/cards/mine.yaml", "/code/other.yaml", 3],
        "metrics": ["nmi", "exp/my_metrics.py:spread", "package.module:spread"],
        "variants": [{"of": "exp/cards/mine.yaml", "key": "a"}],
        "sweeps": [{"of": "proxy_anchor"}, {"grid": {}}, "a"],
        "dataset": {"name": "folder", "root": "exp/images", "split": "exp/../halves.csv", "subset": True},
        "seed": 3,
    }


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/mine")
    content = {
        "dataset": {"root": "~/images"},
        "methods": ["~/cards/mine.yaml"],
        "metrics": ["~/mine.py:spread"],
        "trunk": {"name": "~/net.py:build", "weights": "~/net.pt"},
    }
    assert with_paths(content, Path("exp")) == {
        "dataset": {"root": "/mine/images"},
        "methods": ["/mine/cards/mine.yaml"],
        "metrics": ["/mine/mine.py:spread"],
        "trunk": {"name": "/mine/net.py:build", "weights": "/mine/net.pt"},
    }
    assert with_home(["run", "~/e.yaml", "--store=~/s.sqlite", "cub200=~", "a~/b", "+~/m.yaml,~/n.yaml"]) == [
        *("run", "/mine/e.yaml", "--store=/mine/s.sqlite", "cub200=/mine", "a~/b", "+/mine/m.yaml,/mine/n.yaml")
    ]


def test_the_data_option_gives_a_folder_per_dataset():
    several = {"cub200", "cars196"}
    choices = Choices(data=["cub200=birds", "cars196=cars=old"])
    assert choices.root_of("cub200", several) == Path("birds")
    assert choices.root_of("cars196", several) == Path("cars=old")
    assert choices.root_of("sop", several) is None
    assert Choices(data=["birds"]).root_of("cub200", {"cub200"}) == Path("birds")
    assert Choices().root_of("cub200", {"cub200"}) is None
    with pytest.raises(InputError, match=r"--data birds: name the dataset as in --data cars196=FOLDER --data cub200"):
        Choices(data=["birds"]).root_of("cub200", several)
