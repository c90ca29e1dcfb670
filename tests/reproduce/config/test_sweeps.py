"""Sweeps of experiment files, and conditions of rows as files give them."""

import json

import pytest

from reproduce.config.experiment_file import load_experiments
from reproduce.config.strict_yaml import read_yaml
from reproduce.errors import InputError
from tests.support.command_line import TINY, one_line

TINY_FILE = read_yaml(TINY)


@pytest.fixture
def load(tmp_path):
    def load_file(**changes):
        path = tmp_path / "tiny.yaml"
        path.write_text(json.dumps({**TINY_FILE, **changes}))
        return load_experiments(str(path), {})["tiny"]

    return load_file


def test_a_sweep_has_a_variant_for_each_combination(load):
    sweep = {
        "of": "proxy_anchor",
        "set": {"batch.samples_per_class": 0},
        "grid": {"loss.alpha": [4, 32], "loss.margin": [0.0, 0.1]},
        "with": {"embedding_size": [8, 16]},
        "reading": True,
    }
    experiment = load(sweeps=[sweep], variants=[{"of": "triplet", "key": "hard", "title": "Hard", "set": {}}])
    assert len(experiment.variants) == 1 + 8
    variant = experiment.variants[1]
    assert variant.key == "proxy_anchor__loss.alpha_4__loss.margin_0.0__embedding_size_8"
    assert variant.title == "Proxy-Anchor, loss.alpha 4, loss.margin 0.0, embedding_size 8"
    assert variant.set == {"batch.samples_per_class": 0, "loss.alpha": 4, "loss.margin": 0.0}
    assert [one.reading for one in experiment.variants] == [False] + [True] * 8
    sizes = [experiment.for_row(variant.key).conditions.embedding_size for variant in experiment.variants[1:]]
    assert sizes == [8, 16] * 4
    assert len(experiment.comparable_rows()) == len(TINY_FILE["methods"]) + 1 + 4, "16 is the experiment's own size"


def test_panels_share_conditions_sweeps_and_settings_for_rows_of_one_of_them(tmp_path):
    content = {
        **TINY_FILE,
        "with": {"contrastive": {"training.batch_size": 8}},
        "sweeps": [{"of": "triplet", "grid": {"loss.margin": [0.1]}}],
        "panels": {"a": {}, "b": {"with": {"contrastive": {"embedding_size": 8}}, "sweeps": []}},
    }
    path = tmp_path / "both.yaml"
    path.write_text(json.dumps(content))
    content["settings"] = {"mine": {"loss.pos_margin": 0.1}}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"panels\.a: settings: there is no row 'mine'"):
        load_experiments(str(path), {})
    content["panels"]["b"]["variants"] = [{"of": "contrastive", "key": "mine", "title": "M", "set": {}}]
    path.write_text(json.dumps(content))
    a, b = load_experiments(str(path), {}).values()
    assert [variant.key for variant in a.variants] == ["triplet__loss.margin_0.1"]
    assert [variant.key for variant in b.variants] == ["mine"]
    of_row = b.for_row("contrastive").conditions
    assert of_row.embedding_size == of_row.training.batch_size == 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sweeps": [{"of": "triplet"}]}, "sweeps.0: varies nothing; give values in `grid` or `with`"),
        ({"sweeps": [{"of": "triplet", "grid": {"loss.margin": []}}]}, "sweeps.0: varies nothing; give values in"),
        ({"sweeps": [None]}, "sweeps.0: needs keys and values, as in {key: value}, found nothing; fill it in"),
        ({"sweeps": [{"of": "triplet", "grid": {"loss.margin": 3}}]}, "sweeps.0: key 'grid.loss.margin'"),
        ({"sweeps": {"of": "triplet"}}, "sweeps must be a list"),
        ({"sweeps": [{"of": "triplets", "grid": {"loss.margin": [3]}}]}, "unknown method 'triplets'"),
        ({"with": {"triplet": {"embedding_size": 8}}}, "with: there is no row 'triplet'; the rows are"),
        ({"settings": {"contrastve": {"loss.pos_margin": 0.1}}}, "settings: there is no row 'contrastve'; the rows"),
        ({"search": {"ranges": {"contrastve": {}}}}, "search.ranges: there is no row 'contrastve'; the rows are"),
        (
            {"contrasts": [{"title": "t", "a": ["contrastve"], "b": ["pfml"]}]},
            "contrasts: there is no row 'contrastve'",
        ),
        ({"contrasts": [{"title": "t", "a": ["pfml"], "b": []}]}, "key 'contrasts.0.b'"),
        ({"with": {"contrastive": {"seed": 8}}}, "with.contrastive: a row cannot have its own 'seed'"),
        ({"with": {"contrastive": {"training.batch_sise": 4}}}, "unknown key 'training.batch_sise'"),
    ],
)
def test_errors_are_one_line_with_the_place(load, changes, message):
    with one_line(message):
        load(**changes)
