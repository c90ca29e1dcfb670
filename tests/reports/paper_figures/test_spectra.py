"""Singular values of the runs of an experiment."""

import pytest

from reports.figures.style import FigureError
from reports.paper_figures.embeddings import spectra_of_runs
from tests.support.figure_material import sweep
from tests.support.page_material import figure_data, material, values


def test_every_method_with_an_exhibit_is_a_line():
    runs = values(proxy_anchor=[0.5], nir_proxy_anchor=[0.6])
    one = material(runs, figure_data={"proxy_anchor": figure_data(), "nir_proxy_anchor": figure_data()})
    labels = [line.get_label() for line in spectra_of_runs({"cub200": one}).axes[0].lines]
    assert labels == ["PROXY_ANCHOR (8-dim)", "NIR_PROXY_ANCHOR (8-dim)", "flat spectrum"]
    two = [line.get_label() for line in spectra_of_runs({"cub200": one, "cars196": one}).axes[0].lines]
    assert two[0] == "PROXY_ANCHOR, glyphs (8-dim)"


def test_too_few_and_too_many_lines_are_refused():
    with pytest.raises(FigureError, match="no run has embeddings beside the store"):
        spectra_of_runs({"": sweep([({"loss.alpha": 4}, (0.5,))])})
    many = material(
        values(**{f"m{n}": [0.5] for n in range(8)}), figure_data={f"m{n}": figure_data() for n in range(8)}
    )
    with pytest.raises(FigureError, match="8 methods are too many"):
        spectra_of_runs({"": many})
