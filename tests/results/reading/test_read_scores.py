"""What the reader takes columns and rows for, and what it asks: a small table of each kind, with what is right."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from results.answer.audit import audit
from results.reading.columns import is_error_rate, is_only_time, is_score, means_lower
from results.reading.read_scores import read_scores
from results.reading.scores_table import OpenQuestionsError, Reading, ScoresError


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


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("79.0 ± -0.5", r"row 4: give 'score ±' \(0 or more\) as a number"),
        ("79.0 ± a", "row 4: '79.0 ± a' in 'score' is no number"),
    ],
)
def test_a_deviation_that_is_none_is_refused_with_its_row(cell, said):
    with pytest.raises(ScoresError, match=said):
        audit(table_of(f"method,score\nA,81.0 ± 0.5\nB,80.2 ± 0.4\nC,{cell}\n"))


def test_columns_are_methods_unasked_only_where_nothing_else_can_name_them():
    wide = table_of("dataset,A,B\n" + "".join(f"d{n},{70 + n}.5,{60 + 2 * n}.1\n" for n in range(7)))
    assert set(read_scores(wide).frame["method"]) == {"A", "B"}
    kinds = wide.assign(kind=list("xxyyxxy"))
    assert asked(kinds).guess == Reading(method="columns")
    assert "--method kind" in str(asked(kinds))
    sure = kinds.rename(columns={"A": "r2_A", "B": "r2_B"})
    assert set(read_scores(sure).frame["method"]) == {"r2_A", "r2_B"}, "one metric of several methods"
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
    table.loc[4, "row name"] = "Average"
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
    twice = table_of("\n".join([head, *lines, *lines])).assign(percent=["1"] * 7 + ["5"] * 7, sem="0.01")
    error = asked(twice)
    assert "percent varies within Net_MSE" in str(error), "a number that was planned is asked about"
    assert error.guess == Reading(dataset="dataset+percent")
    assert error.read.frame["dataset"].nunique() == 7, "two scores of one dataset are no two datasets"
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


RUNS = "method,seed,accuracy\nA,1,71.2\nA,2,71.9\nB,1,68.1\nB,2,69.4\n"


@pytest.mark.parametrize(
    ("text", "reading", "said"),
    [
        ("method,acc_mean,acc_std\nA,71,1\nB,70,1\n", Reading(n="five"), "--n five: write the number of runs behind"),
        ("method,acc_mean,acc_std\nA,71,1\nB,70,1\n", Reading(n="1"), "--n 1: write the number of runs behind"),
        ("method,acc_mean,acc_std,n\nA,71,-1,5\nB,70,1,5\n", Reading(), r"row 2: give 'acc_std' \(0 or more\) and 'n'"),
        (
            "method,acc_mean,acc_std,runs\nA,71,1,5\nB,70,1,0\n",
            Reading(),
            r"row 3: give 'acc_std' .* and 'runs' \(1 or",
        ),
        (
            RUNS.replace("seed", "epoch").replace(",1,", ",x,").replace(",2,", ",y,"),
            Reading(last="epoch"),
            "no numbers",
        ),
        ("method,seed,acc\nA,1,\nB,1,\n", Reading(score="acc"), "no row has a number in 'acc'"),
        ("method,seed,acc\nA,1,0.5\nB,1,0.7\nB,2,1.5\n", Reading(scale="fractions"), "within 0 and 1; write fractions"),
        (
            "method,seed,acc\nA,1,50\nB,1,170\n",
            Reading(scale="percent"),
            "row 3: 170 in 'acc' is not within 0 and 100$",
        ),
        (
            "method,seed,acc,reproduce_lower_is_better\nA,1,50,True\nB,1,60,False\n",
            Reading(),
            "lower_is_better: true in one row and false in another of acc; compare one kind",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_line_that_says_what_to_do(text, reading, said):
    with pytest.raises(ScoresError, match=said) as caught:
        read_scores(table_of(text), reading)
    assert "\n" not in str(caught.value)


def test_questions_end_and_what_is_known_by_then_is_said(monkeypatch):
    monkeypatch.setattr("results.reading.read_scores._MOST_QUESTIONS", 1)
    error = asked(table_of("tool,mean_distance\nA,71\nB,70\n"))
    assert (error.guess, error.read) == (Reading(lower_is_better=True), None)


def test_the_column_of_datasets_can_be_that_of_the_methods():
    read = read_scores(table_of(RUNS.replace("method", "task")), Reading(method="task"))
    assert (set(read.frame["method"]), set(read.frame["dataset"])) == ({"A", "B"}, {""})


def test_two_columns_of_words_are_one_method_each_or_together():
    error = asked(
        table_of("Kind of net,Input size,accuracy\nA,(3 x 3),71.2\nA,(4 x 4),71.9\nB,(3 x 3),68.1\nB,(5 x 5),69\n")
    )
    assert error.guess == Reading(method="Kind of net+Input size")
    assert "--method 'Kind of net' takes one, --method 'Kind of net+Input size' each combination" in str(error)
    assert error.questions[0][1] == "--method 'Kind of net+Input size'"


def test_scores_of_classes_beside_the_score_and_several_rows_of_a_method_are_no_datasets():
    one_each = "model,accuracy,cat,dog,bird\nA,71.2,70.1,72.2,73.1\nB,68.1,69.1,67.1,66.5\n"
    assert read_scores(table_of(one_each)).score == "accuracy"
    several = "model,cat,dog,bird\nA,70.1,72.2,73.1\nA,71.1,72.9,73.5\nB,69.1,67.1,66.5\n"
    assert asked(table_of(several)).guess == Reading(score="cat")


def test_numbered_columns_beside_a_column_of_that_name_are_scores():
    table = table_of("method,seed,seed0,seed1,accuracy\nA,1,5,6,71.2\nA,2,7,8,71.9\nB,1,5,6,68.1\nB,2,7,8,69.4\n")
    read = read_scores(table)
    assert (read.score, read.roles["run"]) == ("accuracy", "seed")


def test_runs_of_a_full_column_of_sweeps_are_searches_only_if_one_was_chosen_of_each():
    sweeps = "method,sweep,lr,val_acc,test_acc\n" + "".join(
        f"{m},{m}{s},0.{s}{t},{60 + t},{70 + s + 3 * (m == 'A') + t / 7:.2f}\n"
        for m in "AB"
        for s in range(3)
        for t in (1, 2)
    )
    error = asked(table_of(sweeps))
    assert "--best-of VALIDATION takes the best trial of each sweep" in str(error)
    chosen = read_scores(table_of(sweeps), Reading(best_of="val_acc", score="test_acc"))
    assert (chosen.repeats, len(chosen.frame)) == ("search", 6)
    tested = table_of(sweeps).iloc[1::2].drop(columns=["lr", "val_acc"])
    assert read_scores(tested).repeats == "search", "one row of each sweep"


def test_one_of_two_numbers_of_runs_is_enough_and_else_both_are_taken():
    both = "method,run,seed,accuracy\nA,1,7,71.2\nA,2,8,71.9\nB,1,7,68.1\nB,2,8,69.4\n"
    read = read_scores(table_of(both))
    assert (read.roles["run"], read.unread["seed"]) == ("run", "another number of the runs")
    together = "method,run,seed,accuracy\nA,1,7,71.2\nA,1,8,71.9\nA,2,9,70.9\nB,1,7,68.1\nB,1,8,69.4\nB,2,9,69.9\n"
    assert read_scores(table_of(together)).roles["run"] == "seed"
    twice = "method,run,seed,accuracy\nA,1,7,71.2\nA,1,7,71.9\nA,2,8,70.9\nB,1,7,68.1\nB,2,8,69.4\n"
    error = asked(table_of(twice))
    assert "rows 2 and 3 are both method A, run 1, run 7; number the runs apart" in str(error)
    assert error.guess == Reading(run="row")


def test_the_best_of_the_score_itself_is_taken_in_the_given_direction():
    text = "method,search,trial,drop_in_error\n" + "".join(
        f"{m},{s},{t},{20 + 3 * s + 5 * t + (m == 'A')}\n" for m in "AB" for s in (1, 2) for t in (0, 1)
    )
    taken = Reading(score="drop_in_error", best_of="drop_in_error", lower_is_better=True, scale="points")
    assert read_scores(table_of(text), taken).frame["value"].tolist() == [24, 27, 23, 26]
    read = read_scores(table_of(text), Reading(**{**vars(taken), "lower_is_better": False}))
    assert read.frame["value"].tolist() == [29, 32, 28, 31]


def test_metrics_without_numbers_of_runs_are_numbered_each():
    text = "method,metric,value\n" + "".join(
        f"{m},{k},{v}\n" for m in "AB" for v in (70.5, 71.5) for k in ("acc", "loss")
    )
    own = read_scores(table_of(text)).frame
    assert own[own["metric"] == "acc"].groupby("method")["run"].apply(list).tolist() == [["1", "2"]] * 2


def test_datasets_that_are_spelled_alike_are_one_unless_their_rows_clash():
    text = "method,dataset,seed,accuracy\nA,CUB,1,71.2\nA,cub,2,71.9\nB,CUB,1,68.1\nB,cub,2,69.4\n"
    read = read_scores(table_of(text))
    assert set(read.frame["dataset"]) == {"CUB"}
    assert read.said == ("'CUB' and 'cub' are taken as one dataset.",)


def test_records_say_direction_and_scale():
    text = "method,seed,score,reproduce_lower_is_better,reproduce_scale\nA,1,0.5,True,points\nB,1,0.7,True,points\n"
    read = read_scores(table_of(text), Reading(score="score"))
    assert (read.lower_is_better, read.scale) == (True, "points")


def test_a_score_of_the_suite_beside_the_compared_one_is_kept_if_it_is_a_percentage():
    text = "method,seed,map_at_r,precision_at_1\nA,1,71.2,80.1\nB,1,68.1,{}\n"
    assert read_scores(table_of(text.format(79.5))).scores == ("map_at_r", "precision_at_1")
    kept = read_scores(table_of(text.format(179.5)))
    assert set(kept.frame["metric"]) == {"map_at_r"}


def test_scores_beyond_percentages_are_points_or_asked_about():
    text = "method,seed,{}\nA,1,{}\nA,2,3\nB,1,5\nB,2,7\n"
    assert read_scores(table_of(text.format("reward", 150))).scale == "points"
    assert read_scores(table_of(text.format("quality", -4))).scale == "points"
    two = table_of(text.format("quality", 150).replace("B,2,7", "B,2,180"))
    assert asked(two).guess == Reading(scale="points")
    with pytest.raises(ScoresError, match="row 2: 150 in 'quality' is not within 0 and 100; if the scores are no perc"):
        read_scores(table_of(text.format("quality", 150)))
    assert read_scores(two, Reading(scale="points")).scale == "points"


def test_an_empty_column_without_a_name_is_left_out():
    read = read_scores(table_of(RUNS).assign(**{"Unnamed: 3": ""}))
    assert "row name" not in read.unread


def test_a_column_with_one_value_names_no_methods_beside_one_with_several():
    text = "Model,Method,accuracy\nResNet,Fine-Tune,0.71\nViT,Fine-Tune,0.73\nMLP,Fine-Tune,0.68\n"
    assert read_scores(table_of(text)).roles["method"] == "Model"
    assert read_scores(table_of(text.replace("Model", "model_name"))).roles["method"] == "model_name"


def test_parts_of_the_data_are_no_blocks_whatever_they_are_called_beside():
    table = table_of("model,split,auroc\nA,test,70\nA,external_test,71\nB,test,72\nB,external_test,75\n")
    error = asked(table)
    assert "split names parts of the data; keep one of them: --where split=test" in str(error)
    assert error.guess == Reading(where=(("split", "test"),))
    numbered = table.assign(split=["test 1", "test 2"] * 2)
    assert read_scores(numbered).repeats == "block", "two splits"


def crossed(**more):
    """One score of two methods in each image in three weathers."""
    cells = [(m, f"i{n}", w) for m in "AB" for n in range(7) for w in ("sun", "rain", "fog")]
    table = pd.DataFrame(cells, columns=["method", "image", "weather"], index=range(2, len(cells) + 2))
    scores = [50 + 3 * (m == "B") + int(n[1]) * (2 + (m == "B")) + 7 * len(w) for m, n, w in cells]
    return table.assign(accuracy=list(map(str, scores)), **more)


def test_an_image_in_several_weathers_is_one_dataset_and_counts_with_its_mean():
    read = read_scores(crossed())
    assert (read.repeats, read.column, len(read.frame)) == ("dataset", "image", 14)
    assert read.said == ("Each image counts once, with the mean of its scores: another weather is no further dataset.",)
    means = crossed().assign(accuracy=lambda t: t["accuracy"].astype(float)).groupby(["method", "image"])["accuracy"]
    assert np.allclose(sorted(100 * read.frame["value"]), sorted(means.mean()))
    (found,) = audit(crossed()).answers.values()
    assert found.pairs[0].p == pytest.approx(2 / 2**7)
    ratios = read_scores(crossed(), Reading(scale="times")).frame
    logs = np.log(crossed()["accuracy"].astype(float)).groupby([crossed()["method"], crossed()["image"]]).mean()
    assert np.allclose(sorted(np.log(ratios["value"])), sorted(logs)), "ratios have geometric means"


def test_weathers_that_not_all_methods_have_are_left_out_of_the_means():
    read = read_scores(crossed().drop(index=2))
    assert read.said[-1].endswith("Left out, since not all methods have them: i0 sun.")
    assert len(read.frame) == 14
    apart = crossed().assign(weather=lambda t: np.where(t["method"] == "A", t["weather"], t["weather"] + "y"))
    with pytest.raises(ScoresError, match="is there for all methods; --where weather=VALUE keeps one of them"):
        read_scores(apart, Reading(dataset="image+weather"))


def test_a_series_of_one_dataset_alone_is_a_dataset_of_its_own():
    table = crossed().assign(dataset=lambda t: np.where(t["image"] < "i4", "small", "large"))
    read = read_scores(table.drop_duplicates(["method", "image"]).drop(columns="weather"))
    assert (read.repeats, read.frame["dataset"].nunique(), read.said) == ("dataset", 7, ())
    assert read_scores(table).frame["dataset"].nunique() == 7


def test_metrics_below_each_other_are_scores_and_no_methods():
    cells = [(m, s, k) for m in "AB" for s in range(3) for k in ("accuracy", "r2")]
    table = pd.DataFrame(cells, columns=["condition", "seed", "metric"], index=range(2, 14)).astype(str)
    table["score"] = [f"0.{50 + 7 * at % 40}" for at in range(12)]
    read = read_scores(table)
    assert (read.score, read.roles["method"], len(read.frame)) == ("accuracy", "condition", 12)
    assert read_scores(table, Reading(score="r2")).score == "r2"
    of_two = table.assign(task="x")
    other = of_two[of_two["metric"] == "r2"].assign(task="y").set_axis(range(20, 26))
    found = audit(pd.concat([of_two, other]))
    assert (list(found.answers), found.table.said) == (["x"], ("Left out: y, without accuracy.",))
    distances = table.assign(metric=["cosine", "euclidean"] * 6)
    assert asked(distances).guess.method == "condition+metric", "a setting that is called metric"


def test_a_budget_in_words_is_no_counter():
    table = table_of("method,budget,accuracy\nA,low,70\nA,high,71\nB,low,72\nB,high,75\n")
    assert read_scores(table).roles["dataset"] == "budget"


def test_a_score_of_training_is_not_compared_unasked_beside_others():
    table = table_of("model,seed,train_loss,quality\nA,1,0.5,71\nA,2,0.6,72\nB,1,0.7,75\nB,2,0.4,73\n")
    assert asked(table).guess == Reading(score="train_loss", lower_is_better=None)
    assert read_scores(table.rename(columns={"quality": "pred_accuracy"})).score == "pred_accuracy"


def test_a_setting_that_some_methods_do_not_have_is_one_of_the_others():
    cells = [(m, k, s) for m, kinds in (("base", ["none"]), ("ours", ["l1", "l2"])) for k in kinds for s in range(4)]
    table = pd.DataFrame(cells, columns=["method", "penalty", "seed"], index=range(2, 14)).astype(str)
    table["accuracy"] = [f"7{at % 5}.{at}" for at in range(12)]
    read = read_scores(table)
    assert list(read.frame["method"].unique()) == ["base none", "ours l1", "ours l2"]
    sites = table.assign(penalty=["north"] * 4 + ["north"] * 4 + ["south"] * 4)
    assert asked(sites).guess == Reading(method="method+penalty"), "a site that one method was not tried on is none"
    unnumbered = table.drop(columns="seed")
    assert asked(unnumbered).guess == Reading(method="method+penalty"), "nothing else tells the rows apart"


def test_means_of_a_cross_validation_are_taken_as_those_of_folds():
    table = table_of("method,cv_f1_mean,cv_f1_std\nA,0.8,0.01\nB,0.7,0.02\n")
    assert (read_scores(table).repeats, read_scores(table).folds) == ("uncounted summary", -1)
    assert read_scores(table, Reading(n="5")).folds == 5
    assert read_scores(table, Reading(n="5-runs")).folds == 0
    plain = table.rename(columns=lambda name: name.removeprefix("cv_")).assign(replicates="8")
    assert read_scores(plain).roles["n"] == "replicates"


def test_columns_of_one_metric_are_no_methods_unasked_where_rows_are_not_datasets():
    head, lines = "condition,kept_acc,lost_acc", "".join(f"c{n},{70 + n}.5,{60 + 2 * n}.1\n" for n in range(7))
    error = asked(table_of(f"{head}\n{lines}"))
    assert error.guess == Reading(method="columns", dataset="condition")
    assert "or condition names them (--method condition)" in str(error)
    assert set(read_scores(table_of(f"{head}\n{lines}".replace("condition", "dataset"))).frame["method"]) == {
        "kept_acc",
        "lost_acc",
    }
    spreads = table_of("condition,kept_acc,kept_std,lost_acc,lost_std\nA,71.2,0.4,60.1,0.9\nB,70.1,0.5,61.5,0.7\n")
    assert asked(spreads).guess == Reading(method="condition", score="kept_acc")


def test_a_column_with_its_deviation_beside_it_is_the_score_and_a_deviation_no_method():
    table = table_of(
        "algorithm,mean_distance,std_distance,best_distance,worst_distance\nA,5.1,0.2,5,6\nB,5.9,0.3,5,7\n"
    )
    assert asked(table).guess == Reading(lower_is_better=True)
    wide = table_of("dataset,A,A_std,B,B_std\n" + "".join(f"d{n},{70 + n},1,{60 + 2 * n},2\n" for n in range(7)))
    assert set(read_scores(wide).frame["method"]) == {"A", "B"}


def test_the_only_column_of_words_names_what_is_compared():
    read = read_scores(table_of("tool,purity,NMI,ARI\nA,0.71,0.6,0.5\nB,0.68,0.7,0.4\n"))
    assert read.roles["method"] == "tool"


def test_wins_below_columns_say_that_columns_are_methods():
    table = table_of("row name,mlp,fcn,resnet\nECG,71.2,72.3,80.1\nIMAGE,65.3,66.1,70.4\nAverage,68,69,75\n")
    assert asked(table).guess == Reading(method="columns", dataset="row name")
    wins = table.assign(**{"row name": ["ECG", "IMAGE", "Wins"]})
    assert set(read_scores(wins).frame["method"]) == {"mlp", "fcn", "resnet"}


def test_deviations_of_unknown_numbers_of_runs_are_not_needed_over_six_datasets():
    lines = [f"{m},d{n},{70 + n + 2 * (m == 'A')}.5 ± 0.4" for m in "AB" for n in range(6)]
    table = table_of("\n".join(["method,dataset,accuracy", *lines]))
    read = read_scores(table)
    assert (read.repeats, read.frame["dataset"].nunique()) == ("dataset", 6)
    assert "nothing says of how many runs. --n with their number answers for each dataset" in read.said[0]
    assert read_scores(table, Reading(n="5")).repeats == "summary"
    assert read_scores(table[table["dataset"] != "d5"]).repeats == "uncounted summary"


def test_errors_within_0_and_1_are_compared_as_they_are_written():
    read = read_scores(table_of("method,seed,test_error\nA,1,0.31\nA,2,0.32\nB,1,0.41\nB,2,0.43\n"))
    assert (read.scale, list(read.frame["value"])) == ("points", [0.31, 0.32, 0.41, 0.43])
    assert "--scale fractions, or percent" in read.said[0]


def test_that_more_is_taken_as_better_is_said_where_the_name_does_not_say_it():
    table = table_of(RUNS.replace("accuracy", "median"))
    assert "score median, taken as percent (within 0 and 100), higher taken as better." in audit(table).read
    assert "better" not in audit(table_of(RUNS)).read
    assert "higher" not in audit(table, Reading(lower_is_better=False)).read


@pytest.mark.parametrize("form", ["{}_seed{}", "{}/run_{}", "{} (seed {})", "{}-rep{}", "{} [Seed_{}]"])
def test_numbers_of_runs_in_the_names_of_methods_are_taken_out_and_said(form):
    cells = [f"{form.format(m, n)},{70 + n + 3 * (m == 'ppo')}.5" for m in ("ppo", "sac 2%") for n in range(4)]
    read = read_scores(table_of("\n".join(["agent,accuracy", *cells, "random,50.1"])))
    assert read.frame.groupby("method", sort=False).size().to_dict() == {"ppo": 4, "sac 2%": 4, "random": 1}
    assert (read.repeats, read.column) == ("run", "run")
    assert "the methods are ppo, sac 2%; --method agent takes each name as one" in read.said[0]
    assert read_scores(table_of("\n".join(["agent,accuracy", *cells])), Reading(method="agent")).frame.shape[0] == 8
    assert len({*read_scores(table_of("\n".join(["agent,accuracy", *cells])), Reading(run="row")).frame["method"]}) == 8


def test_numbers_that_may_be_of_runs_or_of_kinds_are_asked_about():
    cells = [f"{m}-s{n},{70 + n + 3 * (m == 'unet')}.5" for m in ("unet", "fcn") for n in (1, 2)]
    table = table_of("\n".join(["model,iou", *cells]))
    error = asked(table)
    assert error.guess == Reading(run="model")
    assert "--run model takes it so, --method model takes each name as a method" in str(error)
    assert error.read.frame.groupby("method").size().tolist() == [2, 2]
    assert read_scores(table, Reading(method="model")).frame["method"].nunique() == 4
    one = table_of("model,iou\nunet_seed1,70.1\nunet_seed2,71.2\nfcn,65.5\n")
    assert read_scores(one).frame["method"].nunique() == 3, "one method with numbers may have kinds"
    assert read_scores(table.assign(seed=list("1212")), Reading()).frame["method"].nunique() == 4
    versions = table_of("model,iou\nnet_v1,70.1\nnet_v2,71.2\nfcn_v1,65.5\nfcn_v2,66.5\n")
    assert read_scores(versions).frame["method"].nunique() == 4


def test_of_two_columns_of_names_of_runs_one_can_name_the_methods():
    read = read_scores(table_of("run,seed,accuracy\na_x,s_a,71\nb_x,s_a,72\na_y,s_b,73\nb_y,s_b,74\n"))
    assert (read.roles["method"], read.roles["run"]) == ("run", "seed")


def test_a_time_that_was_planned_is_no_time_that_was_measured():
    table = rows("model,time_budget_s,seed,accuracy", "A", "B", dataset=("60", "600"), values=(1, 2, 3))
    assert asked(table).guess == Reading(dataset="time_budget_s")
    measured = table.assign(time_budget_s=[str(60 + n) for n in range(12)]).iloc[[0, 1, 2, 6, 7, 8]]
    assert read_scores(measured).unread["time_budget_s"] == "a time"


def test_of_scores_of_several_metrics_the_comparable_one_is_most_likely():
    table = rows("model,competition,gain_raw", "A", "B", dataset=("x", "y"), values=(1,))
    assert asked(table.assign(gain_normalized=["0.1", "-0.2", "0.3", "-0.4"])).guess.score == "gain_normalized"


def test_a_place_is_a_dataset_and_names_no_methods():
    lines = [f"{city},{n},0.{80 + n}1,0.{70 + 2 * n}3" for city in ("rome", "oslo") for n in range(4)]
    read = read_scores(table_of("\n".join(["city,seed,r2_linear,r2_gcn", *lines])))
    assert (read.roles["dataset"], set(read.frame["method"])) == ("city", {"r2_linear", "r2_gcn"})


def test_a_deviation_beside_a_seed_is_none_of_runs_and_says_nothing_of_them():
    text = "method,seed,dice_mean,dice_std\nA,0,0.91,0.06\nB,0,0.95,0.04\n"
    read = read_scores(table_of(text))
    assert (read.repeats, set(read.frame["run"])) == ("run", {"0"})
    assert "dice_std is not used: each row is of one seed, so it is no deviation of runs" in read.said[0]
    assert read_scores(table_of(text), Reading(n="5")).repeats == "summary"
    assert read_scores(table_of(text.replace("seed", "n_seeds").replace(",0,", ",3,"))).repeats == "summary"


def test_means_and_deviations_among_folds_and_runs_sum_them_up():
    for name, last in (("fold", ""), ("seed", "mean"), ("fold", "std")):
        text = f"method,{name},acc\n" + "".join(
            f"{m},{f},{0.7 + at / 50 + f * 0.011 % 0.007:.4f}\n" for at, m in enumerate("AB") for f in range(1, 5)
        )
        read = read_scores(table_of(f"{text}A,{last},0.705\nB,{last},0.723\n"))
        assert len(read.frame) == 8
        assert f"({name} {last or 'empty'}), which sum up others." in read.said[0]


def test_an_id_of_every_row_beside_a_seed_numbers_no_runs():
    grid = [(a, lr, n, s) for a in "AB" for lr in (0.1, 0.2) for n in (512, 2048) for s in range(3)]
    lines = [f"{a}-{lr}-{n}-{s},{a},{s},{lr},{n},{50 + at}.{s}" for at, (a, lr, n, s) in enumerate(grid)]
    error = asked(table_of("\n".join(["run_id,algo,seed,learning_rate,n_steps,accuracy", *lines])))
    assert error.read.roles["run"] == "seed"
    assert {"learning_rate", "n_steps"} <= {*f"{error.guess.method}+{error.guess.dataset}".split("+")}


def test_a_number_that_only_some_methods_have_is_a_setting_where_rows_are_not_told_apart():
    grid = [("A", s, "", b) for s in range(3) for b in ("x", "y")] + [
        ("B", s, e, b) for s in range(3) for e in (0.1, 0.2) for b in ("x", "y")
    ]
    lines = [f"{m},{b},{s},{e},{50 + at}.{s}" for at, (m, s, e, b) in enumerate(grid)]
    read = read_scores(table_of("\n".join(["algo,env,seed,exploration,accuracy", *lines])))
    assert set(read.frame["method"]) == {"A", "B exploration=0.1", "B exploration=0.2"}


def test_epochs_at_which_the_runs_of_a_method_stopped_need_no_answer_and_those_of_a_curve_do():
    ends = {"A": (16, 22, 9, 17, 12), "B": (31, 14, 20, 11, 25)}
    scores = {"A": (71.2, 70.4, 70.9, 71.6, 70.1), "B": (72.9, 73.4, 72.2, 72.7, 73.0)}

    def told(ends):
        rows = [f"{m},{e},{s}" for m in "AB" for e, s in zip(ends[m], scores[m], strict=True)]
        return table_of("\n".join(["method,epoch,accuracy", *rows]))

    assert read_scores(told(ends)).unread["epoch"] == "differs from run to run"
    for curve in (
        {m: tuple(sorted(own)) for m, own in ends.items()},
        {"A": (1, 2, 3, 4, 5), "B": (1, 2, 3, 4, 6)},
        dict.fromkeys("AB", (16, 22, 9, 17, 12)),
    ):
        assert asked(told(curve)).guess.last == "epoch"


def test_a_column_without_a_cell_names_no_methods():
    text = "experiment,split,wer,train_loss\n" + "".join(
        f"{m},{s},{w + at},{loss}\n"
        for at, m in enumerate(("base", "ours", "old"))
        for s, w, loss in (("dev", 15.1, f"0.{at}1"), ("test", 16.3, ""))
    )
    error = asked(table_of(text))
    assert error.read.roles["method"] == "experiment"


def test_times_in_seconds_and_speedups_are_no_methods():
    assert [is_only_time(name) for name in ("ilp_time_s", "Time (s)", "Time-CNN")] == [True, True, False]
    head = "instance,ilp_length,gram_length,ilp_time_s,speedup_vs_ilp"
    table = table_of(f"{head}\n" + "".join(f"i{n},1{n}.5,1{n}.1,3.{n},2.{n}\n" for n in range(7)))
    read = read_scores(table, Reading(method="columns", dataset="instance"))
    assert set(read.frame["method"]) == {"ilp_length", "gram_length"}


def test_a_year_of_a_fold_is_a_fold():
    read = read_scores(rows("model,fold_year,accuracy", "A", "B", values=range(2015, 2021)))
    assert (read.repeats, read.column, read.folds) == ("fold", "fold_year", 6)
