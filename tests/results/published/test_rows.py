"""Every printed row says who measured it, how many runs are behind a value, and what its ± is."""

import pytest

from results.answer.intervals import student_t_interval
from results.published.tables import published_table, published_tables, read_published

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
