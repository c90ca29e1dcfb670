"""The published numbers: tables, values read off figures, and the optima of MLRC's searches."""

from decimal import Decimal
from importlib import resources

import pandas as pd

from results.published.tables import figure_values


def published(name: str, dtype: type | None = None) -> pd.DataFrame:
    with resources.files("results").joinpath("published", f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=dtype)


def test_optima_lie_within_the_bounds_that_the_search_ended_with():
    space = published("mlrc_search_space")
    space = space[space["scale"].isin(["linear", "log"]) & space["final_lower"].notna()]
    assert len(space) > 100
    # The logs keep the bounds rounded, the optima not.
    slack = 1e-9 * (space["final_upper"] - space["final_lower"])
    assert (space["best_value_full_precision"] >= space["final_lower"] - slack).all()
    assert (space["best_value_full_precision"] <= space["final_upper"] + slack).all()


def test_the_printed_optima_are_the_exact_ones_to_their_last_digit():
    keys = ["dataset", "method", "parameter"]
    both = published("mlrc_hyperparameters", dtype=str).merge(published("mlrc_search_space"), on=keys)
    both = both[both["best_value_full_precision"].notna() & both["value"].ne("N/A") & both["value"].notna()]
    assert len(both) > 100
    for row in both.itertuples():
        printed = Decimal(row.value)
        unit = Decimal(1).scaleb(printed.as_tuple().exponent)
        assert abs(printed - Decimal(row.best_value_full_precision)) < unit, (row.dataset, row.method, row.parameter)


def test_the_bars_of_proxy_gml_are_complete():
    bars = {(value.series, value.x): value for value in figure_values("proxy_gml_figure4")}
    assert set(bars) == {(r, n) for r in ("0.05", "0.5", "1") for n in range(1, 31)}
    best = {r: max((n for at, n in bars if at == r), key=lambda n: bars[r, n].score) for r in ("0.05", "0.5")}
    # The paper's text says N = 12 for every r; the bars show it for r = 0.05 only.
    assert best == {"0.05": 12, "0.5": 17}
    ratios = {value.x: value.score for value in figure_values("proxy_gml_figure5")}
    assert (len(ratios), max(ratios, key=ratios.get)) == (16, 0.05)
    assert bars["0.05", 12].score == ratios[0.05] == 0.855


def test_a_figure_without_known_values_has_none():
    assert figure_values("proxy_isa_figure9") == ()
