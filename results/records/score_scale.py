"""The scale of a score: fractions, percent or points, decided for each method on each dataset."""

import numpy as np
import pandas as pd

from results.records.columns import ScoreScale, ScoresError, is_error_rate, means_lower

_ENDS: dict[ScoreScale, tuple[float, float]] = {
    "fractions": (0.0, 1.0),
    "percent": (0.0, 100.0),
    "points": (-np.finfo(float).max, np.finfo(float).max),
}


def scaled(long: pd.DataFrame, asked: str, given: ScoreScale | None, *, lower: bool) -> tuple[pd.DataFrame, ScoreScale]:
    """The rows with a score, percentages as fractions of 1, and the scale of the asked score; others can be left."""
    parts, scale_of_asked = [], given
    scale: ScoreScale | None
    for name, own in long.groupby("name", sort=False):
        own = own[own["value"].notna()]
        if name == asked:
            if own.empty:
                raise ScoresError(f"no row has a number in {name!r}")
            scale = scale_of_asked = _scale_of_asked(own, str(name), given, lower=lower)
        else:
            scale = _percentages(own["value"])
        if scale is None or own.empty:
            continue
        factor = 100 if scale == "percent" else 1
        changes = {"value": own["value"] / factor}
        parts.append(own.assign(**changes, **({"deviation": own["deviation"] / factor} if "deviation" in own else {})))
    assert scale_of_asked is not None
    return pd.concat(parts, ignore_index=True), scale_of_asked


def _percentages(values: pd.Series) -> ScoreScale | None:
    """The scale of further scores; None if they are no percentages."""
    if values.between(0, 1).all():
        return "fractions"
    return "percent" if values.between(0, 100).all() else None


def _scale_of_asked(own: pd.DataFrame, name: str, given: ScoreScale | None, *, lower: bool) -> ScoreScale:
    """The scale that all methods have on all datasets."""
    scale = given or ("points" if means_lower(name) and not is_error_rate(name) else None)
    if scale is not None:
        _refuse_outside(own, name, scale)
        return scale
    _refuse_outside(own, name, None)
    known = own[own["value"] != 0] if (own["value"] != 0).any() else own  # 0 is 0 in every scale.
    low = known["value"].between(0, 1).groupby([known["dataset"], known["method"]], sort=False).all()
    if low.all():
        if lower:
            raise ScoresError(
                f"all of {name!r} are within 0 and 1; say what they are: --scale fractions, percent or points"
            )
        return "fractions"
    if low.any():
        (one, other) = (low[low == of].index[0] for of in (True, False))
        rows = [known[(known["dataset"] == d) & (known["method"] == m)].iloc[0] for d, m in (one, other)]
        raise ScoresError(
            f"rows {rows[0]['row']} and {rows[1]['row']}: {name!r} has {rows[0]['value']:g} of {_of(one)} and "
            f"{rows[1]['value']:g} of {_of(other)}, fractions beside percent; write all in one scale, or say with "
            "--scale what all are"
        )
    _refuse_mixed_rows(own, name)
    return "percent"


def _of(key: tuple[str, str]) -> str:
    return f"{key[1]} on {key[0]}" if key[0] else key[1]


def _refuse_mixed_rows(own: pd.DataFrame, name: str) -> None:
    """Refuse a fraction among percentages of a method: a hundred times it lies among the others."""
    fractions = own.loc[own["value"] <= 1, ["dataset", "method"]].drop_duplicates()
    for _, rows in own.merge(fractions).groupby(["dataset", "method"], sort=False):
        low = rows[rows["value"] <= 1]
        high = rows.loc[rows["value"] > 1, "value"]
        among = low[(100 * low["value"]).between(0.8 * high.min(), 1.2 * high.max())]
        if len(among):
            row = among.iloc[0]
            raise ScoresError(
                f"row {row['row']}: {row['value']:g} in {name!r} stands among {high.min():g} to {high.max():g}, a "
                "fraction beside percent; write all in one scale, or add --scale percent"
            )


def _refuse_outside(own: pd.DataFrame, name: str, given: ScoreScale | None) -> None:
    low, high = _ENDS[given or "percent"]
    outside = own[~own["value"].between(low, high)]
    if outside.empty:
        return
    row, value = outside.iloc[0]["row"], outside.iloc[0]["value"]
    if np.isinf(value):
        raise ScoresError(f"row {row}: {value} in {name!r} is no score; write the number, or leave the cell empty")
    remedy = "; if the scores are no percentages, add --scale points"
    if given:
        remedy = "; write fractions of 1" if given == "fractions" else ""
    raise ScoresError(f"row {row}: {value:g} in {name!r} is not within 0 and {high:g}{remedy}")
