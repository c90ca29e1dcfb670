"""The published numbers: figures, MLRC's optima, who measured which row, and which rows a shipped file reproduces."""

import re
from collections import Counter
from decimal import Decimal

import pandas as pd
import pytest

from results.answer.intervals import student_t_interval
from results.published.tables import (
    CoveredRow,
    figure_values,
    published_table,
    published_tables,
    read_published,
)
from tests.support.published_files import PUBLISHED, ROOT, covered


def test_optima_lie_within_the_bounds_that_the_search_ended_with():
    space = pd.read_csv(PUBLISHED / "mlrc_search_space.csv")
    space = space[space["scale"].isin(["linear", "log"]) & space["final_lower"].notna()]
    assert len(space) > 100
    # The logs keep the bounds rounded, the optima not.
    slack = 1e-9 * (space["final_upper"] - space["final_lower"])
    assert (space["best_value_full_precision"] >= space["final_lower"] - slack).all()
    assert (space["best_value_full_precision"] <= space["final_upper"] + slack).all()


def test_the_printed_optima_are_the_exact_ones_to_their_last_digit():
    keys = ["dataset", "method", "parameter"]
    both = pd.read_csv(PUBLISHED / "mlrc_hyperparameters.csv", dtype=str).merge(
        pd.read_csv(PUBLISHED / "mlrc_search_space.csv"), on=keys
    )
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


CELLS = [
    (name, row, cell)
    for name in published_tables()
    for row in published_table(name).rows
    for cell in row.cells.values()
]


def test_no_line_of_the_file_is_about_a_row_that_no_table_prints():
    lines = read_published("rows")
    keys = {(name, row.label, row.trunk, str(row.dimensions or ""), row.setting) for name, row, _ in CELLS}
    columns = ["table", "label", "trunk", "dimensions", "setting"]
    assert set(lines[columns].itertuples(index=False, name=None)) == keys


def test_the_counts_of_the_audit():
    """220 printed rows; the audit of the papers found so many that a paper measured itself on at least one dataset."""
    by_row: dict[tuple[str, str, str, int | None, str], set[str]] = {}
    for name, row, cell in CELLS:
        key = (name, row.label, row.trunk, row.dimensions, row.setting)
        by_row.setdefault(key, set()).add(cell.origin.kind)
    assert len(by_row) == 220
    assert sum("measured" in kinds for kinds in by_row.values()) == 149
    assert sum("quoted" in kinds for kinds in by_row.values()) == 69


@pytest.mark.parametrize(
    ("table", "label", "dataset", "kind"),
    [
        ("proxy_isa_table2", "Margin", "cub200", "quoted"),
        ("proxy_isa_table2", "SoftTriplet", "cub200", "unclear"),
        ("proxy_isa_table2", "SoftTriplet", "cars196", "quoted"),
        ("proxy_isa_table1", "Proxy-Anchor", "sop", "measured"),
        ("ccp_table1", "HPL-PA", "sop", "quoted"),
        ("mlrc_cars196", "Contrastive", "cars196", "measured"),
    ],
)
def test_rows_that_were_checked_by_hand(table, label, dataset, kind):
    places = [(name, row.label, cell.column.dataset, cell.origin.kind) for name, row, cell in CELLS]
    assert (table, label, dataset, kind) in places


def some_cell(table, label, metric, kind):
    for name, row, cell in CELLS:
        if (name, row.label, *cell.column[1:]) == (table, label, metric, kind):
            return cell
    raise LookupError(label)


def test_the_meaning_of_every_printed_spread_is_written_down():
    with_spread = {name for name, _, cell in CELLS if cell.plus_minus is not None}
    spreads = read_published("spreads")
    assert set(spreads["table"]) == with_spread
    assert set(spreads["kind"]) <= {"95 % interval", "standard deviation", "not stated"}
    assert all(spreads["evidence"])
    meant = dict(zip(spreads["table"], spreads["kind"], strict=True))
    assert all(cell.spread == (meant[name] if cell.plus_minus is not None else None) for name, _, cell in CELLS)


@pytest.mark.parametrize(
    ("table", "runs"),
    [
        *[(name, 10) for name in ("mlrc_cub200", "mlrc_cars196", "mlrc_sop")],
        # The four fold models of CCP are no repetitions, NIR says "several seeds", and the others say nothing.
        *[(name, None) for name in ("ccp_table1", "nir_table1", "proxy_isa_table2", "proxy_gml_table1")],
    ],
)
def test_the_number_of_runs_is_that_of_the_audited_settings(table, runs):
    measured = {cell.runs for name, _, cell in CELLS if name == table and cell.origin.kind == "measured"}
    assert measured == {runs}


