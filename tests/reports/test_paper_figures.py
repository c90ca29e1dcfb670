"""Every figure names an experiment that the suite has, with rows that can make it."""

import pytest

from reports.paper_figures import PAPER_FIGURES
from reproduce.config.experiment_file import load_experiments
from results.published.tables import figure_values, read_published


def rows(figure):
    """Settings of all rows of a figure's experiments."""
    return [
        (experiment.for_row(variant.key), variant.set)
        for name in figure.experiments
        for experiment in load_experiments(name, {}).values()
        for variant in experiment.variants
    ]


@pytest.mark.parametrize("name", PAPER_FIGURES)
def test_the_experiments_of_a_figure_exist(name):
    for experiment in PAPER_FIGURES[name].experiments:
        assert load_experiments(experiment, {}), experiment
    assert PAPER_FIGURES[name].caption.endswith(".")


@pytest.mark.parametrize("figure", ["proxy_gml_figure4", "proxy_gml_figure5"])
def test_every_published_point_has_a_row(figure):
    """The row at N = 12 and r = 0.05 is that of the table, and not a variant."""
    default = {"loss.proxies_per_class": 12, "loss.r": 0.05}
    points = {tuple({**default, **chosen}[target] for target in default) for _, chosen in rows(PAPER_FIGURES[figure])}
    points.add((12, 0.05))
    published = figure_values(figure)
    if figure == "proxy_gml_figure4":
        assert points == {(value.x, float(value.series)) for value in published}
    else:
        assert points == {(12, value.x) for value in published}


def test_figures_with_known_values_exist():
    assert set(read_published("figure_values")["figure"]) <= set(PAPER_FIGURES)


def test_stored_experiments_of_a_figure_are_in_the_order_of_its_panels():
    stored = ["nir_table1/sop", "nir_table1/cars196", "nir_table1/cub200", "nir_table10/cub200", "nir_table1"]
    assert PAPER_FIGURES["nir_figure3"].own_of(stored) == ["nir_table1/cub200", "nir_table1/cars196"]
    assert PAPER_FIGURES["ccp_figure4"].own_of(["ccp_figure4/cub200_16", "ccp_figure4/cars196_16"]) == [
        "ccp_figure4/cars196_16",
        "ccp_figure4/cub200_16",
    ]
