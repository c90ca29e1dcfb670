"""The published numbers, as they lie in the package."""

from decimal import Decimal
from importlib import resources

import pandas as pd
import pytest

ROWS = {
    "mlrc_hyperparameters": 144,
    "mlrc_results": 194,
    "mlrc_search_space": 143,
    "seed_results": 1215,
}
COLUMNS = {
    "mlrc_hyperparameters": ["dataset", "method", "parameter", "value", "source"],
    "mlrc_search_space": [
        *("dataset", "method", "parameter", "scale", "initial_lower", "initial_upper", "final_lower", "final_upper"),
        *("best_value_full_precision", "trials", "best_trial_1based", "best_mean_val_map_at_r", "source"),
    ],
    "mlrc_results": [
        *("seed", "paper", "table", "setting", "dataset", "method", "backbone", "dim", "metric", "value", "ci_or_std"),
        "note",
    ],
}
COLUMNS["seed_results"] = COLUMNS["mlrc_results"]


def published(name: str, dtype: type | None = None) -> pd.DataFrame:
    with resources.files("results").joinpath("published", f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=dtype)


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_there(name):
    frame = published(name)
    assert len(frame) == ROWS[name]
    assert list(frame.columns) == COLUMNS[name]
    assert not frame["dataset"].isna().any()


def test_no_cell_of_a_table_has_two_values():
    for name in ("mlrc_hyperparameters", "mlrc_search_space"):
        assert not published(name).duplicated(["dataset", "method", "parameter"]).any()


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
