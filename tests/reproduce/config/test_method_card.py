"""Method cards: the suite's cards have MLRC's settings, and an error in a card gives one line."""

import json
from importlib import resources

import pandas as pd
import pytest

from reproduce.config.method_card import Card, CardRange, card_file, card_names, read_card
from reproduce.config.open_method import load_card, open_card
from tests.support.command_line import one_line

DATASETS = {"CUB200": "cub200", "Cars196": "cars196", "SOP": "sop"}
PUBLISHED = [name for name in card_names() if read_card(card_file(name)).published_as]

with resources.files("results").joinpath("published", "mlrc_search_space.csv").open(encoding="utf-8") as _file:
    SPACE = pd.read_csv(_file)


def printed_rows(card: Card) -> pd.DataFrame:
    rows = SPACE[(SPACE["method"] == card.published_as) & SPACE["dataset"].isin(DATASETS)]
    assert len(rows), f"{card.published_as} is not in the published table"
    return rows


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_card_has_the_search_and_the_optima_of_mlrc(name):
    card = read_card(card_file(name))
    rows, targets = printed_rows(card), {choice.published_as: key for key, choice in card.search.items()}
    classification = {"proxy_nca", "normalized_softmax", "cosface", "arcface", "soft_triple"}
    assert card.method.batch.samples_per_class == (1 if name in classification else 4)
    for printed, dataset in DATASETS.items():
        mine = rows[rows["dataset"] == printed]
        optima = {targets[row.parameter]: row.best_value_full_precision for row in mine.itertuples()}
        assert card.published[dataset] == optima, "full precision of the logs"
        assert open_card(card, dataset).ranges.keys() == optima.keys()
    for row in rows.itertuples():
        dataset = DATASETS[row.dataset]
        for bounds, low, high in (
            ("widened", row.final_lower, row.final_upper),
            ("initial", row.initial_lower, row.initial_upper),
        ):
            space = open_card(card, dataset, bounds).ranges
            parameter = space[targets[row.parameter]]
            assert (parameter.low, parameter.high) == (low, high), (row.dataset, row.parameter, bounds)
            assert parameter.scale == row.scale.removesuffix(" (exhaustive)")


CARD = {
    "title": "Mine",
    "source": "A test",
    "loss": {"name": "TripletMarginLoss", "arguments": {"margin": 0.1}},
    "search": {"loss.margin": {"low": 0.0, "high": 1.0}},
}


SLIPS = {
    "computed embedder beside a loss": ({"embedder": "principal_components"}, "is for cards without a loss"),
    "misspelt loss argument": ({"loss": {"name": "TripletMarginLoss", "arguments": {"margn": 1}}}, "'margn'"),
    "misspelt search target": ({"search": {"loss.margn": {"low": 0, "high": 1}}}, "'margn'"),
    "target below what is no component": ({"search": {"loss.margin.x": {"low": 0, "high": 1}}}, "'loss.margin.x'"),
    "misspelt fixed parameter": ({"fixed": {"sop": {"loss.margn": 0.2}}}, "'margn'"),
    "fixed to what is no number": ({"fixed": {"sop": {"loss_optimizer.lr": "fast"}}}, "loss_optimizer.lr"),
    "unknown loss class": ({"loss": {"name": "TripletLos"}, "search": {}}, "'TripletLos'"),
    "unknown key": ({"serch": {}}, "'serch'"),
    "title that no table holds": ({"title": "x" * 10_000}, "key 'title': string should have at most 200 characters"),
    "missing loss": ({"loss": ...}, "'loss' is missing"),
    "bounds the wrong way round": ({"search": {"loss.margin": {"low": 1, "high": 0}}}, "low < high"),
    "choice of nothing": ({"search": {"loss.margin": {"scale": "choice"}}}, "choices"),
    "search without a loss": ({"loss": None}, "method 'mine' has no hyperparameter 'loss.margin'"),
    "embedder that nothing computes": ({"loss": None, "search": {}, "embedder": {}}, "init: random is no closed form"),
    "shrinkage of no covariance": ({"embedder": {"init": "pca", "shrinkage": 0.5}}, "no effect with init: pca"),
    "key unlike the file's name": ({"key": "yours"}, "key 'yours' must be the file's name 'mine'; leave"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_an_error_in_a_card_gives_one_line_with_file_and_key(tmp_path, slip):
    changes, said = SLIPS[slip]
    path = tmp_path / "mine.yaml"
    content = {key: value for key, value in {**CARD, **changes}.items() if value is not ...}
    path.write_text(json.dumps(content))
    with one_line(said, str(path)):
        load_card(str(path))


@pytest.mark.parametrize(
    ("dataset", "bounds", "expected"),
    [("a", "widened", (0, 9)), ("a", "initial", (0, 2)), ("b", "widened", (0, 1)), ("b", "initial", (0, 1))],
)
def test_a_dataset_with_separate_bounds_replaces_the_general_range(dataset, bounds, expected):
    choice = CardRange(low=0, high=1, datasets={"a": {"low": 0, "high": 9}}, initial={"a": {"low": 0, "high": 2}})
    assert choice.on(dataset, bounds).ends == expected
