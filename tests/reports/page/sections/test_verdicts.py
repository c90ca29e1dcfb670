"""Sentences about differences, no stronger than the runs."""

import numpy as np
from scipy import stats

from reports.page.sections.verdicts import verdicts_of
from reports.page.sections.warnings import warnings_of
from results.statistics.comparisons import holm
from tests.support.page_material import A, B, C, material, said, values
from tests.support.sample_records import scores, some_run


def paired(a, b):
    return stats.ttest_rel([x / 4 + 0.025 for x in a], [x / 4 + 0.025 for x in b]).pvalue


def test_best_ties_and_pairs_are_those_of_independent_tests():
    found = verdicts_of(material(values(a=A, b=B, c=C)))
    (p_ab, p_ac, p_cb) = paired(A, B), paired(A, C), paired(C, B)
    against = dict(zip("bc", holm([p_ab, p_ac]), strict=True))
    assert against["b"] < 0.05 < against["c"]
    best = said(found, "best")[0]
    assert "Concatenated MAP@R: A has the highest mean, 17.61" in best
    assert "significantly above B; not significantly above C" in best
    ab, ac, cb = holm([p_ab, p_ac, p_cb])
    real, undecided = said(found, "real"), said(found, "open")
    assert (len(real), len(undecided)) == (2, 1)
    gap = 100 * (np.mean(A) - np.mean(B)) / 4
    assert f"A is {gap:.2f} points above B in concatenated MAP@R." in real[0]
    assert all("corrected for 3 pairs (Holm)" in sentence for sentence in (*real, *undecided))
    assert ("p < 0.001" if ab < 0.001 else f"p = {ab:.3f}") in real[0]
    assert ("p < 0.001" if cb < 0.001 else f"p = {cb:.3f}") in real[1]
    assert f"p = {ac:.3f}" in undecided[0]


def test_a_pair_is_said_with_the_higher_first_and_an_interval_of_that_sign():
    (sentence,) = said(verdicts_of(material(values(b=B, a=A))), "real")
    interval = stats.ttest_rel([x / 4 for x in A], [x / 4 for x in B]).confidence_interval()
    assert sentence.startswith("A is ")
    assert f"95 % interval {100 * interval.low:.2f} to {100 * interval.high:.2f}" in sentence


def test_single_runs_make_no_difference_real():
    one = material(values(a=A[:1], b=B[:1]), reproductions=1)
    found = verdicts_of(one)
    assert said(found, "real") == []
    assert any("cannot be tested" in sentence for sentence in said(found, "open"))
    assert "not tested against B, because there are too few runs" in said(found, "best")[0]
    assert any("single run" in sentence for sentence in said(warnings_of(one, partial=False)))


def test_one_method_alone_is_compared_with_nothing():
    found = verdicts_of(material(values(a=A)))
    assert {one.kind for one in found} == {"best"}
    assert "no other method to compare it with" in found[0].sentence


def test_a_single_model_has_one_kind_of_score():
    runs = {
        key: [
            some_run(key, run, value, fold_fingerprints=("x",), fold_scores=(scores(value),))
            for run, value in enumerate(own)
        ]
        for key, own in (("a", A), ("b", B))
    }
    found = said(verdicts_of(material(runs)), "best")
    assert len(found) == 2
    assert found[0].startswith("MAP@R: A has the highest mean")
