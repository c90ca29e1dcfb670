"""The names of datasets, trunks, metrics and methods are checked before an experiment is opened."""

import json
from importlib.util import find_spec

import pytest

from reproduce.config.experiment_file import experiment_names, load_experiments
from reproduce.config.strict_yaml import read_yaml
from reproduce.errors import InputError
from reproduce.run.open_sessions import checked
from tests.support.command_line import TINY, one_line, refused

RGB = {"channels": "RGB", "mean": [0.5, 0.5, 0.5], "std": [1, 1, 1]}
WRONG = [
    ({"dataset": {"name": "birds"}}, "key 'dataset': unknown dataset 'birds'; known are cars196, cub200"),
    ({"trunk": {"name": "resnet", "weights": "random"}}, "key 'trunk': unknown trunk 'resnet'; known are"),
    ({"trunk": {"name": "small_conv", "weights": "imagenet"}}, "key 'trunk': trunk small_conv: no weights 'imagenet'"),
    (
        {"trunk": {"name": "small_conv", "weights": "random", "input_format": RGB}},
        "key 'trunk': trunk small_conv takes grey images; its input_format has RGB",
    ),
    ({"metrics": ["nmi", "recal@2"]}, "key 'metrics': metric 'recal@2' is not known; known are recall@K"),
    ({"metrics": ["nmi", "nmi"]}, "key 'metrics': metric 'nmi' is named twice"),
]


def test_every_name_in_the_suites_files_is_known():
    for file in experiment_names():
        for name, experiment in load_experiments(file, {}).items():
            if experiment.conditions.trunk.name.startswith("timm:") and find_spec("timm") is None:
                with pytest.raises(InputError, match=r"needs the package timm: pip install -e '\.\[timm\]'"):
                    checked(name, experiment)
            else:
                assert checked(name, experiment) == experiment


@pytest.mark.parametrize(("changes", "said"), WRONG)
def test_an_unknown_name_gives_one_line_with_experiment_and_key(tmp_path, changes, said):
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps({**read_yaml(TINY), **changes}))
    (experiment,) = load_experiments(str(path), {}).values()
    with one_line(f"mine: {said}"):
        checked("mine", experiment)


def test_a_wrong_name_in_the_last_panel_is_reported_before_the_first_panel_is_opened(say, tmp_path):
    panels = {"first": {}, "last": {"metrics": ["recal@2"]}}
    (tmp_path / "mine.yaml").write_text(json.dumps({**read_yaml(TINY), "panels": panels}))
    answer = say("run", "mine.yaml")
    assert answer.out == ""
    refused(answer, "mine/last: key 'metrics'")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


def test_a_folder_for_an_embedded_dataset_is_refused(say):
    line = "--data my_images: glyphs is embedded and reads no folder; leave --data out, or run"
    refused(say("plan", "quickstart", "--data", "my_images"), line)


def test_cards_that_differ_only_in_searched_values_are_named(say, tmp_path):
    """A second version of a loss with another scale, where the scale is searched, would get the same scores."""
    assert say("new", "method", "own_scale", "--kind", "proxy").code == 0
    card = (tmp_path / "own_scale.yaml").read_text()
    (tmp_path / "second.yaml").write_text(card.replace("scale: 16.0", "scale: 30.0"))
    (tmp_path / "third.yaml").write_text(card.replace("samples_per_class: 1", "samples_per_class: 2"))
    command = ("plan", "quickstart", "--methods", "own_scale.yaml,second.yaml,third.yaml")
    assert "note: own_scale and second are one method: their cards differ at most in values" in say(*command).out
    assert "are one method" not in say(*command, "--trials", "0").out


def test_ranges_of_a_method_that_is_not_searched_are_named(say):
    ranges = "search.ranges={contrastiv: {loss.neg_margin: {low: 0, high: 1}}}"
    said = say("plan", "quickstart", "--set", ranges).out
    assert "note: search.ranges: contrastiv is no searched method here" in said
