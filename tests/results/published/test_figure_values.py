"""Values that were read off the papers' figures."""

from results.published.tables import figure_values, read_published


def test_the_bars_of_proxy_gml_are_complete():
    bars = {(value.series, value.x): value for value in figure_values("proxy_gml_figure4")}
    assert set(bars) == {(r, n) for r in ("0.05", "0.5", "1") for n in range(1, 31)}
    best = {r: max((n for at, n in bars if at == r), key=lambda n: bars[r, n].score) for r in ("0.05", "0.5")}
    # The paper's text says N = 12 for every r; the bars show it for r = 0.05 only.
    assert best == {"0.05": 12, "0.5": 17}
    ratios = {value.x: value.score for value in figure_values("proxy_gml_figure5")}
    assert (len(ratios), max(ratios, key=ratios.get)) == (16, 0.05)
    assert bars["0.05", 12].score == ratios[0.05] == 0.855


def test_every_value_says_how_it_is_known():
    for name in ("proxy_gml_figure1", "proxy_gml_figure4", "proxy_gml_figure5"):
        for value in figure_values(name):
            assert value.dataset == "cars196"
            assert 0 < value.score < 1
    known = read_published("figure_values")
    known = known[known["figure"].str.startswith("proxy_gml")]
    assert known["certainty"].str.startswith("read off, +-0.").all()
    assert known["source"].str.startswith("SpotlightPPT.pptx slide ").all()


def test_a_figure_without_known_values_has_none():
    assert figure_values("proxy_isa_figure9") == ()
