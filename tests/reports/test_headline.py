"""The headline, in each of its forms: winners first, and no more than the comparison claims."""

import textwrap
from dataclasses import replace

import numpy as np
import pytest

from reports import headline as headlines
from reports.headline import comparison_lines, headline, short_table
from reports.page import page
from reports.sentences import sentences
from reports.tables.result_table import table_of
from reports.tables.table import Cell, Column, chosen
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.page_material import A, B, comparing, material, searched, values
from tests.support.published_world import MLRC

CLEAR = {"a": (30.0, 30.6, 30.3), "b": (29.1, 29.5, 29.0), "c": (27.9, 28.4, 28.6)}
PARTLY = {"a": (30.0, 30.6, 30.3), "b": (29.9, 30.5, 30.1), "c": (27.9, 28.4, 28.6)}
STEPS = np.array([-1, 0, 1, 0, 1, -1, 0, 1, -1, 0]) * 0.01


def few_trials(**world):
    """No record speaks for searches of nine trials, so no claim has the mark of a lucky deviation."""
    return searched(trials=9, **world)


def of_searches(compare="all", searches=3, titles=None, **means):
    settings = comparing(compare, {**MLRC, "methods": ["a", "b", "c"]})
    return headline(few_trials(settings=settings, searches=searches, titles=titles, **means).answer)


def of_runs(settings=None, titles=None, trials=0, reproductions=4, **runs):
    return headline(
        material(values(**runs), titles, settings=settings, trials=trials, reproductions=reproductions).answer
    )


def test_the_winner_comes_first_with_its_lead():
    assert of_searches(a=CLEAR["a"], c=CLEAR["c"]) == "A beats C by 2.0 ± 0.9 points of MAP@R."
    assert of_searches(**CLEAR) == "A beats every other method, the next, B, by 1.1 ± 0.7 points of MAP@R."
    assert of_searches("best", **CLEAR) == "A beats every other method, the next, B, by 1.1 ± 0.7 points of MAP@R."
    assert of_runs(a=A, b=B) == "A beats B by 2.5 ± 0.2 points of MAP@R at the given settings."


def test_some_methods_alone_are_not_called_every_other_one():
    means = {"a": (60, 60.5, 60.3), "b": (50, 50.5, 50.3), "c": (40, 40.5, 40.3), "d": (30, 30.5, 30.3)}
    found, to_best = (few_trials(settings=comparing(compare), **means).answer for compare in ("all", "best"))
    assert headline(found.about({"b", "c", "d"})) == "B beats C and D."
    assert headline(to_best.about({"a", "c", "d"})) == "A beats C and D."
    without = to_best.about({"b", "c"})
    assert without.reference == "a"
    assert headline(without) == "B 50.3, C 40.3: no pair of these was asked for."
    assert sentences(without)[0] == f"Compared in concatenated MAP@R: {headline(without)}"


def test_what_cannot_be_told_follows():
    assert of_searches(**PARTLY) == (
        "A beats C by 2.0 ± 0.8 points of MAP@R. It cannot be told from B (1.3 points would have shown)."
    )


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("b", "A beats B by 1.1 ± 0.7 points of MAP@R. B beats C by 0.9 ± 0.8 points."),
        ("c", "A and B beat C, by up to 2.0 ± 0.8 points of MAP@R."),
    ],
)
def test_a_named_method_is_compared_with_each_other_one(named, sentence):
    assert of_searches(named, **CLEAR) == sentence


def test_pairs_are_named_where_the_highest_mean_beats_none():
    steps = np.array([-1.5, -0.5, 0.5, 1.5])
    means = {"a": (31, 44, 60, 62), "b": 47.5 + steps, "c": 27 + steps, "d": 45 + steps}
    assert headline(searched(searches=4, **means).answer) == "B beats C; D beats C."
    more = means | {f"e{number}": means["d"] for number in range(4)}
    assert headline(searched(searches=4, **more).answer) == "6 of 28 pairs differ; A has the highest mean."


def test_nothing_told_apart_gives_the_means_and_what_would_be_seen():
    close = {"a": (30, 31, 32), "b": (29, 31.5, 32)}
    assert of_searches(**close) == (
        "Cannot tell yet: A 31.0, B 30.8. They are 0.2 points apart; a difference of 5.4 points would have shown."
    )
    assert of_searches(searches=2, a=(30, 50), b=(10, 40)).endswith(
        "15.0 points apart; no difference could have shown with 2 searches of each."
    )
    assert of_runs(a=A[:1], b=B[:1], reproductions=1) == (
        "Cannot tell yet: A 17.5, B 15.0. Three runs of each would say more."
    )
    kept = headline(answer_of(MeasuredExperiment.kept("quickstart_one_search")))
    assert kept.startswith("Cannot tell yet: Normalized Softmax 39.5, Proxy-Anchor 38.5 ")
    assert kept.endswith(" and 3 others. Three searches of each would say more.")


def test_equality_within_the_margin_is_claimed_only_for_all():
    equal = {"a": tuple(40 + STEPS[:5]), "b": tuple(40.01 + STEPS[5:])}
    assert of_searches(searches=5, **equal) == "B and A are equal within 0.5 points."
    assert "within" not in of_searches(**CLEAR)


