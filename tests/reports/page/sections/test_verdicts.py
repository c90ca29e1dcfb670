"""Sentences about differences, no stronger than the runs."""

import pytest
from scipy import stats

from reports.page.sections.answer import verdicts_of
from reports.page.sections.warnings import warnings_of
from results.statistics.pair_tests import holm_adjusted
from tests.support.page_material import A, B, C, material, said, values
from tests.support.published_world import MLRC
from tests.support.sample_records import scores, some_run


def test_best_and_pairs_are_those_of_the_comparison():
    world = material(values(a=A, b=B, c=[0.58, 0.63, 0.60, 0.59]))
    found = verdicts_of(world)
    assert [world.comparison.pair(*names).verdict for names in ("ab", "ac", "cb")] == [
        "a better",
        "cannot tell",
        "b better",
    ]
    best = said(found, "best")[0]
    assert "Concatenated MAP@R, the primary score: A has the highest mean, 17.61" in best
    assert "It is better than B; not told apart from C." in best
    assert "No method" not in best, "the leading methods are those that are not told apart from the best"


def test_the_leading_methods_are_named_if_they_are_others_than_those_near_the_best():
    noisy, near, below = [0.9, 0.5, 0.7], [0.61, 0.612, 0.611], [0.51, 0.512, 0.511]
    world = material(values(a=noisy, b=near, c=below))
    assert world.comparison.leading == ("a", "b")
    assert world.comparison.pair("a", "c").verdict == "cannot tell"
    best = said(verdicts_of(world), "best")[0]
    assert "not told apart from B and C. No method is shown to be better than A and B." in best


def test_the_only_pair_is_welchs_test_with_the_share_of_the_level():
    world = material(values(a=A[:3], c=[x - 0.004 for x in C[:3]]))
    pair = world.comparison.pair("a", "c")
    expected = stats.ttest_ind([x / 4 for x in A[:3]], [x / 4 - 0.001 for x in C[:3]], equal_var=False)
    assert pair.p == pytest.approx(expected.pvalue)
    assert pair.p_better == pytest.approx(float(holm_adjusted([expected.pvalue])[0]) / 0.75)


def test_single_runs_make_no_method_better():
    one = material(values(a=A[:1], b=B[:1]), reproductions=1)
    found = verdicts_of(one)
    assert "not tested against B, because there are too few runs" in said(found, "best")[0]
    assert any("single run" in sentence for sentence in said(warnings_of(one, unfinished=False)))


def test_one_method_alone_is_compared_with_nothing():
    found = verdicts_of(material(values(a=A)))
    assert {one.kind for one in found} == {"best"}
    assert "no other method to compare it with" in found[0].sentence


def test_secondary_scores_are_named_and_not_tested():
    secondary = said(verdicts_of(material(values(a=A, b=B))), "best")[1:]
    assert [sentence.split(":")[0] for sentence in secondary] == [
        f"{score}, secondary and not tested" for score in ("Separated MAP@R", "Concatenated P@1", "Separated P@1")
    ]
    assert not any("better" in sentence for sentence in secondary)


def test_the_primary_score_of_the_experiment_comes_first():
    named = {**MLRC, "dataset": {"name": "glyphs"}, "primary": {"metric": "precision_at_1", "embeddings": "separated"}}
    found = said(verdicts_of(material(values(a=A, b=B), settings=named)))
    assert found[0].startswith("Separated P@1, the primary score: A has the highest mean")


def test_a_single_model_has_one_kind_of_score():
    runs = {
        key: [
            some_run(key, run, value, fold_fingerprints=("x",), fold_scores=(scores(value),))
            for run, value in enumerate(row)
        ]
        for key, row in (("a", A), ("b", B))
    }
    found = said(verdicts_of(material(runs)), "best")
    assert len(found) == 2
    assert found[0].startswith("MAP@R, the primary score: A has the highest mean")


def test_the_budget_counts_searches_where_they_are_repeated():
    def two_searches(key, means):
        return [
            some_run(key, run, mean + 0.01 * run, search=search, fingerprint=f"{key}-{search}-{run}")
            for search, mean in enumerate(means)
            for run in range(3)
        ]

    world = material({"a": two_searches("a", (0.5, 0.6)), "b": two_searches("b", (0.4, 0.45))})
    assert world.budget.runs == 2, "three runs of one search are one value"
    assert all("(2 searches)" in text for text in said(verdicts_of(world), "best"))
    (text,) = said(verdicts_of(world), "budget")
    assert text.startswith("2 searches of each of 2 methods can show")
    assert "search-to-search deviation" in text
