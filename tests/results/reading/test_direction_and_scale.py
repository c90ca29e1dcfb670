"""Which way is better and what scale scores have, told from names and numbers alone."""

import pandas as pd
import pytest

from results.reading.direction_and_scale import as_fractions, declared, is_lower_better, metric_of, scale_of
from results.reading.scores_table import AskedError, ScoresError


def own(*values, name="acc"):
    methods = ["A", "B"] * len(values)
    return pd.DataFrame(
        {
            "row": range(2, 2 + len(values)),
            "name": name,
            "dataset": "",
            "method": methods[: len(values)],
            "value": values,
        }
    )


def test_the_direction_is_given_or_declared_or_of_the_metric_and_else_asked():
    assert not is_lower_better("loss", "loss", "true", given=False)
    assert is_lower_better("accuracy", "accuracy", "true", given=None)
    assert not is_lower_better("accuracy", "accuracy", "", given=None)
    with pytest.raises(AskedError, match="distance may be better when lower") as caught:
        is_lower_better("distance", "distance", "", given=None)
    assert caught.value.likely == {"lower_is_better": True}
    assert caught.value.taken == "--lower-is-better"


def test_a_name_that_says_no_metric_has_that_of_the_column_beside_it():
    table = pd.DataFrame({"eval_metric": ["rmse", "rmse"], "test_error": [0.5, 0.7], "says": ["Points", "points"]})
    assert metric_of(table, "test_error") == "rmse"
    assert metric_of(table, "test_mae") == "test_mae"
    assert metric_of(table.assign(eval_metric=["rmse", "auc"]), "test_error") == "test_error"
    assert (declared(table, "says", "x"), declared(table, "other", "x")) == ("points", "")


@pytest.mark.parametrize(
    ("values", "metric", "given", "scale"),
    [
        ((0.5, 0.7), "acc", None, "fractions"),
        ((50, 0.0), "acc", None, "percent"),
        ((50, 70), "loss", None, "points"),
        ((0.98, 1.02), "hypervolume", None, "points"),
        ((-4.0, 150.0), "reward", None, "points"),
        ((0.5, 0.7), "acc", "percent", "percent"),
        ((50, 700), "acc", "times", "times"),
    ],
)
def test_the_scale_is_the_given_one_or_that_of_all_values(values, metric, given, scale):
    assert scale_of(own(*values), metric, metric, lower=False, given=given) == scale


def test_values_of_no_scale_are_refused_or_asked_about():
    for values, given, said in (
        ((50, 170), None, "row 3: 170 in 'acc' is not within 0 and 100"),
        ((0.5, 70), None, "rows 2 and 3: 'acc' has 0.5 of A and 70 of B, fractions beside percent"),
        ((0.5, -0.1), "times", "row 3: -0.1 in 'acc' has no ratio"),
        ((0.5, float("inf")), "points", "row 3: inf in 'acc' is no score"),
    ):
        with pytest.raises(ScoresError, match=said):
            scale_of(own(*values), "acc", "acc", lower=False, given=given)
    with pytest.raises(AskedError) as caught:
        scale_of(own(0.5, 70), "test_error", "test_error", lower=True, given=None)
    assert caught.value.likely == {"scale": "points"}


def test_percentages_become_fractions_and_further_scores_beyond_them_are_dropped():
    long = pd.concat([own(50, 70), own(0.5, None, name="nmi"), own(500, 2, name="steps")])
    found = as_fractions(long, "acc", "percent")
    assert [*zip(found["name"], found["value"], strict=True)] == [("acc", 0.5), ("acc", 0.7), ("nmi", 0.5)]
    assert as_fractions(long, "acc", "points")["value"].tolist() == [50, 70, 0.5]
