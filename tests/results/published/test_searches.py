"""The optima of MLRC's searches, as its logs have them."""

import pytest

from results.published.searches import mlrc_search_optima
from tests.support.published_files import CARDS, lines


def test_optima_are_those_of_mlrcs_logs():
    cars = mlrc_search_optima("cars196")
    assert len(cars) == 36
    weights = next(one for one in cars if (one.method, one.parameter) == ("normalized_softmax", "temperature"))
    assert (weights.value, weights.as_published) == (0.08863250090946041, "0.0886")
    assert weights.best_map_at_r == 0.236146
    large = next(one for one in mlrc_search_optima("cub200_batch256") if one.method == "fastap")
    assert (large.value, large.as_published) == (86.0, "86")


def test_all_optima_are_there_and_what_is_not_known_is_none():
    optima = [one for name in ("cub200", "cars196", "sop", "cub200_batch256") for one in mlrc_search_optima(name)]
    assert len(optima) == 144
    assert len(lines("mlrc_search_space")) == 143
    unsearched = next(one for one in optima if one.value is None)
    assert (unsearched.method, unsearched.as_published) == ("soft_triple", "N/A")
    assert {one.method for one in optima if one.best_map_at_r is None and one.value is not None} == {"fastap"}
    with pytest.raises(ValueError, match="no search on 'inshop'"):
        mlrc_search_optima("inshop")


def test_mlrcs_optima_are_the_settings_that_the_cards_give():
    for dataset in ("cub200", "cars196", "sop", "cub200_batch256"):
        for one in mlrc_search_optima(dataset):
            card = CARDS[one.method]
            ours = next(name for name, bounds in card["search"].items() if bounds["published_as"] == one.parameter)
            if one.value is not None:
                assert card["published"][dataset][ours] == one.value, (dataset, one.method, one.parameter)
