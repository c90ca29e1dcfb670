"""Where spaces are to be equal, every loss searches its batches, and a loss around another what that one searches."""

import pytest

from reproduce.config.experiment_file import load_experiments
from reproduce.config.method_card import card_file, card_names, read_card
from reproduce.config.open_method import open_method
from results.spec.method import BATCHES, LOSS_LR


def opened(name, **search):
    overrides = {f"search.{key}": value for key, value in search.items()}
    (experiment,) = load_experiments("reality_check/2026_glyphs_to_the_end", overrides).values()
    return open_method(experiment, read_card(card_file(name))).ranges


def test_losses_with_proxies_search_one_image_of_a_class_too():
    assert opened("proxy_anchor")[BATCHES].choices == (1, 2, 4)
    assert opened("contrastive")[BATCHES].choices == (2, 4)
    assert opened("margin")[BATCHES].choices == (2, 4), "it trains a margin, and needs pairs of a class"
    assert BATCHES not in opened("proxy_anchor", equal_spaces=False)
    assert BATCHES not in opened("within_class_whitening"), "nothing is drawn"


@pytest.mark.parametrize("name", [name for name in card_names() if read_card(card_file(name)).search_of_base])
def test_a_loss_around_another_searches_what_that_one_searches(name):
    ranges = opened(name)
    arguments = read_card(card_file(name)).method.loss.arguments
    base = str(arguments.get("base_loss", arguments.get("base")))
    known = read_card(card_file(base)).search if base in card_names() and base != "proxy_nca" else {}
    assert {key for key in known if key != LOSS_LR} <= ranges.keys()
    for key in known.keys() - {LOSS_LR}:
        assert ranges[key].ends == known[key].on("glyphs", "widened").whole(32).ends
    assert read_card(card_file(name)).search.keys() < ranges.keys()


def test_every_loss_around_another_says_what_that_one_searches():
    for name in card_names():
        card = read_card(card_file(name))
        arguments = card.method.loss.arguments if card.method.loss else {}
        base = arguments.get("base_loss", arguments.get("base"))
        if isinstance(base, str) and base in card_names() and base != "proxy_nca":
            own = {*card.search, *card.search_of_base, LOSS_LR}
            assert read_card(card_file(base)).search.keys() <= own, name
