"""The published tables: every row of the CSV files in one of them, values as printed, labels tied to our cards."""

import csv
from collections import Counter
from pathlib import Path

import pytest
import yaml

from results.published.searches import mlrc_search_optima
from results.published.tables import PublishedColumn, published_table, published_tables

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "results" / "published"
CARDS = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "reproduce" / "methods").glob("*.yaml")}

# Cells, rows and columns of each table, counted in the papers.
SHAPES = {
    "mlrc_cub200": (90, 15, 6),
    "mlrc_cars196": (90, 15, 6),
    "mlrc_sop": (14, 14, 1),
    "proxy_isa_table1": (20, 5, 4),
    "proxy_isa_table2": (36, 9, 4),
    "proxy_isa_table3": (10, 5, 2),
    "proxy_isa_table4": (8, 2, 4),
    "proxy_anchor_cub_cars": (136, 17, 8),
    "proxy_anchor_sop": (64, 16, 4),
    "proxy_anchor_inshop": (44, 11, 4),
    "proxy_anchor_ablation": (56, 7, 8),
    "ccp_table1": (168, 14, 12),
    "ccp_table2": (168, 14, 12),
    "ccp_table3": (20, 10, 2),
    "proxygml_table1": (16, 8, 2),
    "proxygml_table2": (156, 13, 12),
    "nir_table1": (63, 7, 9),
    "nir_table2": (162, 18, 9),
    "nir_table3": (16, 2, 8),
    "nir_table4": (56, 14, 4),
    "nir_table5": (16, 4, 4),
}


def lines(name):
    with (PUBLISHED / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cell(table, label, dataset, metric, kind="single", **row):
    found = [
        one.cells[PublishedColumn(dataset, metric, kind)]
        for one in published_table(table).rows
        if one.label == label and all(getattr(one, field) == value for field, value in row.items())
    ]
    assert len(found) == 1
    return found[0]


def test_the_tables_have_the_papers_shapes():
    assert published_tables() == list(SHAPES)
    for name, (cells, rows, columns) in SHAPES.items():
        table = published_table(name)
        assert (len(table.cells), len(table.rows), len(table.columns)) == (cells, rows, columns), name


def test_every_row_of_the_files_is_in_exactly_one_table():
    fields = ("seed", "paper", "method", "backbone", "dim", "value", "ci_or_std", "note")
    written = Counter(
        tuple(line[field] for field in fields) for name in ("seed_results", "mlrc_results") for line in lines(name)
    )
    loaded = Counter(
        (
            *(one.source, one.paper, one.method_label, one.trunk),
            *("" if one.dimensions is None else str(one.dimensions), one.printed),
            *("" if one.printed_interval is None else f"{one.printed_interval:g}", one.note),
        )
        for name in published_tables()
        for one in published_table(name).cells
    )
    assert written.total() == 1215 + 194
    assert loaded == written


def test_rows_keep_the_order_of_print():
    labels = [row.label for row in published_table("proxy_isa_table2").rows]
    assert labels == [
        *("Margin", "Proxy-NCA", "CosFace", "ArcFace", "MS", "MS+Miner", "SoftTriplet", "Proxy-Anchor", "Proxy-ISA"),
    ]
    sizes = [(row.label, row.dimensions) for row in published_table("proxygml_table2").rows][-3:]
    assert sizes == [("ProxyGML", 64), ("ProxyGML", 384), ("ProxyGML", 512)]


def test_columns_keep_the_order_of_print():
    metrics = ("precision_at_1", "r_precision", "map_at_r")
    expected = [
        PublishedColumn(dataset, metric, kind)
        for dataset in ("cub200", "cars196")
        for kind in ("concatenated", "separated")
        for metric in metrics
    ]
    assert list(published_table("ccp_table2").columns) == expected
    assert list(published_table("proxy_anchor_sop").columns) == [
        PublishedColumn("sop", metric, "single")
        for metric in ("precision_at_1", "recall@10", "recall@100", "recall@1000")
    ]
    assert [column.metric for column in published_table("nir_table3").columns] == 2 * [
        *("spectral_decay", "density", "class_concentration_variance", "uniformity"),
    ]


def test_cells_are_what_is_printed():
    isa = cell("proxy_isa_table2", "Proxy-ISA", "cars196", "map_at_r")
    assert (isa.printed, isa.value, isa.printed_interval, isa.key) == ("29.3", 29.3, 0.2, "proxy_isa")
    assert (isa.measure, isa.rounding) == (0.293, 0.0005)
    ccp = cell("ccp_table1", "C2-XBM-L", "inshop", "r_precision", "separated")
    assert (ccp.value, ccp.dimensions, ccp.method, ccp.rounding) == (59.78, 128, "c2_xbm", 0.00005)
    assert cell("ccp_table1", "C2-XBM-L", "inshop", "r_precision", "concatenated").dimensions == 512
    assert cell("mlrc_cub200", "N. Softmax", "cub200", "map_at_r", "separated").value == 20.96
    assert cell("mlrc_sop", "ArcFace", "sop", "map_at_r", "concatenated").printed == "47.41"
    assert cell("proxy_anchor_cub_cars", "Proxy-Anchor", "cub200", "recall@8", dimensions=64).value == 88.8
    assert cell("proxy_anchor_ablation", "Proxy-Anchor, image size 448x448", "cars196", "recall@4").value == 97.7
    assert cell("nir_table1", "SoftTriplet + NIR", "sop", "map@1000").value == 44.9


def test_a_dash_is_no_number():
    dash = cell("proxy_isa_table1", "SoftTriplet", "inshop", "precision_at_1")
    assert (dash.printed, dash.value, dash.measure) == ("", None, None)


def test_what_is_no_percentage_is_not_divided():
    steps = cell("ccp_table3", "MS-CCP", "inshop", "total_training_steps", "separated")
    assert (steps.printed, steps.value, steps.measure, steps.rounding) == ("131K", 131000.0, 131000.0, 500.0)
    uniformity = cell("nir_table3", "PA", "cub200", "uniformity")
    assert (uniformity.value, uniformity.measure, uniformity.rounding) == (0.078, 0.078, 0.0005)


def test_labels_mean_cards_that_there_are():
    named = lines("methods")
    assert len({(line["table"], line["label"]) for line in named}) == len(named)
    assert {line["method"] for line in named} - {""} <= set(CARDS)
    assert {line["table"] for line in named} == {*published_tables(), "mlrc_search"}
    for table in published_tables():
        used = {row.label for row in published_table(table).rows}
        assert used == {line["label"] for line in named if line["table"] == table}


def test_mlrcs_labels_are_those_that_the_cards_know():
    by_label = {line["label"]: line["method"] for line in lines("methods") if line["table"] == "mlrc_search"}
    known = {card["published_as"]: key for key, card in CARDS.items() if "published_as" in card}
    assert by_label == known


@pytest.mark.parametrize("table", ["proxy_isa_table3", "proxygml_table1"])
def test_ablated_rows_are_called_as_in_the_experiments(table):
    file = {"proxygml_table1": "proxy_gml_table1"}.get(table, table)
    experiment = yaml.safe_load((ROOT / "reproduce" / "experiments" / f"{file}_glyphs.yaml").read_text())
    assert {row.key for row in published_table(table).rows} == {one["key"] for one in experiment["variants"]}


def test_rows_of_one_table_that_are_other_methods_have_other_keys():
    for name in published_tables():
        rows = published_table(name).rows
        places = [(row.key, row.trunk, row.dimensions, row.setting) for row in rows if row.key is not None]
        if name != "proxy_anchor_ablation":  # image sizes are settings of an experiment, not of a method
            assert len(places) == len(set(places)), name


def test_an_unknown_table_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="no published table is called 'table9'; there are mlrc_cub200") as error:
        published_table("table9")
    assert "\n" not in str(error.value)


