"""What the reader takes columns and rows for, and what it asks: a small table of each kind, with what is right."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from results.answer.audit import audit
from results.records.columns import is_error_rate, is_only_time, is_score, means_lower
from results.records.read_scores import read_scores
from results.records.scores_table import OpenQuestionsError, Reading, ScoresError


def table_of(text):
    table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    return table.set_axis(range(2, len(table) + 2))


def rows(head, *methods, dataset=("",), values=range(1, 7), step=1.0, cell="{}"):
    """A table with a row for each method, dataset and value; scores differ from row to row."""
    lines = []
    for at, method in enumerate(methods):
        for place, name in enumerate(dataset):
            for value in values:
                score = 50 + 7 * at + 3 * place + step * ((value * 5 + at) % 7)
                lines.append(",".join(filter(None, [method, name, str(value), cell.format(score)])))
    return table_of("\n".join([head, *lines]))


def asked(table, reading=None):
    with pytest.raises(OpenQuestionsError) as caught:
        read_scores(table, reading)
    return caught.value


def test_a_counter_without_a_trend_most_likely_numbers_runs_and_epochs_never_do():
    table = rows("method,iteration,accuracy", "A", "B", values=range(8))
    error = asked(table)
    assert error.guess == Reading(run="iteration")
    assert "--last iteration takes the last of each run" in str(error)
    assert error.read.frame.groupby("method").size().tolist() == [8, 8]
    rising = table.assign(accuracy=[str(50 + int(n)) for n in table["iteration"]])
    assert asked(rising).guess == Reading(last="iteration"), "a curve of training"
    assert asked(table.rename(columns={"iteration": "epoch"})).guess == Reading(last="epoch")


@pytest.mark.parametrize(
    ("columns", "compared"),
    [
        ("precision,recall,accuracy", "accuracy"),
        ("test_loss,test_accuracy", "test_accuracy"),
        ("test_loss,train_accuracy", "test_loss"),
        ("precision@1,nmi", "precision@1"),
        ("auc_pr,vus_pr", "auc_pr"),
        ("shift_idx,precision_at_1px,recall_at_1px", "precision_at_1px"),
        ("win_rate,avg_length", "win_rate"),
        ("rate_of_gaps,mean_absolute_error", "mean_absolute_error"),
    ],
)
def test_of_several_scores_one_that_says_the_whole_is_compared(columns, compared):
    names = columns.split(",")
    cells = {
        name: [f"0.{(at + 3) * 7 * (row + 5) % 97:02}" for row in range(6)] for at, name in enumerate(names, start=1)
    }
    table = pd.DataFrame({"method": list("AAABBB"), "seed": list("123123"), **cells}, index=range(2, 8))
    assert read_scores(table).score == compared


def test_what_all_methods_share_is_no_likely_score():
    table = rows("method,rate_of_gaps,drift", "A", "B", values=(5, 10, 20))
    assert asked(table).guess.score == "drift"


@pytest.mark.parametrize(
    ("name", "lower"),
    [
        *[("tour distance", None), ("distance", None), ("fitness", None), ("makespan", None)],
        *[("MASE", True), ("neg_mean_squared_error", False), ("mean_squared_error", True), ("accuracy", False)],
    ],
)
def test_the_direction_is_asked_where_a_name_does_not_say_it(name, lower):
    assert means_lower(name) is lower
    table = rows(f"method,run,{name}", "A", "B", values=range(3), step=0.1)
    if lower is None:
        assert asked(table).guess == Reading(lower_is_better=True)
    else:
        assert read_scores(table).lower_is_better == lower


def test_a_deviation_beside_a_score_is_its_deviation_and_no_score():
    table = table_of("model,win_rate,standard_error,n\nA,71.0,1.5,800\nB,65.5,1.6,800\n")
    found = audit(table, Reading()).answers["Scores"]
    assert found.pairs[0].difference == pytest.approx(0.055)
    assert found.pairs[0].half_width == pytest.approx(0.01 * stats.norm.ppf(0.975) * np.hypot(1.5, 1.6), rel=0.005)
    assert not is_score("standard_error")
    apart = table_of("model,win_rate,length,std,n\nA,71.0,3,1.5,800\nB,65.5,4,1.6,800\n")
    assert read_scores(apart, Reading(score="win_rate")).repeats == "run", "std is of the length"


def test_rows_without_the_deviation_that_others_have_are_left_out_and_named():
    read = read_scores(table_of("method,auc_mean,auc_std,n_folds\nA,0.8,0.01,5\nB,0.7,0.02,5\ngap,0.1,,\n"))
    assert list(read.frame["method"]) == ["A", "B"]
    assert read.folds == 5
    assert read.said == ("Left out: row 4 (no auc_std).",)


def test_columns_are_methods_unasked_only_where_nothing_else_can_name_them():
    wide = table_of("dataset,A,B\n" + "".join(f"d{n},{70 + n}.5,{60 + 2 * n}.1\n" for n in range(7)))
    assert set(read_scores(wide).frame["method"]) == {"A", "B"}
    kinds = wide.assign(kind=list("xxyyxxy"))
    assert asked(kinds).guess == Reading(method="columns")
    assert "--method kind" in str(asked(kinds))
    with pytest.raises(ScoresError, match="add a column method that says which method a row is of"):
        read_scores(wide.assign(accuracy="0.5"))
    benchmarks = table_of("run,arc,mmlu\nbase,70.1,50.2\nlora_4bit,71.5,51.3\nlora_8bit,71.9,50.9\n")
    error = asked(benchmarks)
    assert error.guess == Reading(method="run", score="arc"), "runs with names of their own are no repeats of columns"
    assert set(error.read.frame["method"]) == {"base", "lora_4bit", "lora_8bit"}
    numbered = wide.rename(columns={"dataset": "run"}).assign(run=[f"run {n}" for n in range(7)])
    assert set(read_scores(numbered).frame["method"]) == {"A", "B"}


def test_a_method_is_no_time_by_a_part_of_its_name():
    assert not is_only_time("Time-CNN")
    assert all(map(is_only_time, ["training_time_s", "time_training_seconds", "peak_mb", "runtime", "fit time"]))
    wide = table_of("dataset,Time-CNN,MLP\n" + "".join(f"d{n},{70 + n}.5,{60 + 2 * n}.1\n" for n in range(7)))
    assert set(read_scores(wide).frame["method"]) == {"Time-CNN", "MLP"}


def test_rows_that_sum_up_say_that_columns_are_methods():
    table = table_of("row name,mlp,fcn,resnet\nECG,71.2,72.3,80.1\nIMAGE,65.3,66.1,70.4\nWins,0,0,2\n")
    assert asked(table).guess == Reading(method="columns", dataset="row name")
    assert "--dataset 'row name'" in str(asked(table)), "as a shell takes it"
    assert asked(table.iloc[:2]).guess == Reading(dataset="columns")


def test_nothing_is_compared_where_one_method_was_only_measured():
    table = table_of("model,passed,parts,accuracy\n" + "".join(f"A,{n > 1},{n // 2},0.{n + 3}1\n" for n in range(6)))
    with pytest.raises(ScoresError, match="nothing to compare: all rows are of A; --method names another column"):
        read_scores(table)
    planned = table.rename(columns={"parts": "layers"})
    assert asked(planned).guess.method == "model+passed+layers", "what was planned can be a method"


def test_lists_name_no_methods():
    table = rows("loss,seed,accuracy", "A", "B").assign(indices=[f"[{n}, {n + 1}]" for n in range(12)])
    assert set(read_scores(table.rename(columns={"loss": "source"})).frame["method"]) == {"A", "B"}


def test_a_metric_beside_a_score_says_what_it_is():
    head = "method,dataset,eval_metric,test_error"
    lines = [f"{m},d{n},MASE,{0.7 + 0.4 * n + 0.1 * (m == 'A')}" for m in "AB" for n in range(6)]
    read = read_scores(table_of("\n".join([head, *lines])))
    assert (read.scale, read.lower_is_better, read.repeats) == ("points", True, "dataset")
    without = table_of("\n".join([head, *lines])).drop(columns="eval_metric")
    assert asked(without).guess == Reading(scale="points"), "errors of 0.7 and of 2.7 are hardly of two scales"
    two = table_of("\n".join([head, *lines])).assign(eval_metric=["MASE", "auc"] * 6)
    assert asked(two).guess == Reading(scale="points"), "two metrics say nothing of one score"
    assert not is_error_rate("mean_absolute_error")


def test_cases_within_folds_count_as_one_score_of_the_fold():
    lines = [f"{m},{n % 3},case{n},0.{50 + 5 * n + 3 * (m == 'A')}" for m in "AB" for n in range(9)]
    read = read_scores(table_of("\n".join(["method,fold,case,dice", *lines])))
    assert (read.repeats, read.folds) == ("fold", 3)
    (found,) = audit(table_of("\n".join(["method,fold,case,dice", *lines]))).answers.values()
    assert len(found.values["A"].units) == 3
    paired = audit(table_of("\n".join(["method,fold,case,dice", *lines])).drop(columns="fold"))
    assert paired.table.repeats == "block", "cases without folds are shared by all methods"


def test_two_lines_of_names_are_refused_with_what_to_write():
    both = table_of("method,acc,acc.1\nA,mean,std\n").set_axis(["method", "acc", "acc"], axis=1)
    with pytest.raises(ScoresError, match="two columns are called 'acc'; rename one, and write one line of names"):
        read_scores(both)
    nameless = both.set_axis(["", "Unnamed: 1", "acc"], axis=1)
    with pytest.raises(ScoresError, match="two columns have no name; rename one, and write one line of names"):
        read_scores(nameless)


def test_the_metric_that_all_columns_end_with_says_which_is_better():
    head = "dataset,Net_MSE,ARIMA_SVR_MSE,HAR_LR"
    lines = [f"d{n},{0.1 + n / 50:.2f},{0.3 + n / 100:.2f},{0.2 + n / 70:.2f}" for n in range(7)]
    read = read_scores(table_of("\n".join([head, *lines])))
    assert (read.score, read.lower_is_better, read.scale) == ("mse", True, "points")
    assert set(read.frame["method"]) == {"Net_MSE", "ARIMA_SVR_MSE"}, "HAR_LR is no error"
    without = table_of("\n".join([head.replace("_MSE", ""), *lines]))
    assert set(read_scores(without).frame["method"]) == {"Net", "ARIMA_SVR", "HAR_LR"}, "LR is no learning rate here"


def test_years_without_a_name_are_no_row_numbers():
    text = ",hold,trend\n" + "".join(f"{2015 + n},{0.1 + n / 50:.2f},{0.2 + n / 70:.2f}\n" for n in range(6))
    assert read_scores(table_of(text)).repeats == "dataset"
    assert read_scores(table_of(text.replace("\n20", "\n"))).repeats == "dataset", "nor are 15 to 20"
    counted = ",hold,trend\n" + "".join(f"{n},{0.1 + n / 50:.2f},{0.2 + n / 70:.2f}\n" for n in range(6))
    assert read_scores(table_of(counted)).repeats == "run"


def test_numbered_samples_that_all_methods_share_are_most_likely_paired_and_no_score():
    table = rows("estimator,sample_id,abs_bias", "A", "B", values=range(20))
    error = asked(table)
    assert error.guess == Reading(paired="sample_id", lower_is_better=True)
    assert error.read.repeats == "block"
    numbered = table.rename(columns={"sample_id": "experiment_num", "abs_bias": "accuracy"})
    assert read_scores(numbered).roles["run"] == "experiment_num"


def test_cells_with_a_sign_of_percent_are_read_where_all_have_it():
    read = read_scores(table_of("method,run,EER\nA,1,57.7%\nA,2,55.0 %\nB,1,0.9%\nB,2,\n"), Reading(scale="fractions"))
    assert read.frame["value"].tolist() == pytest.approx([0.577, 0.55, 0.009])
    assert read.left_out == {("", "B"): [5]}
