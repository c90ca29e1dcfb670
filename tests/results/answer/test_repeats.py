"""What a row repeats: tables as people have them are answered by what they are, or refused with what would say it."""

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.headline import comparison_lines, headline
from reports.sentences import sentences
from reports.tables.differences import differences
from reports.tables.formats import to_latex
from reports.tables.holds import holds_table
from reports.tables.result_table import table_of
from results.answer import Question, answer
from results.answer.audit import audit
from results.answer.compare import plain_test
from results.answer.pair_tests import signed_rank
from results.answer.planning import more_for, seen_with
from results.answer.table_caveats import shared_part
from results.reading.scores_table import OpenQuestionsError, Reading, ScoresError
from tests.support import repeats, typical_search

TABLES = Path(__file__).parents[2] / "support" / "audit_tables"


def table_of_text(text):
    table = pd.read_csv(io.StringIO(text), sep=";" if ";" in text else ",", dtype=str, keep_default_na=False)
    return table.set_axis(range(2, len(table) + 2))


def kept(name):
    if name == "unsure":
        return kept("ppl.csv").rename(columns={"perplexity": "error_reduction"})
    return table_of_text((TABLES / name).read_text(encoding="utf-8"))


def one(table, reading=None, **changes):
    ((_, found),) = audit(table, reading, **changes).answers.items()
    return found


def texts(found):
    return [finding.sentences for finding in found.findings]