def test_optima_are_those_of_mlrcs_logs():
    cars = mlrc_search_optima("cars196")
    assert len(cars) == 36
    weights = next(one for one in cars if (one.method, one.parameter) == ("normalized_softmax", "temperature"))
    assert (weights.value, weights.printed, weights.best_trial) == (0.08863250090946041, "0.0886", 46)
    assert (weights.best_map_at_r, weights.trials, weights.scale) == (0.236146, 50, "log")
    assert weights.initial == weights.final == (0.01, 100.0)
    large = next(one for one in mlrc_search_optima("cub200_batch256") if one.method == "fastap")
    assert (large.value, large.printed, large.final, large.initial) == (86.0, "86", (2.0, 250.0), None)


def test_all_optima_are_there_and_what_is_not_known_is_none():
    optima = [one for name in ("cub200", "cars196", "sop", "cub200_batch256") for one in mlrc_search_optima(name)]
    assert len(optima) == 144
    assert sum(one.scale is not None for one in optima) == len(lines("mlrc_search_space")) == 143
    unsearched = next(one for one in optima if one.value is None)
    assert (unsearched.dataset, unsearched.method, unsearched.printed) == ("sop", "soft_triple", "N/A")
    assert {one.method for one in optima if one.best_map_at_r is None and one.value is not None} == {"fastap"}
    with pytest.raises(ValueError, match="no search on 'inshop'"):
        mlrc_search_optima("inshop")


def test_mlrcs_optima_are_the_settings_that_the_cards_give():
    for dataset in ("cub200", "cars196", "sop", "cub200_batch256"):
        for one in mlrc_search_optima(dataset):
            card = CARDS[one.method]
            ours = next(name for name, bounds in card["search"].items() if bounds["published_as"] == one.parameter)
            if one.value is not None:
                assert card["published"][dataset][ours] == one.value, (dataset, one.label, one.parameter)
