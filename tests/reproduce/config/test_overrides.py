"""Options on top of an experiment file, and the panel that suits the size of the images."""

from pathlib import Path

import pytest

from reproduce.commands.options import Choices
from reproduce.config.experiment_file import load_experiments, panels_by_size
from reproduce.errors import InputError
from results.spec.training_spec import ImageSettings
from results.spec.trunk_spec import TrunkSpec
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