def test_mlrcs_interval_gives_the_deviation_of_its_runs():
    cell = some_cell("mlrc_cub200", "CosFace", "precision_at_1", "concatenated")
    assert (cell.runs, cell.spread) == (10, "95 % interval")
    mean = cell.mean
    assert (mean.value, mean.runs) == (pytest.approx(cell.value / 100), 10)
    # Ten runs with this standard deviation have an interval of the published half width.
    half = mean.deviation * (9 / 10) ** 0.5
    values = [mean.value + half * sign for sign in (-1, 1)] * 5
    assert 100 * student_t_interval(values).half_width == pytest.approx(cell.plus_minus)


def test_a_spread_of_unknown_meaning_is_not_used():
    cell = some_cell("nir_table1", "ProxyAnchor + NIR", "precision_at_1", "single")
    assert cell.plus_minus is not None
    assert (cell.mean.runs, cell.mean.deviation) == (1, None)


def test_a_dash_is_no_measurement():
    assert {cell.mean for _, _, cell in CELLS if not cell.as_published} == {None}


def test_every_row_of_every_table_is_counted_once_for_each_dataset():
    counted = Counter((row.table, row.dataset) for row in covered())
    for name in published_tables():
        table = published_table(name)
        for dataset in {column.dataset for column in table.columns}:
            assert counted[name, dataset] == len(table.rows), (name, dataset)


def test_every_method_of_mlrc_is_runnable_by_the_file_of_its_own_dataset():
    """The shipped file for Cars196 was held against CUB's settings once, and filled nothing."""
    for dataset, count in {"cub200": 15, "cars196": 15, "sop": 14}.items():
        rows = [row for row in covered() if row.table == f"mlrc_{dataset}"]
        assert {(row.status, row.detail) for row in rows} == {("runnable", f"mlrc_{dataset}")}
        assert len(rows) == count


def test_quoted_rows_are_never_runnable():
    for row in covered():
        table = published_table(row.table)
        cells = [cell for one in table.rows if one.label == row.label for cell in one.cells.values()]
        origins = {cell.origin.kind for cell in cells if cell.column.dataset == row.dataset}
        if origins == {"quoted"}:
            assert row.status == ("method not in the suite" if row.method is None else "quoted")
            assert row.detail


def test_a_row_of_our_reading_is_runnable_and_says_so():
    readings = [row for row in covered() if row.origin.our_reading]
    assert {row.status for row in readings} == {"runnable"}
    assert ("mlrc_cub200", "pretrained_test_pca") in {(row.table, row.method) for row in readings}
    alone = {row.dataset: row for row in covered() if row.method == "nir_proxy_anchor_alone"}
    assert {dataset: row.detail for dataset, row in alone.items()} == {
        "cub200": "nir_table4/cub200",
        "cars196": "nir_table4/cars196",
    }


def entries() -> list[str]:
    """The numbered entries of docs/deviations.md, each on one line."""
    text = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")
    return [" ".join(entry.split()) for entry in re.split(r"\n(?=\d+\. )", text)[1:]]


def not_runnable() -> list[CoveredRow]:
    return [row for row in covered() if row.status == "not runnable"]


def test_a_measured_row_is_runnable_or_the_data_say_why_not() -> None:
    measured = {(name, row.label) for name, row, cell in CELLS if cell.origin.kind == "measured"}
    statuses = {row.status for row in covered() if (row.table, row.label) in measured}
    assert "method not in the suite" not in statuses
    for row in not_runnable():
        reasons = {
            cell.origin.not_determined
            for name, printed, cell in CELLS
            if (name, printed.label) == (row.table, row.label)
        }
        assert reasons == {row.detail.removeprefix("cannot be determined: ")}, row
        assert "" not in reasons, row


def test_the_deviations_name_every_row_that_is_not_runnable_with_its_reason() -> None:
    assert not_runnable()
    for row in not_runnable():
        reason = row.detail.removeprefix("cannot be determined: ")
        words = (f"`{row.table}`", f'"{row.label}"', reason)
        assert any(all(word in entry for word in words) for entry in entries()), words
