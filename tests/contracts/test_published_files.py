"""The published tables contain every row of the CSV files, with published values and labels that match our cards."""

from reproduce.config.experiment_file import experiment_names, load_experiments
from results.published.tables import PublishedColumn, published_table, published_tables
from tests.support.published_files import CARDS, lines

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
    "proxy_gml_table1": (16, 8, 2),
    "proxy_gml_table2": (156, 13, 12),
    "nir_table1": (63, 7, 9),
    "nir_table2": (162, 18, 9),
    "nir_table3": (16, 2, 8),
    "nir_table4": (56, 14, 4),
    "nir_table5": (16, 4, 4),
}


def cell(table, label, dataset, metric, kind="single", **row):
    found = [
        one.cells[PublishedColumn(dataset, metric, kind)]
        for one in published_table(table).rows
        if one.label == label and all(getattr(one, field) == value for field, value in row.items())
    ]
    assert len(found) == 1
    return found[0]


def test_tables_have_the_shapes_of_the_papers():
    assert published_tables() == list(SHAPES)
    for name, (cells, rows, columns) in SHAPES.items():
        table = published_table(name)
        assert (sum(len(row.cells) for row in table.rows), len(table.rows), len(table.columns)) == (
            cells,
            rows,
            columns,
        ), name


def test_every_line_of_the_file_is_a_cell():
    cells = [one for name in published_tables() for row in published_table(name).rows for one in row.cells.values()]
    assert len(cells) == len(lines("cells")) == 194 + 1215
    assert sorted(one.as_published for one in cells) == sorted(line["value"] for line in lines("cells"))


def test_cells_equal_the_published_numbers():
    isa = cell("proxy_isa_table2", "Proxy-ISA", "cars196", "map_at_r")
    assert (isa.as_published, isa.value, isa.plus_minus) == ("29.3", 29.3, 0.2)
    assert (isa.mean.value, isa.mean.rounding) == (0.293, 0.0005)
    ccp = cell("ccp_table1", "C2-XBM-L", "inshop", "r_precision", "separated")
    assert (ccp.value, ccp.dimensions, ccp.mean.rounding) == (59.78, 128, 0.00005)
    assert cell("ccp_table1", "C2-XBM-L", "inshop", "r_precision", "concatenated").dimensions == 512
    assert cell("mlrc_cub200", "N. Softmax", "cub200", "map_at_r", "separated").value == 20.96
    assert cell("mlrc_sop", "ArcFace", "sop", "map_at_r", "concatenated").as_published == "47.41"
    assert cell("proxy_anchor_cub_cars", "Proxy-Anchor", "cub200", "recall@8", dimensions=64).value == 88.8
    assert cell("proxy_anchor_ablation", "Proxy-Anchor, image size 448x448", "cars196", "recall@4").value == 97.7
    assert cell("nir_table1", "SoftTriplet + NIR", "sop", "map@1000").value == 44.9


def test_keys_are_those_of_cards_or_variants():
    variants = {
        variant.key
        for file in experiment_names()
        for one in load_experiments(file, {}).values()
        for variant in one.variants
    }
    assert {line["key"] for line in lines("cells")} - {""} <= CARDS.keys() | variants


def test_different_methods_in_one_table_have_different_keys():
    for name in published_tables():
        rows = published_table(name).rows
        # NIR's Table 2 has a second row of every setting, with doubled pooling; its name is lost.
        doubled = [row.label.startswith("(method name lost") for row in rows]
        places = [
            (row.key, row.trunk, row.dimensions, row.setting, double)
            for row, double in zip(rows, doubled, strict=True)
            if row.key is not None
        ]
        if name != "proxy_anchor_ablation":  # image sizes are settings of an experiment, not of a method
            assert len(places) == len(set(places)), name
