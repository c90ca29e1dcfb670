"""The papers' figures of embeddings, drawn from experiments made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from reports.figures.search import Parameter, SearchHistory, TrialPoint
from reports.figures.style import FigureError, png_of
from reports.paper_figures.registry import PAPER_FIGURES
from results.records.artifacts import Recording, Snapshot
from tests.support.page_material import figure_data, material, values

DRAW = {name: figure.shows for name, figure in PAPER_FIGURES.items() if callable(figure.shows)}
RANDOM = np.random.default_rng(0)


def snapshot(epoch, problem=-1, dimensions=6, following=False):
    labels = np.repeat(np.arange(5), 4)
    embeddings = RANDOM.normal(size=(20, dimensions)).astype(np.float32)
    proxies = embeddings[::4]
    picked = proxies if following else proxies[:0]
    return Snapshot(epoch, problem, embeddings, labels, proxies, np.arange(5), picked, 0.44, 0.09, 0.46)


def stages(*epochs):
    return Recording(tuple(snapshot(epoch) for epoch in epochs))


def solutions(count, dimensions=6):
    return Recording(tuple(snapshot(3 * n, n, dimensions, following=True) for n in range(count)))


def experiment(*methods, **more):
    return material(values(**{method: [0.5] for method in methods}), **more)


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]


def test_figure_2_of_proxy_isa_draws_both_methods_at_the_recorded_epoch():
    recordings = {"proxy_anchor": stages(5), "normalized_softmax": stages(5)}
    runs = experiment("proxy_anchor", "normalized_softmax", recordings=recordings)
    figure = DRAW["proxy_isa_figure2"]({"": runs})
    assert titles(figure) == [
        "(a) PROXY_ANCHOR, epoch 5\n20 images of 5 classes, 5 proxies",
        "(b) NORMALIZED_SOFTMAX, epoch 5\n20 images of 5 classes, 5 proxies",
    ]
    assert png_of(figure)


def test_figure_6_of_proxy_isa_draws_stages_of_the_training_and_test_images():
    stage = experiment("proxy_isa", recordings={"proxy_isa": stages(30, 80)})
    final = experiment(
        "proxy_anchor", "proxy_isa", figure_data={"proxy_anchor": figure_data(), "proxy_isa": figure_data()}
    )
    figure = DRAW["proxy_isa_figure6"]({"cars196_stages": stage, "cars196_final": final})
    assert [title.partition("\n")[0] for title in titles(figure)] == [
        "(a) PROXY_ISA, epoch 30",
        "(b) PROXY_ISA, epoch 80",
        "(c) PROXY_ANCHOR, test",
        "(d) PROXY_ISA, test",
    ]
    with pytest.raises(FigureError, match=r"no panel \*stages has runs"):
        DRAW["proxy_isa_figure6"]({"cars196_final": final})
    with pytest.raises(FigureError, match="no test embeddings"):
        DRAW["proxy_isa_figure6"]({"cars196_stages": stage, "cars196_final": replace(final, figure_data={})})


def test_figure_7_of_proxy_isa_has_a_row_per_epoch_and_a_column_per_method():
    methods = ("proxy_isa", "proxy_anchor", "normalized_softmax")
    recordings = {method: stages(0, 5, 20, 60) for method in methods}
    figure = DRAW["proxy_isa_figure7"]({"": experiment(*methods, recordings=recordings)})
    drawn = titles(figure)
    assert len(drawn) == 12
    assert drawn[:2] == ["(a) NORMALIZED_SOFTMAX, untrained", "(b) PROXY_ANCHOR, untrained"]
    assert drawn[-1] == "(l) PROXY_ISA, epoch 60"
    shot = recordings["proxy_anchor"].at_epoch(5)
    unit = shot.embeddings / np.linalg.norm(shot.embeddings, axis=1, keepdims=True)
    proxies = shot.proxies / np.linalg.norm(shot.proxies, axis=1, keepdims=True)
    np.testing.assert_allclose(figure.axes[4].images[0].get_array(), unit @ proxies.T, atol=1e-6)


def test_figure_7_draws_the_epochs_that_all_methods_have():
    recordings = {"proxy_anchor": stages(0, 5), "proxy_isa": stages(0, 5, 20)}
    runs = experiment("proxy_anchor", "proxy_isa", recordings=recordings)
    assert len(titles(DRAW["proxy_isa_figure7"]({"": runs}))) == 4
    with pytest.raises(FigureError, match="no epoch in common"):
        DRAW["proxy_isa_figure7"]({"": replace(runs, recordings={**recordings, "proxy_anchor": stages(7)})})


def test_retrievals_are_drawn_once_per_dataset():
    birds = experiment("proxy_anchor", figure_data={"proxy_anchor": figure_data()})
    figure = DRAW["proxy_anchor_retrievals_cub_cars"]({"small": birds, "large": birds})
    assert [part.get_suptitle() for part in figure.subfigs] == ["glyphs"]
    with pytest.raises(FigureError, match="no run of proxy_anchor has retrievals"):
        DRAW["proxy_anchor_retrievals_sop"]({"": experiment("proxy_anchor")})


def test_figure_1_of_ccp_draws_the_first_five_solutions_in_the_plane():
    runs = experiment("c2_ccp", recordings={"c2_ccp": solutions(7, dimensions=2)})
    figure = DRAW["ccp_figure1"]({"": runs})
    assert [title.partition(",")[0] for title in titles(figure)] == [
        "(a) before",
        *(f"(b.{n}) iteration {n}" for n in range(1, 5)),
    ]
    assert "MAP@R 0.44   radius 0.09   distance 0.46" in titles(figure)[0]
    with pytest.raises(FigureError, match="two dimensions, not 6"):
        DRAW["ccp_figure1"]({"": replace(runs, recordings={"c2_ccp": solutions(2)})})


def test_figure_2_of_ccp_draws_at_most_four_solutions():
    for count, drawn in ((2, 2), (6, 4)):
        runs = experiment("c2_ccp", recordings={"c2_ccp": solutions(count)})
        assert len(titles(DRAW["ccp_figure2"]({"": runs}))) == drawn
    with pytest.raises(FigureError, match="no problem ended"):
        DRAW["ccp_figure2"]({"": experiment("c2_ccp", recordings={"c2_ccp": stages(0)})})


def test_figure_3_of_ccp_draws_its_search():
    parameters = (Parameter("loss.lam", "log"), Parameter("loss.proxies_per_class", "int"))
    points = [
        TrialPoint(n, {"loss.lam": 10.0**-n, "loss.proxies_per_class": 1 + n % 5}, 0.3 + 0.01 * n) for n in range(6)
    ]
    runs = experiment("c2_ccp", searches={"c2_ccp": SearchHistory(tuple(points), parameters)})
    axes = DRAW["ccp_figure3"]({"": runs}).axes[0]
    assert {axes.get_xlabel(), axes.get_ylabel()} == {"loss.lam", "loss.proxies_per_class"}
    with pytest.raises(FigureError, match="no search"):
        DRAW["ccp_figure3"]({"": experiment("c2_ccp")})
    single = SearchHistory(tuple(points), parameters[:1])
    with pytest.raises(FigureError, match="proxies_per_class was not searched"):
        DRAW["ccp_figure3"]({"": replace(runs, searches={"c2_ccp": single})})


@pytest.mark.parametrize("name", ["proxy_isa_figure2", "proxy_isa_figure7", "ccp_figure1", "ccp_figure2"])
def test_a_missing_recording_is_said_with_its_remedy(name):
    runs = experiment("proxy_anchor", "c2_ccp")
    with pytest.raises(FigureError, match=r"no recorded embeddings.*--artifacts.*new --store") as error:
        DRAW[name]({"": runs})
    assert "\n" not in str(error.value)


def test_every_method_with_embeddings_is_a_line_of_the_spectrum_up_to_seven():
    data = {"proxy_anchor": figure_data(), "nir_proxy_anchor": figure_data()}
    one = experiment(*data, figure_data=data)

    def labels(materials):
        return [line.get_label() for line in DRAW["nir_figure4"](materials).axes[0].lines]

    assert labels({"cub200": one}) == ["PROXY_ANCHOR (8-dim)", "NIR_PROXY_ANCHOR (8-dim)", "flat spectrum"]
    assert labels({"cub200": one, "cars196": one})[0] == "PROXY_ANCHOR, cub200 (8-dim)"
    with pytest.raises(FigureError, match="no run has embeddings beside the store"):
        labels({"": experiment("proxy_anchor")})
    many = {f"m{n}": figure_data() for n in range(8)}
    with pytest.raises(FigureError, match="8 methods are too many"):
        labels({"": experiment(*many, figure_data=many)})


def test_an_experiment_without_the_methods_of_the_figure_is_refused():
    with pytest.raises(FigureError, match="has no run of proxy_anchor or normalized_softmax"):
        DRAW["proxy_isa_figure2"]({"": experiment("triplet")})
    with pytest.raises(FigureError, match="has runs in the store"):
        DRAW["proxy_isa_figure2"]({})
