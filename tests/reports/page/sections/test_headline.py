"""The headline, in each of its forms."""

import numpy as np
import pytest

from reports.page.material import Material
from reports.page.sections.headline import headline, missing_units
from results.store.experiment_results import MeasuredExperiment
from tests.support.page_material import A, B, comparing, material, searched, values
from tests.support.published_world import MLRC

CLEAR = {"a": (30.0, 30.6, 30.3), "b": (29.1, 29.5, 29.0), "c": (27.9, 28.4, 28.6)}
PARTLY = {"a": (30.0, 30.6, 30.3), "b": (29.9, 30.5, 30.1), "c": (27.9, 28.4, 28.6)}
METHODS = {"methods": ["a", "b", "c"]}
STEPS = np.array([-1, 0, 1, 0, 1, -1, 0, 1, -1, 0]) * 0.01
NOISY = [0.58, 0.63, 0.60, 0.59]


def compared(how):
    return comparing(how, {**MLRC, **METHODS})


def kept(name):
    return Material(name, MeasuredExperiment.kept(name))


def test_better_than_every_other_method():
    lead = "its lead over the next is 1.1 points (0.4 to 1.8)."
    assert headline(searched(**CLEAR)) == f"Over 3 searches each, A is better than every other method; {lead}"
    assert headline(searched(settings=compared("best"), **CLEAR)) == headline(searched(**CLEAR))
    two = headline(searched(a=CLEAR["a"], c=CLEAR["c"]))
    assert two.startswith("Over 3 searches each, A is better than C; its lead is 2.0 points (")


def test_better_than_some():
    assert headline(searched(**PARTLY)) == (
        "A has the highest mean over 3 searches and is better than 1 of 2 others; from B it cannot be told apart."
    )


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("a", "Over 3 searches each, A is better than every other method; its lead over the next is 1.1 points ("),
        ("b", "Over 3 searches each, B is better than 1 of 2 others and worse than A."),
        ("c", "Over 3 searches each, C is worse than A and B."),
    ],
)
def test_a_named_method_is_the_subject(named, sentence):
    assert headline(searched(settings=compared(named), **CLEAR)).startswith(sentence)


def test_nothing_told_apart_names_what_can_be_missed():
    close = {"a": (30, 31, 32), "b": (29, 31.5, 32), "c": (29, 31, 32)}
    world = searched(**close)
    missed = f"and a true difference of less than {100 * world.budget.smallest:.1f} points can easily be missed."
    assert headline(world) == (
        "Over 3 searches each, no method is better than another as far as 3 searches can tell; A has the highest mean "
        f"(31.0), {missed}"
    )
    best, named = (headline(searched(settings=compared(how), **close)) for how in ("best", "c"))
    assert "A has the highest mean (31.0), but is not better than any other method as far as 3 searches can" in best
    assert "C is not better or worse than any other method as far as 3 searches can tell" in named


def test_equality_within_the_margin():
    equal = {"a": tuple(40 + STEPS[:5]), "b": tuple(40.01 + STEPS[5:])}
    assert headline(searched(searches=5, **equal)) == "B and A are equal within 0.5 points over 5 searches each."
    same = dict.fromkeys("abc", equal["a"])
    every = headline(searched(searches=5, settings=compared("b"), **same))
    assert every == "B and every other method are equal within 0.5 points over 5 searches each."


def test_a_lead_is_small_only_where_that_is_claimed():
    small = {"a": tuple(40 + STEPS[:5]), "b": tuple(39.9 + STEPS[5:])}
    assert headline(searched(searches=5, **small)).endswith(
        "A is better than B; its lead is 0.1 points (0.1 to 0.1), within the margin of 0.5 points."
    )
    assert "margin" not in headline(searched(**CLEAR))


def test_while_searches_are_missing_nothing_is_claimed():
    world = searched(a=CLEAR["a"][:2], b=CLEAR["b"][:2], c=CLEAR["c"][:1])
    assert headline(world) == (
        "Interim: 2 of 3 searches of A and B are complete, C has 1. Nothing is claimed before all are; so far A has "
        "the highest mean."
    )
    assert missing_units(world)["c"].text == "1 of 3 searches"
    planned = searched(titles={"a": "A", "b": "B", "never": "Never run"}, a=CLEAR["a"], b=CLEAR["b"])
    assert headline(planned).startswith("Interim: 0 of 3 searches of Never run are complete. Nothing is claimed")
    unfinished = searched(reproductions=2, **CLEAR)
    half = [record for record in unfinished.measured.records if record.run == 0]
    started = Material("half", MeasuredExperiment(unfinished.measured.summary, tuple(half)))
    assert headline(started) == "Interim: no search is complete yet. Nothing is claimed before all are."


