"""A method that its card leaves at a disadvantage beside the others is named, and no other."""

import pytest

from results.findings.handicaps import handicaps
from results.spec.recipe import BATCHES, LOSS_LR, Recipe
from results.spec.search_settings import SearchedRange
from tests.support.sample_records import some_summary

PROXIES = Recipe(samples_per_class=1, parameters="proxies", loss_lr=0.01, searched=(LOSS_LR, "loss.scale"))
PAIRS = Recipe(samples_per_class=4, searched=("loss.margin",))


def found(*others: Recipe, **changes: object) -> list[str]:
    rows = {"mine": PROXIES.model_copy(update=changes), **{f"other_{n}": one for n, one in enumerate(others)}}
    summary = some_summary(methods={key: key.capitalize() for key in rows}, recipes=rows)
    return [finding.sentences for finding in handicaps(summary)]


RATES = "Learning rates of a loss's own parameters that are not searched: Mine "
BATCH = "Losses with proxies whose batches hold several images of a class: Mine 4."


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"searched": ("loss.scale",)}, f"{RATES}0.01. Those of 1 other method are searched (loss_optimizer.lr)."),
        ({"searched": (), "loss_lr": None}, f"{RATES}that of the network. Those of 1 other method are searched"),
        ({"samples_per_class": 4}, f"{BATCH} Those of 1 other method hold one, and so more classes (batch.sampl"),
        ({"fixed": {"margin": 0.5, "m": 2}}, "Arguments of losses that are not searched: Mine margin 0.5, m 2."),
        ({"falls": False}, "Losses that do not fall while random embeddings are trained with them: Mine. What "),
    ],
)
def test_each_kind_is_named_with_the_row(changes: dict[str, object], said: str) -> None:
    (text,) = found(PROXIES, PAIRS, **changes)
    assert text.startswith(said)


def test_nothing_is_said_where_no_row_is_behind() -> None:
    assert found(PROXIES, PAIRS, falls=True) == []
    assert found(PAIRS, samples_per_class=4) == [], "no other method has proxies"
    assert found(PROXIES, searched=(LOSS_LR, BATCHES), samples_per_class=4) == []
    unsearched = PROXIES.model_copy(update={"searched": ()})
    assert found(unsearched, searched=(), fixed={"margin": 0.5}) == [], "nobody searches"
    several = PROXIES.model_copy(update={"samples_per_class": 4})
    assert found(PROXIES, several, samples_per_class=4) == [], "most have several"


def test_rows_that_are_not_compared_do_not_count() -> None:
    rows = {"mine": PROXIES.model_copy(update={"samples_per_class": 4}), "mine_default": PROXIES}
    summary = some_summary(methods=dict.fromkeys(rows, "M"), recipes=rows, defaults={"mine_default": "mine"})
    assert list(handicaps(summary)) == []


def test_a_recipe_in_words_says_what_is_searched_and_what_is_fixed() -> None:
    words = PROXIES.model_copy(update={"fixed": {"margin": 0.5}, "warmup_passes": 1}).words()
    searched = f"2: {LOSS_LR}, scale"
    assert list(words.values()) == ["1", "proxies", "searched", searched, "margin 0.5", "1 pass"]
    ranges = {LOSS_LR: SearchedRange(scale="log", low=1e-6, high=1.0)}
    assert PROXIES.words(ranges)["learning rate of these"] == "searched, 1e-06 to 1"
    drawn = Recipe(samples_per_class=0, parameters="others", loss_lr=0.5, warmup_steps=7).words()
    assert list(drawn.values()) == ["drawn at random", "parameters", "0.5", "-", "-", "7 steps"]
