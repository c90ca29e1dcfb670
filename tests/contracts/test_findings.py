"""What the page of findings says in words is what the records say."""

import json
import re
from collections.abc import Iterable

from reports.tables.result_table import result_cells, table_of
from results.statistics.primary_comparison import primary_comparison
from results.store.experiment_results import MeasuredExperiment
from tests.benchmarks.board_calibration import kept_board
from tests.benchmarks.kept_findings import BOARD, first_places, starts_markdown
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


def test_what_three_datasets_say_together() -> None:
    board = kept_board(tuple(BOARD))
    assert {pair.verdict for pair in board.pairs()} == {"cannot tell"}
    assert [round(10 * (1 - one.same_order)) for one in board.agreements] == [2, 2, 0], "pairs the other way round"
    assert f"Random orders agree as much in {100 * board.agreement_by_chance:.1f} % of cases" in PAGE
    birds, glyphs, handwriting = (one.values for one in board.datasets)
    order = sorted(glyphs, key=lambda method: -glyphs[method].mean)
    assert (order[0], order[-1]) == ("proxy_anchor", "contrastive")
    assert f"the means lie within {spread(own.mean for own in birds.values()):.1f} points" in PAGE
    first, second, failed = (f"{100 * unit:.1f}" for unit in handwriting["contrastive"].units)
    assert f"failed ({failed} % after {first} and {second})" in PAGE


def spread(means: Iterable[float]) -> float:
    low, *_, high = sorted(means)
    return 100 * (high - low)


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
    deviations = [f"{said[record][of][0]:.2f}" for record in BOARD for of in ("between_searches", "between_runs")]
    words = "of {} points on frozen birds, and runs of one setting {}; on glyphs {} and {}; on handwriting {} and {}"
    assert words.format(*deviations) in PAGE


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


def test_what_principal_components_gain() -> None:
    cells = [
        re.findall(r"; [+-][\d.]+ ± [\d.]+; ([+-][\d.]+) ± ([\d.]+)", row) for row in starts_markdown().splitlines()[2:]
    ]
    gains = [[float(gain) for gain, _ in column] for column in zip(*cells, strict=True)]
    ends = [(round(min(column)), round(max(column))) for column in gains[:2]]
    assert ends == [(4, 5), (1, 3)]
    assert not any(float(gain) > float(half) for *_, (gain, half) in cells)
    assert "gain 4 to 5 points at 64 dimensions, 1 to 3 at 128 and none at 512" in PAGE
