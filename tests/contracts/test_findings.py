"""What the page of findings says in words is what the records say."""

from results.statistics.primary_comparison import primary_comparison
from results.store.experiment_results import MeasuredExperiment
from tests.benchmarks.kept_findings import first_places
from tests.support.documentation import ROOT, text_of

PAGE = " ".join(text_of(ROOT / "docs" / "findings.md").split())


def told_apart(record: str) -> list[set[str]]:
    """The pairs of methods of a record of which one is shown to be better."""
    comparison = primary_comparison(MeasuredExperiment.kept(record))
    assert comparison is not None
    return [{pair.a, pair.b} for pair in comparison.pairs if pair.better is not None]


def test_a_draw_of_one_value_each_names_the_first() -> None:
    assert first_places({"a": [1.0, 3.0], "b": [2.0], "c": [0.0]}) == {"a": 0.5, "b": 0.5}


def test_who_would_be_first_after_one_search_of_each() -> None:
    measured = MeasuredExperiment.kept("reality_check_glyphs")
    comparison = primary_comparison(measured)
    assert comparison is not None
    shares = first_places({method: own.units for method, own in comparison.values.items()})
    assert [measured.summary.methods[method] for method in shares] == [
        "Normalized Softmax",
        "Proxy-Anchor",
        "SoftTriple",
    ]
    first, second, third = (f"{100 * share:.0f} %" for share in shares.values())
    assert (
        f"Normalized Softmax is first in {first} of cases, Proxy-Anchor in {second} and SoftTriple in {third}" in PAGE
    )
    highest = [{"proxy_anchor", method} for method in measured.summary.methods]
    assert sum(pair in highest for pair in told_apart("reality_check_glyphs")) == 8


def test_no_two_losses_differ_on_frozen_features() -> None:
    assert all(pair & {"untrained", "pretrained_pca"} for pair in told_apart("mlrc_frozen_cub200_subset"))


def test_who_differs_among_all_losses_on_glyphs() -> None:
    told = told_apart("all_methods_glyphs")
    assert all(pair & {"untrained", "snr_contrastive", "c1_ccp"} for pair in told)
    assert f"{len(told)} of 465 pairs differ" in PAGE