def test_given_settings_are_compared_by_runs():
    claims = {
        "With the given settings, over 4 runs each, A is better than B; its lead is 2.5 points (2.3 to 2.8).": {
            "a": A,
            "b": B,
        },
        "With the given settings, A has the highest mean over 4 runs and is better than 1 of 2 others; from C it "
        "cannot be told apart.": {"a": A, "b": B, "c": NOISY},
        "With the given settings, A has the highest mean (17.5). Single runs tell no methods apart.": {
            "a": A[:1],
            "b": B[:1],
        },
    }
    for sentence, runs in claims.items():
        assert headline(material(values(**runs), reproductions=len(runs["a"]))) == sentence
    assert headline(material(values(a=A, b=B[:2]))).startswith("Interim: 2 of 4 runs of B are complete. Nothing")


def test_single_searches_without_a_record_compare_settings():
    assert headline(kept("quickstart_one_search")) == (
        "Normalized Softmax has the highest mean (39.5). How far two searches of this size differ is not known here; "
        "the table compares the settings that were found, not the methods. Three searches of each would say."
    )


def test_single_searches_with_a_record_say_how_far_searches_differ():
    world = material(values(a=A, b=B), trials=10)
    assert headline(world) == (
        "With the settings that one search of 10 trials found, A has the highest mean (17.6); searches of one method "
        "(10 trials each) differed by 2.2 points typically and by up to 5.3, more than its lead of 2.5: this does not "
        "say that it is the better method."
    )
    frozen = headline(kept("mlrc_frozen_cub200_subset"))
    assert "has the highest mean (29.5) and is better than 1 of 20 others; from 19 others it cannot be told" in frozen
    assert "(20 trials each) differed by 0.9 points typically and by up to 4.1, more than its lead of 0.1." in frozen


def test_a_lead_beyond_the_record_is_one_of_the_method():
    assert headline(material(values(a=[x + 1.2 for x in A], b=B), trials=10)) == (
        "A is better than B on glyphs at 10 trials: it leads by 32.5 points, more than the chance of the search "
        "explains even if searches vary twice as much as the recorded ones (1.6 points)."
    )


def test_a_score_that_is_not_a_number_does_not_lead():
    nan = float("nan")
    assert headline(searched(a=(nan, 30, 31), b=CLEAR["a"], c=(20.9, 21.4, 21.6))) == (
        "B has the highest mean over 3 searches and is better than 1 of 2 others; it was not tested against A."
    )
    assert headline(searched(a=(nan, 30, 31), b=CLEAR["b"], c=CLEAR["c"])).endswith("missed. A was not tested.")
    assert headline(searched(a=(nan,) * 3, b=(nan,) * 3)) == "No method has a score that is a number."


def test_one_method_is_compared_with_nothing():
    assert headline(material(values(a=A))) == "A is the only method. There is nothing to compare it with."
    settings = {**MLRC, "dataset": {"name": "glyphs"}, "methods": ["a", "b"], "with": {"b": {"embedding_size": 64}}}
    assert headline(material(values(a=A, b=B), settings=settings)) == (
        "A is the only method under the common conditions. There is nothing to compare it with. "
        "1 row is under other conditions and not compared."
    )
    assert headline(material(values(b=B), titles={"a": "A", "b": "B"}, settings=settings)) == (
        "No method has runs under the common conditions, so nothing is compared."
    )
    assert headline(material({"a": []})) == "Nothing was run yet."


def test_many_methods_are_counted_and_titles_with_commas_are_kept_apart():
    titles = {"a": "A, cosine", "b": "B", "c": "C"}
    assert headline(searched(titles=titles, settings=compared("c"), **CLEAR)).endswith(
        "C is worse than A, cosine; and B."
    )
    many = {name: (30.2, 31.4, 30.1 + 0.01 * n) for n, name in enumerate("acdef")}
    assert "; from 4 others it cannot be told apart." in headline(searched(b=(10.0, 10.2, 10.1), **many))
