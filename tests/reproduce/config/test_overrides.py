"""Options on top of an experiment file, and the panel that suits the size of the images."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from reproduce.commands.options import Choices
from reproduce.config.experiment_file import load_experiments, panels_by_size
from reproduce.errors import InputError
from results.spec.experiment_spec import Experiment, PrimaryScore
from results.spec.training_spec import ImageSettings
from results.spec.trunk_spec import TrunkSpec
from results.statistics.primary_comparison import planned_score
from tests.support.experiment_files import load_experiment


def test_options_set_the_trunk_and_the_training() -> None:
    choices = Choices(trunk="resnet50", epochs=3, lr=0.01, batch_size=8, embedding_size=16)
    experiment = load_experiment("quickstart", choices.overrides())
    assert experiment.trunk == TrunkSpec(name="resnet50")
    assert experiment.training.max_epochs == 3
    assert experiment.training.optimizer.lr == 0.01
    assert experiment.training.optimizer.name == "Adam"
    assert experiment.training.batch_size == 8
    assert experiment.embedding_size == 16


def test_the_trunk_without_published_weights_starts_at_random() -> None:
    experiment = load_experiment("folder", Choices(trunk="small_conv").overrides())
    assert experiment.trunk == TrunkSpec(name="small_conv", weights="random")


def test_a_frozen_trunk_takes_back_what_has_no_effect_then() -> None:
    experiment = load_experiment("quickstart", Choices(trunk="resnet50", frozen=True).overrides())
    assert experiment.trunk == TrunkSpec(name="resnet50", frozen=True)
    assert experiment.images == ImageSettings(resize=None, crop=32)
    assert load_experiment("folder_small/frozen_features", Choices(trunk="resnet50").overrides()).trunk.frozen


def test_metrics_come_behind_those_of_the_file() -> None:
    given = Choices(metrics="recall@4, nmi,./mine.py:spread").overrides()
    assert load_experiment("quickstart", given).metrics == ("recall@4", "nmi", "./mine.py:spread")
    of_file = load_experiments("nir_table1", {})
    for name, experiment in load_experiments("nir_table1", given).items():
        assert experiment.metrics == (*of_file[name].metrics, "recall@4", "./mine.py:spread"), "each of them once"


def test_methods_stand_in_place_of_those_of_the_file_or_beside_them() -> None:
    of_file = load_experiment("quickstart", {}).methods
    assert load_experiment("quickstart", Choices(methods="triplet").overrides()).methods == ("triplet",)
    beside = Choices(methods="+triplet,contrastive,./mine.yaml").overrides()
    assert load_experiment("quickstart", beside).methods == (*of_file, "triplet", "./mine.yaml"), "each of them once"
    signed = Choices(methods="+triplet,+./mine.yaml").overrides()
    assert load_experiment("quickstart", signed).methods == (*of_file, "triplet", "./mine.yaml")


def test_no_option_changes_nothing() -> None:
    assert load_experiment("mlrc_cub200", Choices().overrides()) == load_experiment("mlrc_cub200", {})


def test_a_frozen_trunk_without_weights_is_refused() -> None:
    with pytest.raises(InputError, match="a frozen trunk needs trained weights"):
        load_experiment("quickstart", Choices(frozen=True).overrides())


def test_the_panels_of_folder_small_cover_all_sizes_once() -> None:
    limits = panels_by_size("folder_small")
    assert limits.keys() == load_experiments("folder_small", {}).keys()
    *bounded, last = limits.values()
    assert last is None
    assert bounded == sorted(limit for limit in bounded if limit is not None)
    assert panels_by_size("folder_small/small_network") == {}
    assert panels_by_size("quickstart") == {}


def test_sizes_are_for_panels_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("title: T\npanels: {a: {}}\npanel_by_image_size: {b: 3}\n")
    with pytest.raises(InputError, match="must give a size, or null, for panels of the file"):
        panels_by_size(str(path))


FILE = {
    "title": "T",
    "dataset": {"name": "glyphs"},
    "methods": ["triplet", "mine/my_loss.yaml"],
    "variants": [{"of": "triplet", "key": "wide", "title": "Wide", "set": {"loss.margin": 1.0}}],
    "trunk": {"name": "small_conv", "weights": "random"},
}


def opened(folder: Path, given: dict[str, Any], **changes: Any) -> Experiment:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**FILE, **changes}))
    return load_experiment(str(path), Choices(**given).overrides())


@pytest.mark.parametrize("compare", ["all", "best", "triplet", "my_loss", "wide"])
def test_a_card_from_a_file_is_compared_by_its_key_in_files_and_options(tmp_path: Path, compare: str) -> None:
    by_option = opened(tmp_path, {"compare": compare})
    assert by_option.primary == PrimaryScore(compare=compare)
    assert opened(tmp_path, {}, primary={"compare": compare}) == by_option
    assert opened(tmp_path, {"compare": compare}, primary={"compare": "triplet"}) == by_option
    assert by_option.rows == ("triplet", "my_loss", "wide")


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        ({"folds": 1}, {}),
        ({}, {"folds": 1}),
        ({}, {"protocol": "standard", "search": {"trials": 0}}),
        ({}, {"split": "conventional"}),
    ],
)
def test_a_comparison_is_in_the_embeddings_that_a_run_has(
    tmp_path: Path, given: dict[str, Any], changes: dict[str, Any]
) -> None:
    for with_compare in (
        opened(tmp_path, {"compare": "best", **given}, **changes),
        opened(tmp_path, given, **changes, primary={"compare": "best"}),
    ):
        assert with_compare.primary is not None
        assert with_compare.primary.embeddings == planned_score(opened(tmp_path, given, **changes)).embeddings
        assert with_compare.primary.embeddings == "separated"


def test_the_comparison_keeps_the_score_of_the_file(tmp_path: Path) -> None:
    score = {"metric": "precision_at_1", "embeddings": "concatenated", "margin": 2.0}
    assert opened(tmp_path, {"compare": "best", "folds": 1}, primary=score).primary == PrimaryScore(
        metric="precision_at_1", margin=2.0, compare="best"
    )


@pytest.mark.parametrize(
    ("given", "changes", "message"),
    [
        (
            {"compare": "my_los"},
            {},
            "primary: compare: my_los is no method of this experiment; add it, or use all, best, or",
        ),
        ({"compare": "my_loss.yaml"}, {}, "or one of triplet, my_loss, wide"),
        (
            {"methods": "triplet,cosface"},
            {"primary": {"compare": "my_loss"}},
            r"my_loss is no method of this experiment; add",
        ),
        (
            {},
            {"primary": {"compare": "wide"}, "with": {"wide": {"embedding_size": 64}}},
            "wide has conditions of its own",
        ),
    ],
)
def test_a_comparison_with_no_row_is_refused_in_one_line(
    tmp_path: Path, given: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        opened(tmp_path, given, **changes)
    assert "\n" not in str(error.value)
