"""Means and deviations of a number of runs that nothing says: how many would show each difference, and no verdict."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.headline import comparison_lines, headline
from reports.sentences import sentences
from reports.tables.differences import differences
from results.answer import Question, answer
from results.answer.audit import audit
from results.answer.compare import plain_test
from results.answer.values import MOST_RUNS
from results.reading.scores_table import Reading

TWO = "method,accuracy\nours,71.5 ± 0.8\nbaseline,70.2 ± 0.7\n"
FOUR = f"{TWO}old,70.0 ± 1.9\nolder,65.0 ± 0.3\n"


def table_of(text):
    table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    return table.set_axis(range(2, len(table) + 2))


def one(table, reading=None, **changes):
    (found,) = audit(table, reading, **changes).answers.values()
    return found


def enough(found):
    """The pairs that differ from some number of runs on: the better method, the other, and the number."""
    return {(pair.higher, *({pair.a, pair.b} - {pair.higher})): pair.fewest for pair in found.pairs if pair.fewest}


def drawn(seed, methods, spread):
    rng = np.random.default_rng(seed)
    means, deviations = rng.normal(70, 1.5, methods).round(3), rng.lognormal(-0.3, 0.8, methods).round(3)
    rows = [f"m{at},{mean},{own}" for at, (mean, own) in enumerate(zip(means, deviations, strict=True))]
    return table_of("\n".join([f"method,acc_mean,acc_{spread}", *rows]))


@pytest.mark.parametrize("compare", ["all", "best", "m1"])
@pytest.mark.parametrize(("spread", "kind"), [("std", "runs"), ("sem", "runs"), ("std", "folds")])
def test_what_so_many_runs_would_show_is_what_they_show_and_more_runs_show_no_less(compare, spread, kind):
    for seed, methods in enumerate((2, 3, 4, 7, 12)):
        table, before = drawn(seed, methods, spread), set()
        found = enough(one(table, Reading(n="" if kind == "runs" else "folds"), compare=compare))
        for n in (2, 3, 4, 6, 9, 14, 22, MOST_RUNS):
            claims = one(table, Reading(n=f"{n}-{kind}"), compare=compare).claims
            assert claims == {(a, b) for (a, b, *_), fewest in found.items() if fewest <= n}
            assert claims >= before, "verdicts are monotone in n"
            before = claims


def test_the_fewest_runs_of_two_methods_are_those_of_welchs_test():
    (pair,) = one(table_of(TWO)).pairs
    p = [
        stats.ttest_ind_from_stats(71.5, 0.8, n, 70.2, 0.7, n, equal_var=False).pvalue for n in range(2, MOST_RUNS + 1)
    ]
    assert pair.fewest == 2 + next(at for at, one in enumerate(p) if one / 0.75 < 0.05)


def test_no_verdict_is_given_and_every_reader_says_that_n_is_not_known():
    read = audit(table_of(TWO))
    (found,) = read.answers.values()
    (pair,) = found.pairs
    assert "means and deviations of an unknown number of runs (accuracy ±)" in read.read
    assert (pair.better, pair.p, pair.half_width, pair.untested) == (None, None, None, "n not known")
    assert (found.claims, found.final_ranks, plain_test(found.question, pair)) == (set(), {}, None)
    assert headline(found) == (
        f"Nothing says how many runs are behind each mean. If each ± is a deviation of {pair.fewest} runs or more, "
        "ours beats baseline by 1.3 points of accuracy; with fewer this cannot be told."
    )
    assert comparison_lines(found) == [
        f"ours is 1.3 points above baseline: ours better if n ≥ {pair.fewest}",
    ]
    assert sentences(found)[0].startswith(f"If each ± is a deviation of {pair.fewest} runs or more, ours beats")
    (finding,) = [one for one in found.findings if one.text.startswith("Nothing says how many runs")]
    assert "--n 5 answers for 5 runs of each, with intervals and p values" in finding.detail
    assert "As standard errors (--plus-minus se) they show, up to n = 30, not 1 but 0 differences." in finding.detail
    row = dict(zip(differences(found).own_sheet.header, differences(found).own_sheet.rows[0], strict=True))
    assert (row["fewest"], row["direction"], row["p_better"], row["units_a"]) == (
        pair.fewest,
        "cannot tell",
        None,
        None,
    )
    assert found.to_frame()["verdict"].tolist() == [f"ours better if n ≥ {pair.fewest}"]


def test_of_many_methods_the_headline_counts_pairs_for_usual_numbers_of_runs():
    found = one(table_of(FOUR))
    counts = [sum(pair.fewest is not None and pair.fewest <= n for pair in found.pairs) for n in (3, 5, 10, MOST_RUNS)]
    said = f"{counts[0]} of 6 pairs would differ if each ± is a deviation of 3 runs, {counts[1]} if of 5"
    assert said in headline(found)
    most = max(pair.fewest for pair in found.pairs if "ours" in (pair.a, pair.b))
    assert headline(found).endswith(
        f"ours would beat every other method if each ± is a deviation of {most} runs or more."
    )
    assert "baseline is 0.2 points above old: cannot tell even if n = 30" in comparison_lines(found)
    assert found.pair("baseline", "old").fewest is None
    some = one(table_of(FOUR.replace("70.0 ± 1.9", "71.4 ± 1.9")))
    assert headline(some).endswith("runs or more, and not old with 30 either.")
    none = one(table_of(FOUR.replace("± ", "± 3")))
    assert headline(none).endswith("ours, with the highest mean, could not be told from any other with 30 either.")
    assert headline(one(table_of(TWO.replace("± ", "± 3")))).endswith(
        "Means of 30 runs each could not tell ours from baseline either, 1.3 points apart."
    )


def test_a_standard_error_is_taken_as_one_and_lower_can_be_better():
    text = "method,error_mean,error_se\nours,10.2,0.2\nbaseline,11.5,0.2\n"
    found = one(table_of(text))
    (pair,) = found.pairs
    assert pair.higher == "ours"
    assert f"if each ± is a standard error of {pair.fewest} runs or more, ours beats" in headline(found).replace(
        "If", "if"
    )
    assert "--plus-minus" not in " ".join(one.sentences for one in found.findings), "the column says what it is"
    deviation = one(table_of(text.replace("_se", "_std"))).pairs[0]
    assert deviation.fewest < pair.fewest


def test_means_of_a_cross_validation_are_those_of_folds():
    text = "method,cv_f1_mean,cv_f1_std\nA,0.81,0.01\nB,0.79,0.01\n"
    folds, runs = one(table_of(text)), one(table_of(text.replace("cv_", "")))
    assert "of 5 folds or more" in headline(folds).replace(f"of {folds.pairs[0].fewest} folds", "of 5 folds")
    assert folds.pairs[0].fewest > runs.pairs[0].fewest
    assert "--n 5-folds answers" in " ".join(one.sentences for one in folds.findings)


def test_python_answers_too_and_every_dataset_has_its_answer():
    frame = pd.DataFrame({"method": ["A", "B"], "acc_mean": [71.5, 70.2], "acc_std": [0.8, 0.7]})
    found = answer(frame, Question())
    assert found.differences["fewest"].tolist() == [one(table_of(TWO)).pairs[0].fewest]
    assert "A better if n ≥" in repr(found)
    assert "A better if n ≥" in found._repr_html_()
    several = pd.concat([frame.assign(dataset=name) for name in ("d1", "d2")], ignore_index=True)
    assert len(audit(several).answers) == 2