REFUSED = {
    "epochs_noseed.csv": (Reading(), r"epoch varies within A \(rows 2 and 3: 0, 1\).*--last epoch.*--where epoch=1"),
    "model_loss.csv": (Reading(), "model and loss could both be the methods.*--method loss --where model=r50"),
    "optuna_studies.csv": (Reading(), r"number varies within contrastive .*--best-of VALIDATION"),
    "mixed_scale.csv": (Reading(), "rows 2 and 5: 'accuracy' has 0.715 of A and 73.5 of B, fractions beside percent"),
    "mixed_scale_ds.csv": (Reading(), "0.701 of A on cub and 70.1 of A on cars, fractions beside percent"),
    "unsure": (Reading(), "error_reduction may be better when lower; add --lower-is-better, or --higher-is-better"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_accounted_for_is_refused_with_the_option_that_says_it(name):
    reading, said = REFUSED[name]
    with pytest.raises(ScoresError, match=said) as caught:
        audit(kept(name), reading)
    assert "\n" not in str(caught.value)


def test_a_method_of_which_runs_collapsed_gets_no_verdict_and_both_numbers():
    found = one(kept("fail.csv"))
    assert not found.claims
    assert headline(found) == "Cannot tell: unstable is 2.1 ± 0.4 points above stable; with failed runs -25.9."
    counted = {row.head: table_of(found).row(row.head)["n"] for row in table_of(found).rows}
    counts = {head: cell.written or cell.value for head, cell in counted.items()}
    assert counts == {"stable": 5, "unstable": "3 of 5"}, "n is what the interval is over"
    assert "3 of 5" in to_latex(table_of(found))
    assert "n = 3 and 5 runs that did not fail, 2 of 5 of unstable did" in sentences(found)[0]
    everything = one(kept("fail.csv"), keep_all=True)
    assert everything.values["unstable"].mean == pytest.approx(0.5324)
    assert not everything.failed


def test_one_low_value_among_noise_gives_no_verdict():
    assert not one(kept("lowscore.csv")).claims


def test_accuracies_and_errors_give_one_answer():
    right, wrong = one(kept("asym_acc.csv")), one(kept("asym_err.csv"), Reading(lower_is_better=True))
    assert right.order == wrong.order == ["A", "B"]
    assert right.claims == wrong.claims
    (of_right,), (of_wrong,) = right.pairs, wrong.pairs
    assert of_right.difference == pytest.approx(-of_wrong.difference)
    for name in ("half_width", "p", "p_better", "p_equal", "smallest"):
        assert getattr(of_right, name) == pytest.approx(getattr(of_wrong, name))
    assert headline(wrong).startswith("Cannot tell yet: A 47.7, B 56.6.")
    assert wrong.methods["mean"].tolist() == pytest.approx([0.4766, 0.5662]), "true numbers, none negated"


def test_shared_splits_are_paired_where_a_column_says_so():
    together = one(kept("paired.csv"))
    assert not together.claims
    assert any(
        text.startswith("Rows of equal seed move together: their correlation is 0.99") for text in texts(together)
    )
    found = one(kept("paired.csv"), Reading(paired="seed"))
    own = kept("paired.csv").astype({"accuracy": float}).pivot(index="seed", columns="method", values="accuracy")
    assert found.pairs[0].p == pytest.approx(stats.ttest_rel(own["ours"], own["baseline"]).pvalue)
    assert found.pairs[0].p == pytest.approx(2e-7, rel=0.2)
    assert found.claims == {("ours", "baseline")}
    assert not any("move together" in text for text in texts(found))
    assert "paired t test over seeds" in sentences(found)[0]
    named = kept("paired.csv").rename(columns={"seed": "split"})
    assert one(named).pairs[0].p == found.pairs[0].p, "a column of splits says it without an option"
    asked = answer(kept("paired.csv"), Question(paired="seed"))
    assert asked.pairs[0].p == found.pairs[0].p


@pytest.mark.parametrize(("shared", "said"), [(0.5, False), (2.0, True)])
def test_runs_of_equal_seeds_move_together_only_if_chance_is_no_explanation(shared, said):
    noise = np.random.default_rng(4)
    scores = 50 + shared * noise.standard_normal(8) + noise.standard_normal((2, 8))
    _, mean, _ = shared_part(scores)
    rows = [(name, seed, scores[place, seed]) for place, name in enumerate("ab") for seed in range(8)]
    found = one(pd.DataFrame(rows, columns=["method", "seed", "accuracy"], index=range(2, 18)).astype(str))
    assert mean > 0
    assert any("move together" in text for text in texts(found)) == said


def test_folds_have_the_variance_of_nadeau_and_bengio():
    found = one(kept("cv10x10.csv"))
    assert not found.claims
    pair = found.pair("LDA", "GaussianNB")
    values = kept("cv10x10.csv").astype({"accuracy": float})
    wide = values.pivot(index=["repeat", "fold"], columns="method", values="accuracy")
    difference = wide["LDA"] - wide["GaussianNB"]
    assert pair.difference == pytest.approx(difference.mean())
    assert (round(100 * pair.difference, 1), round(100 * pair.half_width, 1)) == (1.8, 2.2)
    assert any("One dataset, over its folds" in text for text in texts(found))
    two = one(kept("cv10x10.csv").query("method in ['LDA', 'KNN-7']"))
    own = wide["LDA"] - wide["KNN-7"]
    error = np.sqrt(own.var(ddof=1) * (1 / 100 + 1 / 9))
    assert two.pairs[0].p == pytest.approx(2 * stats.t.sf(abs(own.mean()) / error, 99))


def test_datasets_with_one_score_each_are_the_sample():
    found = audit(kept("demsar.csv"), name="demsar.csv")
    assert list(found.answers) == ["demsar.csv"]
    (of_all,) = found.answers.values()
    p = {frozenset((pair.a, pair.b)): pair.p for pair in of_all.pairs}
    assert p[frozenset(("NB", "RF"))] == pytest.approx(3.8147e-6, rel=1e-4)
    assert p[frozenset(("NB", "SVM"))] == pytest.approx(3.8147e-6, rel=1e-4)
    assert p[frozenset(("RF", "SVM"))] == pytest.approx(0.5958, rel=1e-3)
    assert of_all.claims == {("RF", "NB"), ("SVM", "NB")}
    assert headline(of_all) == (
        "SVM beats NB by 1.6 (1.2 to 2.0) points of accuracy over 20 datasets. It cannot be told from RF."
    )
    wide = kept("demsar.csv").pivot(index="dataset", columns="method", values="accuracy").reset_index()
    again = one(wide, Reading(method="columns"))
    assert again.claims == of_all.claims
    few = one(kept("demsar.csv").query("dataset < 'd05'"))
    assert {pair.untested for pair in few.pairs} == {"fewer than 6 datasets"}
    assert headline(few).endswith("Six datasets at least give a verdict.")
    lower = one(kept("demsar.csv"), Reading(lower_is_better=True))
    assert lower.claims == {("NB", "RF"), ("NB", "SVM")}
    lacking = one(kept("demsar.csv").iloc[:-1])
    assert any(text.startswith("Left out: d19, which not all methods have.") for text in texts(lacking))


def test_six_datasets_are_the_fewest_that_show_a_difference():
    five, six = (one(kept("demsar.csv").query(f"dataset < 'd0{count}'")) for count in (5, 6))
    assert {(pair.untested, pair.p) for pair in five.pairs} == {("fewer than 6 datasets", None)}
    assert {pair.untested for pair in six.pairs} == {None}
    assert all(1 / 32 <= pair.p <= 1 for pair in six.pairs)


def test_the_median_difference_and_its_ends_are_those_of_an_exact_test():
    """Example of Hollander and Wolfe (depression scores), as in R's `wilcox.test(..., conf.int = TRUE)`."""
    before = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
    after = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
    found = signed_rank(before - after)
    assert found.p == pytest.approx(0.0390625)
    assert (found.median, found.low, found.high) == (
        pytest.approx(0.46),
        pytest.approx(0.01),
        pytest.approx(0.786),
    )


def test_equal_differences_are_ties_in_every_unit_of_the_scores():
    """Of floats 67.4 - 67.3 and 71.5 - 71.4 differ, and the ranks of ties decided a verdict at 5 %."""
    a = np.array([673, 739, 714, 686, 871, 706, 920, 666, 913, 654, 704, 944, 617])
    b = np.array([673, 744, 716, 687, 871, 709, 923, 668, 911, 651, 707, 948, 628])
    whole = signed_rank((b - a).astype(float))
    every_sign = stats.PermutationMethod(n_resamples=np.inf)
    assert whole.p == pytest.approx(stats.wilcoxon((b - a)[b != a], method=every_sign).pvalue)
    for factor in (0.1, 0.001, 10.0):
        found = signed_rank(b * factor - a * factor)
        assert found.p == pytest.approx(whole.p)
        assert (found.median, found.low, found.high) == pytest.approx(
            (whole.median * factor, whole.low * factor, whole.high * factor)
        )


def test_wide_tables_whose_rows_are_methods_or_that_have_settings_are_refused_with_what_to_do():
    rows = "method,seed0,seed1,seed2\nA,66.2,64.7,63.8\nB,70.5,71.6,70.7\n"
    with pytest.raises(ScoresError, match=r"the rows are methods, by the column 'method'; turn the table around"):
        audit(table_of_text(rows), Reading(method="columns"))
    turned = pd.read_csv(io.StringIO(rows)).set_index("method").T.rename_axis("seed")
    found = one(turned, Reading(method="columns"))
    assert {key: own.runs for key, own in found.values.items()} == {"A": 3, "B": 3}
    constant = one(table_of_text("seed,lr,A,B\n0,0.01,66.2,69.1\n1,0.01,64.7,68.8\n"))
    assert list(constant.values) == ["A", "B"], "a setting is no method"
    with pytest.raises(ScoresError, match="lr varies within A"):
        audit(table_of_text("seed,lr,A,B\n0,0.01,66.2,69.1\n1,0.02,64.7,68.8\n"))


def test_trials_of_a_study_give_the_best_one_of_each_as_a_search():
    found = audit(kept("optuna_studies.csv"), Reading(best_of="value"))
    assert found.read.startswith("Scores: 2 methods, 6 runs, 6 searches; score value, taken as fractions")
    (own,) = found.answers.values()
    assert own.question.unit == "search"
    table = kept("optuna_studies.csv").astype({"value": float})
    best = table[table["state"] == "COMPLETE"].groupby(["method", "study"])["value"].max()
    assert own.values["contrastive"].units == pytest.approx(tuple(best["contrastive"]))
    assert any("the compared score itself: such scores are too good" in text for text in texts(own))


def test_trials_that_tie_for_the_best_of_a_search_are_named_and_searches_without_a_score_refused():
    trials = [(m, s, t, v, 60 + s + t) for m in "AB" for s in range(3) for t, v in enumerate((70, 71, 71))]
    table = pd.DataFrame(trials, columns=["method", "study", "trial", "val", "test"])
    reading = Reading(best_of="val", score="test")
    assert any(
        "Rows 1, 2, 4 and 9 more tie for it: the first of each study counts." in t for t in texts(one(table, reading))
    )
    alone = one(table[table["trial"] < 2], reading)
    assert not any("tie for it" in text for text in texts(alone))
    assert one(table, Reading(best_of="val", score="val")).question.score == "val"
    lacking = table.assign(val=table["val"].where(table["study"] > 0))
    with pytest.raises(ScoresError, match="rows 0, 1, 2 and 3 more have no number in it, nor has another row of their"):
        audit(lacking, reading)


def test_too_many_methods_for_all_pairs_are_refused_with_their_number():
    many = pd.DataFrame([(f"m{i}", s, 50 + (i * s) % 7) for i in range(400) for s in range(3)])
    many.columns = ["method", "seed", "accuracy"]
    with pytest.raises(
        ValueError, match=r"79,800 pairs of 400 methods: more than 50,000 are not compared; compare each with the best"
    ):
        audit(many)
    assert len(one(many, compare="m1").pairs) == 399


def test_rows_that_sum_up_others_are_no_datasets():
    scores = "".join(f"d{n},{80 + n},{79 + n / 2}\n" for n in range(7))
    found = audit(
        table_of_text(f"dataset,A,B,Average\n{scores.replace(chr(10), ',80' + chr(10))}Average_Rank,1.2,1.8,1\n")
    )
    (own,) = found.answers.values()
    assert list(own.values) == ["A", "B"]
    assert len(own.values["A"].units) == 7
    assert "Left out: the columns Average, which sum up others." in texts(own)
    assert "Left out: rows 9 (A), 9 (B) (dataset Average_Rank), which sum up others." in texts(own)
    means = "".join(f"d{n},8{n}.1(0.5),79.2(0.4)\n" for n in range(7))
    summed = audit(table_of_text(f"dataset,A,B\n{means}Wins,1.2,1.8\n"), Reading(method="columns", n="5-runs"))
    assert list(summed.answers) == [f"d{n}" for n in range(7)], "a row of wins has no deviations, and is no dataset"
    welch = stats.ttest_ind_from_stats(80.1, 0.5, 5, 79.2, 0.4, 5, equal_var=False)
    name, p = plain_test(summed.answers["d0"].question, summed.answers["d0"].pairs[0])
    assert p == pytest.approx(welch.pvalue), name
    failed = means.replace("79.2(0.4)", "failed", 1)
    with pytest.raises(ScoresError, match="row 2: 'failed' in 'B' is no number; leave the row or the column out"):
        audit(table_of_text(f"dataset,A,B\n{failed}"), Reading(method="columns", n="5-runs"))
    starred = scores.replace("80,", "80 (5),")
    with pytest.raises(
        ScoresError, match=r"--method columns: row 2: '80 \(5\)' in 'A' is no number; leave the row or the column"
    ):
        audit(table_of_text(f"dataset,A,B\n{starred}"), Reading(method="columns"))
    counted = table_of_text("dataset,A,B,#\n" + scores.replace("\n", ",6\n"))
    assert list(one(counted, Reading(method="columns")).values) == ["A", "B"], "a column of counts is no method"


def test_a_score_of_0_is_of_any_scale_and_names_stay_in_one_line():
    table = table_of_text("method,dataset,acc\n" + "".join(f"{m},d{n},{10 * n}\n" for m in "AB" for n in range(7)))
    assert audit(table).read.endswith("taken as percent (within 0 and 100).")
    broken = table.rename(columns={"acc": "Arena Elo\n[April]"}).assign(other="3.5")
    with pytest.raises(ScoresError, match=r"--score: Arena Elo \[April\], other"):
        audit(broken)


def test_names_that_only_look_different_are_one_or_refused():
    table = kept("value_only.csv")
    soft = table.assign(method=["ne\u00adt", "net\u200f", "net", *"BBB"])
    assert [own.n for own in one(soft).values.values()] == [3, 3], "marks that nobody sees"
    for other in ("a\u2011b", "a_b", "\uff21-b"):
        with pytest.raises(ScoresError, match=r"'a-b' and .* differ in blanks, dashes or case only; write one"):
            audit(table.assign(method=["a-b", other, "a-b", *"BBB"]))


def test_columns_of_words_that_trackers_use_are_explained_too():
    table = pd.concat([kept("value_only.csv").assign(state=state) for state in ("Ohio", "Utah")], ignore_index=True)
    table["value"] = table["value"].astype(float).add(pd.Series([0] * 6 + [1, 2, 3] * 2))
    assert list(audit(table).answers) == ["Ohio", "Utah"], "all methods share its values: each has an answer"
    words = kept("value_only.csv").assign(scale=["x", "x", "x", "y", "y", "y"], lower_is_better="hardly")
    assert one(words).claims, "what is asked is taken from options, and from our own records"


def test_a_difference_of_nothing_has_no_sign():
    rows = [(m, f"d{d}", 70 + d + (m == "B") * (d > 5)) for m in "AB" for d in range(8)]
    found = one(pd.DataFrame(rows, columns=["method", "dataset", "acc"]))
    assert comparison_lines(found) == ["B is 0.0 (0.0 to 0.5) points above A: cannot tell"]


def test_a_pivoted_frame_keeps_its_datasets_apart():
    rows = [(d, m, s, 70 + 5 * (d == "y") + (m == "B") + s / 10) for d in "xy" for m in "AB" for s in range(4)]
    table = pd.DataFrame(rows, columns=["dataset", "method", "seed", "acc"])
    long = audit(table)
    for columns in (["dataset", "method"], ["method", "dataset"]):
        pivoted = audit(table.pivot_table(index="seed", columns=columns, values="acc"))
        assert {d: found.claims for d, found in pivoted.answers.items()} == {
            d: found.claims for d, found in long.answers.items()
        }


def test_times_and_remarks_of_a_log_are_no_settings():
    log = kept("value_only.csv").assign(
        utc=[f"2019-02-20T23:51:{n:02}" for n in (1, 1, 2, 3, 3, 4)], info=["", "no memory", ""] * 2
    )
    assert one(log).claims == {("B", "A")}


def test_what_trackers_and_spreadsheets_write_is_read():
    crashed = one(kept("wandb.csv"), Reading(score="test/recall@1"))
    assert crashed.question.titles.keys() == {"contrastive", "proxy_anchor"}
    assert any(text.startswith("Left out: row 8 (State: crashed).") for text in texts(crashed))
    assert one(kept("value_only.csv")).claims == {("B", "A")}
    indexed = kept("value_only.csv").rename_axis(None).reset_index(names="").astype(str)
    assert one(indexed).claims == {("B", "A")}, "a column of row numbers without a name"
    chosen = indexed.assign(**{"": ["3", "5", "9", "12", "20", "21"]})
    assert one(chosen).claims == {("B", "A")}, "of rows that were chosen"
    lengths = indexed.assign(**{"": ["81", "251", "451"] * 2})
    assert one(lengths).claims == {("B", "A")}, "what follows from the seed"
    with pytest.raises(ScoresError, match="row name varies within A"):
        audit(lengths.drop(columns="seed"))


def test_lengths_without_a_name_are_no_runs_of_a_wide_table():
    text = ",mlp,fcn\n81,5.4,3.3\n251,4.1,1.6\n451,4.5,2.3\n"
    (found,) = audit(table_of_text(text).rename(columns={"": "Unnamed: 0"}), Reading(method="columns")).answers.values()
    assert found.question.unit == "dataset"
    assert not found.claims
    numbered = "d," + ",".join(map(str, range(5))) + "\nx," + ",".join(["0.5"] * 5) + "\n"
    with pytest.raises(
        ScoresError, match="the columns 0, 1, 2 and 2 more are numbered, as repeats are; write the names of the methods"
    ):
        audit(table_of_text(numbered), Reading(method="columns"))


def test_a_size_that_differs_within_a_method_is_no_score_and_its_rows_are_no_runs():
    rows = [f"{name},{size},{70 + at + size / 100}" for at, name in enumerate("ABC") for size in (224, 288, 384)]
    rows[1] = rows[1].replace("288", "256")
    with pytest.raises(ScoresError, match="img_size varies within A"):
        audit(table_of_text("\n".join(["model,img_size,top1", *rows])), Reading(score="top1"))


def test_the_last_epoch_and_one_value_of_a_column_are_taken_where_asked():
    last = one(kept("epochs_noseed.csv"), Reading(last="epoch"))
    assert [own.mean for own in last.values.values()] == pytest.approx([0.8052, 0.80926])
    where = one(kept("model_loss.csv"), Reading(method="loss", where=(("model", "vit"),)))
    assert where.values["arcface"].units == pytest.approx((0.831, 0.832, 0.833))
    percent = one(kept("mnist_err.csv"), Reading(lower_is_better=True, scale="percent"))
    assert headline(percent).startswith("A beats B by 0.12 ± 0.07 points of test_error")
    assert headline(one(kept("mnist_err.csv"))).startswith("A beats B by 0.12 ± 0.07 in test_error"), "as it is written"
    perplexity = one(kept("ppl.csv"))
    assert perplexity.question.lower_is_better, "its name says so"
    assert headline(perplexity).startswith("ours beats gpt by 1.1 ± 0.3 in perplexity")


@pytest.mark.parametrize("folds", [0, 5])
def test_paired_blocks_and_folds_are_those_of_the_reference(folds):
    for seed in range(200):
        noise = np.random.default_rng(seed)
        methods = int(noise.integers(2, 9))
        blocks = folds * int(noise.integers(1, 4)) if folds else int(noise.integers(3, 12))
        shared = noise.normal(0, 3, blocks)
        values = {f"m{i}": 60 + noise.normal(0, 1) + shared + noise.normal(0, 1, blocks) for i in range(methods)}
        places = [{"repeat": at // folds, "fold": at % folds} if folds else {"split": at} for at in range(blocks)]
        rows = [
            {"method": name, **place, "accuracy": value}
            for name, own in values.items()
            for place, value in zip(places, own, strict=True)
        ]
        found = one(pd.DataFrame(rows).sample(frac=1, random_state=seed, ignore_index=True))
        for a, b, difference, half_width, p, adjusted in repeats.paired(values, 1 / folds if folds else 0.0):
            pair = found.pair(a, b)
            assert 100 * pair.difference == pytest.approx(difference, rel=1e-9)
            assert 100 * pair.half_width == pytest.approx(half_width, rel=1e-9)
            assert (pair.p, pair.p_better) == (pytest.approx(p, rel=1e-9), pytest.approx(adjusted, rel=1e-9))
            assert bool(pair.better) == (adjusted < 0.05)


def test_runs_are_those_of_the_reference():
    failed = 0
    for seed in range(200):
        noise = np.random.default_rng(seed)
        values = {
            f"m{i}": list(60 + noise.normal(0, 2) + noise.normal(0, 1, noise.integers(2, 9)))
            for i in range(noise.integers(2, 9))
        }
        if noise.random() < 0.5 and len(values["m0"]) > 2:
            values["m0"][0] -= 50
        rows = [(name, run, value) for name, own in values.items() for run, value in enumerate(own)]
        found = one(pd.DataFrame(rows, columns=["method", "seed", "accuracy"]))
        expected = typical_search.compare(values, half=False)
        widths = {key: 100 * own.half_width for key, own in found.intervals.items()}
        assert widths == pytest.approx(expected["half widths"], rel=1e-9)
        assert (found.claims, found.rank_intervals) == (expected["claims"], expected["ranks"])
        failed += len(found.failed)
    assert failed > 30


def test_summaries_have_the_test_of_welch():
    found = one(table_of_text("method,accuracy,n\nA,71.5 ± 0.4,5\nB,72.9 ± 0.5,7\n"))
    expected = stats.ttest_ind_from_stats(71.5, 0.4, 5, 72.9, 0.5, 7, equal_var=False)
    assert found.pairs[0].p == pytest.approx(expected.pvalue)
    assert found.methods["n"].tolist() == [7, 5]
    error = one(table_of_text("method,accuracy,n\nA,71.5 ± 0.4,5\nB,72.9 ± 0.5,7\n"), Reading(plus_minus="se"))
    assert error.pairs[0].half_width > 2 * found.pairs[0].half_width
    columns = one(table_of_text("method,mean,std,n\nA,71.5,0.4,5\nB,72.9,0.5,7\n"))
    assert columns.pairs[0].p == pytest.approx(expected.pvalue)


def test_rows_and_datasets_that_are_there_twice_count_once():
    rows = ["A,70.12", "A,70.55", "A,69.81", "B,71.90", "B,72.31", "B,71.77"]
    once, twice = (one(table_of_text("\n".join(["method,accuracy", *rows * times]))) for times in (1, 2))
    assert (twice.claims, twice.pairs[0].p) == (once.claims, once.pairs[0].p)
    assert any(text.startswith("Every row is there twice, such as rows 2 and 8") for text in texts(twice))
    copied = [*rows, "C,69.81", "C,70.12", "C,70.55"]
    assert "A and C have the same 3 scores. One may be a copy of the other." in texts(
        one(table_of_text("\n".join(["method,accuracy", *copied])))
    )
    tasks = "method,dataset,seed,accuracy\n" + "".join(
        f"{method},{task},{seed},{base + seed / 7:.2f}\n"
        for task in ("cub", "CUB ", "birds")
        for method, base in (("A", 60), ("B", 61))
        for seed in range(3)
    )
    found = audit(table_of_text(tasks))
    assert list(found.answers) == ["cub"]
    assert "differ in blanks, dashes or case only" in found.read + " ".join(texts(found.answers["cub"]))
    assert "birds holds the same numbers as cub" in found.read + " ".join(texts(found.answers["cub"]))


def test_one_name_in_two_unicode_forms_is_one_method_and_seeds_are_numbers():
    text = "method,seed,accuracy\n" + "".join(
        f"{name},{seed},{70 + number + int(float(seed)) / 10}\n"
        for number, names in enumerate((("café", "cafe\u0301"), ("tea", "tea\u200b")))
        for name, seeds in zip(names, (("1", "02"), ("3.0", "4")), strict=True)
        for seed in seeds
    )
    found = one(table_of_text(text), Reading(paired="seed"))
    assert list(found.question.methods) == ["café", "tea"]
    assert found.values["tea"].n == 4


def test_frames_of_two_levels_and_names_in_the_index_are_read():
    rng = np.random.default_rng(0)
    runs = pd.DataFrame({"method": ["A"] * 4 + ["B"] * 4, "seed": [*range(4)] * 2, "accuracy": 70 + rng.random(8)})
    plain = one(runs).pairs
    assert one(runs.set_index(["method", "seed"])).pairs == plain
    summary = runs.groupby("method").agg({"accuracy": ["mean", "std", "count"]})
    found = one(summary, Reading(score="accuracy mean"))
    assert found.question.unit == "summary"
    own = (runs[runs["method"] == name]["accuracy"] for name in "AB")
    assert found.pairs[0].p == pytest.approx(stats.ttest_ind(*own, equal_var=False).pvalue)
    named = pd.DataFrame({"accuracy": [70.0, 71.0]}, index=["A", "B"])
    assert list(one(named).question.methods) == ["A", "B"]


@pytest.mark.parametrize(
    ("text", "reading", "said"),
    [
        ("method,seed,step,acc\nA,0,1,70\nA,0,2,71\nB,0,1,70\nB,0,2,72\n", Reading(), "step varies within A"),
        ("method,lr,acc\nA,0.1,70\nA,0.2,71\nB,0.1,70\nB,0.2,72\n", Reading(), "lr varies within A .*--where lr=0.2"),
        ("method,k,acc\nA,1,70\nA,5,71\nB,1,70\nB,5,72\n", Reading(), "k varies within A"),
        ("method,shape,acc\nA,1,70\nA,2,71\nB,1,70.5\nB,2,72\n", Reading(score="acc"), "shape varies within A"),
        ("method,net,acc\nA,r50,70\nA,r50,71\nA,vit,72\nA,vit,74\nB,r50,70\n", Reading(), "net varies within A"),
        ("method,split,acc\nA,train,99\nA,test,71\nB,train,98\nB,test,72\n", Reading(), "--where split=test"),
        ("method,run,seed,acc\nA,1,1,70\nA,1,2,71\nA,2,1,72\nA,2,2,73\n", Reading(), "run and seed both tell rows"),
        ("model,acc\n1,70\n2,71\n", Reading(), r"no column of words is called .*\(model holds numbers\)"),
        ("method,seed,top1_Error_drop\nA,1,30\nB,1,31\n", Reading(), "top1_Error_drop may be better when lower"),
        ("method,acc\nA,0.71\nA,71.3\nA,71.9\nB,70.0\n", Reading(), "a fraction beside percent"),
        ("method,acc\nA,70\nB,71\n", Reading(where=(("epoch", "3"),)), "there is no column 'epoch'"),
        ("method,epoch,acc\nA,1,70\nB,1,71\n", Reading(where=(("epoch", "3"),)), "no row has epoch '3'; there are 1"),
        (
            "method,year,epoch,acc\nA,1,0,70\nA,1,9,71\nA,2,9,72\nB,1,9,70\n",
            Reading(last="epoch", score="acc"),
            "--last epoch: rows 3, 4 have the last one of their runs",
        ),
        ("method,acc\nA,70\nB,71\n", Reading(best_of="acc"), "name the column of the searches with --search"),
        ("method,dataset,acc\nA,x,70\nA,X,71\nB,x,70\nB,X,7\n", Reading(), "differ in blanks, dashes or case only"),
        ("method,State,acc\nA,crashed,70\nB,failed,71\n", Reading(), "no run is finished"),
    ],
)
def test_a_column_that_varies_is_named_with_what_would_say_what_it_is(text, reading, said):
    with pytest.raises(ScoresError, match=said) as caught:
        audit(table_of_text(text), reading)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["question", "planned", "experiment", "embeddings", "last_epoch_checkpoint"])
def test_names_of_this_suite_mean_nothing_in_tables_of_others(name):
    rows = [f"{method},{seed},{70 + seed + (method == 'B')},x{seed}{method}" for method in "AB" for seed in range(4)]
    found = one(table_of_text("\n".join([f"method,seed,accuracy,{name}", *rows])))
    assert found.question.score == "accuracy"


def test_digits_follow_the_scores_and_no_number_is_rounded_to_zero():
    noise = np.random.default_rng(0)
    for size, scale in ((1e-6, "points"), (1e-3, "points"), (1e5, "points"), (0.02, "percent")):
        rows = [(m, s, size * (base + 0.1 * noise.normal())) for m, base in (("A", 4), ("B", 7)) for s in range(5)]
        table = pd.DataFrame(rows, columns=["method", "seed", "score"])
        found = one(table, Reading(scale=scale, lower_is_better=True))
        assert found.claims == {("A", "B")}
        said = [headline(found), *comparison_lines(found), *sentences(found), *texts(found)]
        written = to_latex(differences(found)) + to_latex(table_of(found))
        for text in [*said, written]:
            assert not re.search(r"(?<![\d.e-])0(\.0+)? (±|\\pm)|(±|\\pm) 0(\.0+)?(?![\d.])", text), text


@pytest.mark.parametrize("n", ["", "5"])
def test_digits_of_summaries_follow_their_deviations(n):
    """Two means lie close together, and far from a third."""
    text = "method,loss_mean,loss_std\nA,-14.77,0.005\nB,-14.64,0.02\nC,-6.72,0.007\n"
    found = one(table_of_text(text), Reading(lower_is_better=True, n=n))
    assert any("A is 0.130 below B" in line or "A beats B by 0.130" in line for line in comparison_lines(found))


def test_points_have_no_margin_unless_one_is_named():
    text = "method,seed,nll\n" + "".join(
        f"{m},{s},{b + s / 1000}\n" for m, b in (("A", 0.3), ("B", 0.6)) for s in range(5)
    )
    found = one(table_of_text(text), Reading(lower_is_better=True))
    assert (found.question.scale, found.question.bound) == ("points", None)
    assert found.pairs[0].size == "cannot tell"
    assert found.claims == {("A", "B")}
    assert "size" not in [column.name for column in differences(found).columns]
    assert not any("MAP@R" in text or "kept records" in text for text in texts(found))
    within = one(table_of_text(text), Reading(lower_is_better=True), margin=0.5)
    assert within.pairs[0].size == "within"


def test_one_more_and_what_would_have_shown_are_of_one_pair_at_one_power():
    prototree = pd.read_csv(Path(__file__).parents[3] / "docs" / "prototree.csv")
    found = one(prototree)
    said, (more,) = " ".join(texts(found)), seen_with(found, 1).values()
    assert "Differences below 7.9 points can stay unseen." in said
    assert more == pytest.approx(0.0695, abs=5e-5)
    assert f"One run more of each would show {100 * more:.1f} points." in said
    (pair,), needed = found.pairs, more_for(found, found.pairs[0], 0.05)
    assert seen_with(found, needed)[frozenset((pair.a, pair.b))] <= 0.05
    assert seen_with(found, needed - 1)[frozenset((pair.a, pair.b))] > 0.05
    unequal = [(m, s, 70 + s % 3) for m, count in (("A", 20), ("B", 3), ("C", 1)) for s in range(count)]
    text = " ".join(texts(one(pd.DataFrame(unequal, columns=["method", "seed", "accuracy"]))))
    assert "3 to 20 runs of each of 2 methods" in text


def test_the_correlation_of_runs_that_share_something_is_the_intraclass_correlation():
    noise = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        shared = noise.normal(0, 1, 12)
        low, mean, high = shared_part(np.array([shared + noise.normal(0, 1, 12) for _ in range(3)]))
        assert low <= mean <= high
        inside += low <= 0.5 <= high
    assert 0.91 < inside / 300 < 0.99


def test_a_sentence_for_a_paper_has_all_that_a_reader_needs():
    found = one(kept("value_only.csv"))
    assert sentences(found) == [
        "B is better than A in value by 1.97 points (73.80 against 71.83 %; 95 % interval 1.20 to 2.74; p = 0.003, "
        "adjusted; n = 3 runs each; t test with 4 degrees of freedom; Welch's t test of this pair alone: p = 0.001). "
        "This holds without one run; not measured: with a search of each (gone if searches of the two vary by more "
        "than 0.41 points).",
        'P values are multiplied by 4/3, since three quarters of the level is spent on "better". '
        "A method's variance is the larger of its own and that pooled over methods, times 1 + 1/(S − 1)² for S runs.",
    ]
    latex, _ = sentences(one(kept("cv10x10.csv").query("method in ['LDA', 'GaussianNB']")), latex=True)
    assert r"95 \% interval $-$0.35" in latex or r"95 \% interval $-0." in latex
    assert re.search(r"\$p = 0\.\d+\$", latex)
    assert "Nadeau and Bengio, 2003" in latex


def test_numbers_near_zero_are_powers_in_latex_and_have_no_fixed_digits_in_sentences():
    values = "".join(f"{m},{s},{v + s * 1e-8}\n" for m, v in (("a", 4e-6), ("b", 6e-6)) for s in range(5))
    errors = table_of_text(f"method,seed,mse\n{values}")
    found = one(errors, Reading(lower_is_better=True))
    said = sentences(found, latex=True)[0]
    assert r"a is better than b in mse by $2 \times 10^{-6}$ ($4.02 \times 10^{-6}$ against" in said
    drawn = to_latex(table_of(found))
    assert r"$\mathbf{4.02 \times 10^{-6} \pm" in drawn
    assert not re.search(r"\de-\d", said + drawn)
    single = errors.drop_duplicates("method")
    given = audit(single, Reading(lower_is_better=True), deviation=1e-6)
    assert any("The tests take the given 1e-06 as" in text for text in texts(only_answer(given)))
    large = table_of_text(
        "method,seed,rmse\n"
        + "".join(f"{m},{s},{v + 300 * s}\n" for m, v in (("a", 9000), ("b", 30000)) for s in range(5))
    )
    rows = {row.head: row for row in holds_table(one(large, Reading(lower_is_better=True))).rows}
    assert "e+" not in rows["with a search of each"].cells[-1].value


def only_answer(found):
    (answered,) = found.answers.values()
    return answered


def test_folds_stay_folds_whatever_names_them_and_a_seed_of_each_method_joins_nothing():
    table = kept("folds_with_seeds.csv")
    wide = table.astype({"auc": float}).pivot(index="fold", columns="framework", values="auc")
    difference = wide["F1"] - wide["F0"]
    error = np.sqrt(difference.var(ddof=1) * (1 / 10 + 1 / 9))
    for reading in (Reading(score="auc"), Reading(score="auc", paired="fold"), Reading(score="auc", run="fold")):
        found = one(table, reading)
        assert (found.question.unit, found.question.folds, found.claims) == ("fold", 10, set())
        assert found.pairs[0].p == pytest.approx(2 * stats.t.sf(difference.mean() / error, 9))
    assert plain_test(found.question, found.pairs[0]) == (
        "paired t test",
        pytest.approx(stats.ttest_rel(wide["F1"], wide["F0"]).pvalue),
    )


def test_what_follows_from_the_fold_is_explained_and_what_all_methods_share_has_answers_of_its_own():
    found = audit(kept("folds_with_sizes.csv"))
    assert list(found.answers) == ["s0", "s1"]
    assert found.table.unread["n_train"] == "follows from fold"
    (pair,) = found.answers["s1"].pairs
    assert (round(100 * pair.difference, 1), round(100 * pair.half_width, 1)) == (0.4, 10.1)
    assert not found.answers["s1"].claims


def test_it_is_asked_whether_five_means_are_over_folds_whose_deviations_are_none_of_runs():
    table = kept("means_over_folds.csv")
    with pytest.raises(OpenQuestionsError, match="all means have n = 5: --n runs if these are runs") as caught:
        audit(table)
    assert caught.value.guess.options() == ["--n", "folds"]
    folds, runs = one(table, Reading(n="folds")), one(table, Reading(n="runs"))
    assert (len(folds.claims), len(runs.claims)) == (0, 2)
    for of_folds, of_runs in zip(folds.pairs, runs.pairs, strict=True):
        assert of_folds.half_width == pytest.approx(of_runs.half_width * np.sqrt(2.25))
    assert [0.75 * pair.p_better for pair in folds.shown_pairs][:2] == pytest.approx([0.060, 0.069], abs=1e-3)
    assert one(table.drop(columns="n"), Reading(n="5-folds")).pairs == folds.pairs
    with pytest.raises(ScoresError, match="--n N: write the number of runs behind each mean, such as 5"):
        audit(table.drop(columns="n"), Reading(n="N"))


def test_scores_are_no_methods_and_sums_of_others_are_left_out():
    for reading in (Reading(), Reading(method="columns")):
        with pytest.raises(ScoresError) as caught:
            audit(kept("metrics_only.csv"), reading)
        assert "--wide" not in str(caught.value)
    found = audit(kept("wide_with_average.csv"))
    assert list(found.answers["Scores"].values) == ["A", "B"]
    assert found.table.unread == {"Average": "no method"}


def test_a_method_in_several_columns_is_asked_about_and_answered():
    table = kept("method_in_columns.csv")
    with pytest.raises(OpenQuestionsError) as caught:
        audit(table)
    assert caught.value.guess.options() == ["--method", "strategy+beta+detach_target"]
    assert len(caught.value.questions) == 1
    found = audit(table, Reading(method="beta+strategy+detach_target", score="test_acc"))
    assert list(found.answers) == ["cifar100", "mnist", "ag_news", "dbpedia_14"]
    assert "beta=0.4 output detach_target=False" in found.answers["cifar100"].values


@pytest.mark.parametrize(
    ("name", "reading"),
    [("one_row.csv", Reading()), ("tracker_without_method.csv", Reading(method="run_id", score="metric_f1"))],
)
def test_one_score_is_nothing_to_compare(name, reading):
    with pytest.raises(ScoresError, match=r"nothing to compare: .* has the only score in"):
        audit(kept(name), reading)


def test_all_questions_are_asked_at_once_and_the_most_likely_answers_give_an_answer():
    rows = [(m, lr, s, 1 + at + s / 50 + lr) for at, m in enumerate("AB") for lr in (0.1, 0.2) for s in range(3)]
    table = pd.DataFrame(rows, columns=["net", "lr", "seed", "error_reduction"])
    with pytest.raises(OpenQuestionsError) as caught:
        audit(table)
    assert [taken for _, taken in caught.value.questions] == ["--method net+lr", "--lower-is-better"]
    assert list(one(table, caught.value.guess).values) == ["A lr=0.1", "A lr=0.2", "B lr=0.1", "B lr=0.2"]


def test_a_score_that_passes_1_by_a_little_is_no_percentage_and_equal_scores_are_not_rounded():
    rows = [(m, s, 0.98 + 0.02 * (m == "B") + s / 250) for m in "AB" for s in range(4)]
    volumes = one(pd.DataFrame(rows, columns=["method", "seed", "hypervolume"]))
    assert volumes.question.scale == "points"
    equal = one(pd.DataFrame([(m, s, 70.0) for m in "AB" for s in range(4)], columns=["method", "seed", "acc"]))
    assert not any("rounded" in text for text in texts(equal))


def test_methods_in_columns_that_begin_with_one_score_are_compared_in_it():
    rows = [(fold, 2 + fold / 7, 3 + fold / 9, 1.5, 0.01) for fold in range(5)]
    table = pd.DataFrame(rows, columns=["fold", "loss_mlp", "loss_tree", "delta_loss", "test_pval"])
    found = audit(table)
    (own,) = found.answers.values()
    assert (list(own.values), own.question.score, own.question.lower_is_better) == (
        ["loss_mlp", "loss_tree"],
        "loss",
        True,
    )


def test_a_question_of_python_has_the_options_of_the_command_and_its_answer_a_line():
    found = answer(kept("paired.csv"), Question(paired="seed"))
    assert repr(found).startswith("<accuracy: ours − baseline: 1.3 ± ")
    assert found.to_frame()["verdict"].tolist() == ["ours better"]
    assert found.to_frame()["difference"].tolist() == pytest.approx([100 * abs(found.pairs[0].difference)])
    with pytest.raises(OpenQuestionsError):
        answer(kept("means_over_folds.csv"))


def test_repeats_in_columns_are_runs_or_folds():
    wide = table_of_text("method,seed0,seed1,seed2\nA,71.5,72.1,71.8\nB,73.2,73.9,73.4\n")
    found = one(wide)
    assert found.question.unit == "run"
    assert found.values["A"].units == pytest.approx((0.715, 0.721, 0.718))
    assert found.values["B"].units == pytest.approx((0.732, 0.739, 0.734))
    folds = [[0.81, 0.84, 0.80, 0.85, 0.83], [0.84, 0.86, 0.83, 0.88, 0.85]]
    of_sklearn = pd.DataFrame(folds, columns=[f"split{number}_test_score" for number in range(5)])
    means = {"mean_test_score": of_sklearn.mean(axis=1), "std_test_score": of_sklearn.std(axis=1)}
    found = one(of_sklearn.assign(method=["svm", "forest"], rank_test_score=[2, 1], mean_fit_time=[0.1, 0.3], **means))
    assert (found.question.unit, found.question.folds) == ("fold", 5)
    difference = np.subtract(folds[0], folds[1])
    error = np.sqrt(difference.var(ddof=1) * (1 / 5 + 1 / 4))
    assert found.pairs[0].p == pytest.approx(2 * stats.t.sf(abs(difference.mean()) / error, 4))
