"""Whether a lower score is better, and on which scale scores are: by names, by values, and by what a record says."""

import numpy as np
import pandas as pd

from results.reading.cells import columns_by_name, texts_of
from results.reading.columns import (
    is_bounded,
    is_error_rate,
    is_score,
    is_unbounded,
    means_lower,
    names_no_metric,
    words_of,
)
from results.reading.scores_table import AskedError, ScoreScale, ScoresError

_JUST_ABOVE = 2.0


def declared(rows: pd.DataFrame, column: str, score: str) -> str:
    """Return what a record of Every Eval Ever says of a score in a column; empty without one.

    Raises:
        ScoresError: It says two things.
    """
    by_name = columns_by_name(rows)
    if column not in by_name:
        return ""
    said = [text for text in texts_of(rows[by_name[column]]).str.casefold().unique() if text]
    if len(said) > 1:
        what = f"{column.removeprefix('reproduce_')}: {said[0]} in one row and {said[1]} in another"
        raise ScoresError(f"{what} of {score}; compare one kind")
    return said[0] if said else ""


def metric_of(table: pd.DataFrame, score: str) -> str:
    """Return the name of a score; of one such as `test_error` the metric that a column beside it says, if it is one."""
    beside = (name for name in table.columns if "metric" in words_of(name) and name != score)
    if not names_no_metric(score) or (column := next(beside, None)) is None:
        return score
    said = texts_of(table[column]).unique()
    return str(said[0]) if len(said) == 1 and is_score(said[0]) else score


def is_lower_better(score: str, metric: str, said: str, given: bool | None) -> bool:
    """Tell whether a lower score is better: as given, as a record says, or by the name of its metric.

    Raises:
        AskedError: The name does not say it.
    """
    if given is not None:
        return given
    if said:
        return said in ("true", "1", "yes")
    if (lower := means_lower(metric)) is None:
        raise AskedError(
            f"{score} may be better when lower; add --lower-is-better, or --higher-is-better", lower_is_better=True
        )
    return lower


def can_be_percentage(metric: str) -> bool:
    """Tell whether a metric of this name can be fractions or percent: one where more is better, or an error rate."""
    return means_lower(metric) is False or is_error_rate(metric)


def as_fractions(long: pd.DataFrame, score: str, scale: ScoreScale) -> pd.DataFrame:
    """Return the rows with a number, percentages as fractions of 1. Further scores must be within 0 and 100."""
    parts = []
    for name, own in long.groupby("name", sort=False):
        own = own[own["value"].notna()]
        percent = scale == "percent" if name == score else not own["value"].between(0, 1).all()
        if name == score or own["value"].between(0, 100).all():
            numbers = [column for column in ("value", "deviation") if column in own]
            parts.append(own.assign(**{column: own[column] / (100 if percent else 1) for column in numbers}))
    return pd.concat([one for one in parts if len(one)], ignore_index=True)


def scale_of(own: pd.DataFrame, score: str, metric: str, *, lower: bool, given: ScoreScale | None) -> ScoreScale:
    """Return the scale that all methods have on all datasets.

    Args:
        own: A row for each number: row, dataset, method, value.
        score: Its name, for messages.
        metric: The metric that says what its values can be.
        lower: Whether a lower score is better. Errors within 0 and 1 are points: they can be anything.
        given: What is said of it, if something is.

    Raises:
        AskedError: It is most likely `points`.
        ScoresError: Numbers are infinite, outside of the scale, or of two scales.
    """
    values = own["value"]
    if len(infinite := own[np.isinf(values)]):
        bad = infinite.iloc[0]
        raise ScoresError(f"row {bad.row}: {bad.value} in {score!r} is no score; write the number, or leave it empty")
    if given is None and not can_be_percentage(metric):
        given = "points"
    if given is None and 1 < values.max() <= _JUST_ABOVE and values.min() >= 0 and values.median() > 0.5:
        given = "points"  # A hypervolume of 1.02 is no percentage.
    if given == "times":
        _check_positive(own, score)
    if given in ("times", "points"):
        return given
    if given is not None or not values.between(0, 100).all():
        return _within(own, score, given)
    known = own[values != 0] if (values != 0).any() else own  # 0 is 0 in every scale.
    low = known["value"].between(0, 1).groupby([known["dataset"], known["method"]], sort=False).all()
    if low.all():
        return "points" if lower else "fractions"
    if low.any():
        text = _two_scales(known, score, *(low[low == of].index[0] for of in (True, False)))
        raise AskedError(text, scale="points") if lower else ScoresError(text)
    _refuse_mixed_rows(own, score)
    return "percent"


def _check_positive(own: pd.DataFrame, score: str) -> None:
    low = own[own["value"] <= 0]
    if len(low):
        one = low.iloc[0]
        raise ScoresError(f"row {one['row']}: {one['value']:g} in {score!r} has no ratio; use --scale points")


def _within(own: pd.DataFrame, score: str, given: ScoreScale | None) -> ScoreScale:
    """The given scale, or points for scores beyond percentages; an accuracy of 101 is refused."""
    high = 1 if given == "fractions" else 100
    outside = own[~own["value"].between(0, high)]
    if given is not None and outside.empty:
        return given
    beyond = (own["value"] < 0).any() or (own["value"] > high).mean() > 0.5
    if given is None and not is_bounded(score) and (is_unbounded(score) or beyond):
        return "points"
    remedy = "; if the scores are no percentages, add --scale points"
    if given:
        remedy = "; write fractions of 1" if given == "fractions" else ""
    row, value = outside.iloc[0]["row"], outside.iloc[0]["value"]
    text = f"row {row}: {value:g} in {score!r} is not within 0 and {high:g}{remedy}"
    if given is None and not is_bounded(score) and len(outside) > 1:
        raise AskedError(text, scale="points")
    raise ScoresError(text)


def _two_scales(own: pd.DataFrame, score: str, *keys: tuple[str, str]) -> str:
    rows = [own[(own["dataset"] == dataset) & (own["method"] == method)].iloc[0] for dataset, method in keys]
    of = [f"{method} on {dataset}" if dataset else method for dataset, method in keys]
    return (
        f"rows {rows[0]['row']} and {rows[1]['row']}: {score!r} has {rows[0]['value']:g} of {of[0]} and "
        f"{rows[1]['value']:g} of {of[1]}, fractions beside percent; write all in one scale, or say with --scale what "
        "all are"
    )


def _refuse_mixed_rows(own: pd.DataFrame, score: str) -> None:
    """Refuse a fraction among percentages of a method: a hundred times it lies among the others."""
    fractions = own.loc[own["value"] <= 1, ["dataset", "method"]].drop_duplicates()
    for _, rows in own.merge(fractions).groupby(["dataset", "method"], sort=False):
        low = rows[rows["value"] <= 1]
        high = rows.loc[rows["value"] > 1, "value"]
        among = low[(100 * low["value"]).between(0.8 * high.min(), 1.2 * high.max())]
        if len(among):
            row = among.iloc[0]
            raise ScoresError(
                f"row {row['row']}: {row['value']:g} in {score!r} stands among {high.min():g} to {high.max():g}, a "
                "fraction beside percent; write all in one scale, or add --scale percent"
            )
