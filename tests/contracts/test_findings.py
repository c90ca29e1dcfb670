"""What the page of findings says in words is what the records say."""

import json

from reports.tables.result_table import result_cells, table_of
from results.statistics.primary_comparison import primary_comparison
from results.store.experiment_results import MeasuredExperiment
from tests.benchmarks.kept_findings import first_places
from tests.benchmarks.search_variance import OUT
from tests.support.documentation import ROOT, text_of

PAGE = " ".join(text_of(ROOT / "docs" / "findings.md").split())


def told_apart(record: str) -> list[set[str]]:
    """The pairs of methods of a record of which one is shown to be better."""
    comparison = primary_comparison(MeasuredExperiment.kept(record))
    assert comparison is not None
    return [{pair.a, pair.b} for pair in comparison.pairs if pair.better is not None]


def means(record: str) -> dict[str, float]:
    """Separated MAP@R in percent by method."""
    rows = table_of(MeasuredExperiment.kept(record)).rows
    return {row.key: 100 * float(result_cells(row)["separated", "map_at_r"].value or 0) for row in rows}


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


def test_how_far_searches_and_runs_vary() -> None:
    said = json.loads(OUT.read_text(encoding="utf-8"))
    birds, glyphs = (said[record] for record in ("reality_check_birds_subset", "reality_check_glyphs"))
    deviations = [f"{one[of][0]:.2f}" for one in (birds, glyphs) for of in ("between_searches", "between_runs")]
    assert "of {} points on frozen birds, and runs of one setting {}; on glyphs {} and {}".format(*deviations) in PAGE
    for method, words in (("contrastive", "end at {}, {} and {}"), ("normalized_softmax", "Softmax at {}, {} and {}")):
        means = [f"{100 * mean:.1f}" for mean in birds["methods"][method]["means_of_searches"]]
        assert words.format(*means) in PAGE


def test_what_training_start_and_fine_tuning_are_worth() -> None:
    frozen, small = means("mlrc_frozen_cub200_subset"), means("cub200_small_subset")
    random = means("mlrc_frozen_cub200_random_start_subset")
    features, components = frozen.pop("untrained"), frozen.pop("pretrained_pca")
    assert f"{len(frozen)} losses have {low_to_high(frozen)} % separated MAP@R" in PAGE
    assert f"features themselves have {features:.1f} %, their 128 principal components {components:.1f} %" in PAGE
    starts = [f"{of[method]:.1f}" for of in (frozen, random) for method in ("contrastive", "proxy_anchor")]
    assert "have {} and {} % separated MAP@R; from a random start, as MLRC's, {} and {} %".format(*starts) in PAGE
    raw = small.pop("untrained")
    assert f"Five losses have {low_to_high(small)} % separated MAP@R, the raw features {raw:.1f} %" in PAGE
    assert f"at 227 pixels {features:.1f} %" in PAGE


def low_to_high(of_losses: dict[str, float]) -> str:
    return f"{min(of_losses.values()):.1f} to {max(of_losses.values()):.1f}"