def test_while_searches_or_runs_are_missing_nothing_is_claimed():
    assert of_searches(a=CLEAR["a"], b=CLEAR["b"], c=CLEAR["c"][:1]) == (
        "Interim: A 30.3, B 29.2, C 27.9. Nothing is claimed before all searches and runs are there."
    )
    assert of_runs(a=A, b=B[:2]).startswith("Interim: A 17.6, B 15.2. ")
    unfinished = searched(reproductions=2, **CLEAR).measured
    half = [record for record in unfinished.records if record.run == 0]
    assert (
        headline(answer_of(MeasuredExperiment(unfinished.plan, tuple(half)))) == "Interim: no search is complete yet."
    )


def test_claims_of_single_searches_say_so():
    assert of_runs(trials=10, a=A, b=B).startswith(
        "Cannot tell yet: A 17.6, B 15.1. They are 2.5 points apart; a difference of "
    )
    far = of_runs(trials=10, a=[x + 1.2 for x in A], b=B)
    assert far.startswith("A beats B by 32.5 ± ")
    assert far.endswith(", with one search of each.")


def test_one_method_is_compared_with_nothing():
    assert of_runs(a=A) == "A 17.6: there is no other method to compare it with."
    apart = {**MLRC, "dataset": {"name": "glyphs"}, "methods": ["a", "b"], "with": {"b": {"embedding_size": 64}}}
    assert of_runs(apart, a=A, b=B) == "A 17.6: there is no other method to compare it with."
    assert of_runs(apart, {"a": "A", "b": "B"}, b=B) == "No method has runs under the common conditions."
    assert headline(material({"a": []}).answer) == "No run is complete yet."


def test_titles_with_commas_are_kept_apart():
    titles = {"a": "A, cosine", "b": "B", "c": "C"}
    assert of_searches("c", titles=titles, **CLEAR) == "A, cosine; and B beat C, by up to 2.0 ± 0.8 points of MAP@R."


@pytest.mark.parametrize("name", ["quickstart", "all_methods_glyphs", "reality_check_glyphs", "quickstart_one_search"])
def test_a_headline_has_five_lines_on_a_phone(name):
    said = headline(answer_of(MeasuredExperiment.kept(name)))
    assert len(textwrap.wrap(said, 36)) <= 5, said


def test_a_line_for_each_comparison_that_was_asked_for():
    def lines(compare, **means):
        settings = comparing(compare, {**MLRC, "methods": ["a", "b", "c"]})
        return comparison_lines(few_trials(settings=settings, **means).answer)

    assert lines("all", **PARTLY) == [
        "A beats C by 2.0 ± 0.8 points",
        "B beats C by 1.9 ± 0.8 points",
        "A is 0.1 ± 0.7 points above B: cannot tell; a difference of 1.3 points would have shown",
    ], "what is decided comes first"
    assert lines("b", **PARTLY) == [
        "B beats C by 1.9 ± 0.8 points",
        "B is 0.1 ± 0.7 points below A: cannot tell; a difference of 1.2 points would have shown",
    ]
    assert lines("all", a=CLEAR["a"], b=CLEAR["b"], c=CLEAR["c"][:1]) == [], "nothing is claimed yet"
    equal = few_trials(searches=5, a=tuple(40 + STEPS[:5]), b=tuple(40.01 + STEPS[5:])).measured
    assert comparison_lines(answer_of(equal)) == ["B and A are equal within 0.5 points"]
    of_one = answer_of(equal)
    question = replace(of_one.question, margin=1.0)
    assert (question.margin_words, of_one.question.margin_words) == ("1 point", "0.5 points")
    many = {f"m{place}": (40.0 - place, 40.1 - place, 40.2 - place) for place in range(9)}
    said = comparison_lines(searched(**many).answer)
    assert len(said) == 6, "of 36 pairs a few with the highest mean"
    assert all("M0" in line for line in said)


def in_front(table):
    """The table with one more column before all others."""
    rows = tuple(replace(row, cells=[Cell(0.99), *row.cells]) for row in table.rows)
    return replace(table, columns=(Column("new"), *table.columns), rows=rows)


def test_a_column_in_front_of_the_others_changes_no_number_of_another(monkeypatch):
    one = material(values(a=A, b=B))
    found, whole = one.answer, table_of(one.answer)
    short, said, ranked = short_table(found), headline(found), page.page_values(one)["ranking"]
    assert [column.title for column in short.columns] == ["concatenated P@1", "concatenated MAP@R", "rank", "n"]
    for title in ("concatenated P@1", "concatenated MAP@R"):
        assert [cell.value for cell in short.column(title)] == [cell.value for cell in whole.column(title)]
    for module in (headlines, page):
        monkeypatch.setattr(module, "table_of", lambda found: in_front(table_of(found)))
    again, shown = short_table(found), page.page_values(one)
    assert (again.columns, again.rows, headline(found)) == (short.columns, short.rows, said)
    assert (shown["ranking"], shown["headline"]) == (ranked, said)
    assert shown["scores"].table.column("concatenated MAP@R") == whole.column("concatenated MAP@R")
    assert chosen(shown["scores"].table, ["concatenated"], []).rows == chosen(whole, ["concatenated"], []).rows


def test_a_column_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(KeyError, match=r"no column 'MAP@R'; there are .*separated P@1"):
        table_of(material(values(a=A, b=B)).answer).column("MAP@R")
