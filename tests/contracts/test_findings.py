"""What the page of findings says in words is what the records say."""

import json
import math
import re

import numpy as np

from reports.tables.result_table import result_cells, table_of
from results.statistics.primary_comparison import primary_comparison
from results.statistics.run_values import by_search, values_by_run
from results.store.experiment_results import MeasuredExperiment
from tests.benchmarks.board_calibration import kept_board
from tests.benchmarks.kept_claims import elsewhere_counts
from tests.benchmarks.kept_findings import BOARD, SCRATCH, SIX, first_places, starts_markdown, told_alike
from tests.benchmarks.search_variance import OUT, deviation_of
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
    on_glyphs, on_handwriting, from_scratch = (f"{100 * one.same_order:.0f}" for one in board.agreements)
    assert f"the same order of two losses in {from_scratch} % of cases" in PAGE
    assert f"birds and either of them in {on_glyphs} and {on_handwriting} %" in PAGE
    birds = sorted(100 * one.mean for one in board.datasets[0].values.values())
    assert len(birds) == 14
    assert birds[-1] - birds[3] < 0.7 < birds[-1] - birds[2]
    assert "On birds eleven of the means lie within 0.7 points" in PAGE


def test_what_glyphs_and_handwriting_say_together() -> None:
    first = {"proxy_anchor", "proxy_gml", "normalized_softmax", "soft_triple"}
    board = kept_board(SCRATCH)
    for dataset in board.datasets:
        means = {method: one.mean for method, one in dataset.values.items()}
        assert set(sorted(means, key=lambda method: -means[method])[:4]) == first
    told = told_alike(board)
    below = {method: {worse for better, worse in told if better == method} for method in first}
    assert set.intersection(*below.values()) == {"triplet", "c2_ccp", "nir_proxy_anchor"}
    assert f"Those are 12 of {len(told)} pairs, of {math.comb(14, 2)}, that are told apart on both" in PAGE
    assert round(0.025 * math.comb(14, 2)) == 2, "wrong verdicts by chance"
    glyphs, handwriting, birds = (len(told_apart(record)) for record in (*SCRATCH, "reality_check_birds_subset"))
    assert f"Corrected for all pairs, {glyphs} differ on glyphs and none on handwriting" in PAGE
    assert handwriting == birds == 0


def test_who_would_be_first_after_one_search_of_each() -> None:
    for record, words in {
        SCRATCH[0]: "Normalized Softmax is first on glyphs in {} of cases, Proxy-Anchor in {} and SoftTriple in {}.",
        SCRATCH[1]: "On handwriting ProxyGML is first in {}, Proxy-Anchor in {} and Normalized Softmax in {}.",
    }.items():
        measured = MeasuredExperiment.kept(record)
        comparison = primary_comparison(measured)
        assert comparison is not None
        shares = first_places({method: own.units for method, own in comparison.values.items()})
        titles = [measured.summary.methods[method] for method in shares][:3]
        assert sorted(titles, key=words.index) == titles
        assert words.format(*[f"{100 * share:.0f} %" for share in shares.values()][:3]) in PAGE


def test_the_papers_claims_elsewhere() -> None:
    glyphs, handwriting = (
        elsewhere_counts(f"reality_check/{where}", MeasuredExperiment.kept(f"reality_check_{where}"))
        for where in ("glyphs", "handwriting")
    )
    assert glyphs.endswith("7 comparisons: 4 cannot tell, 3 the other way here")
    assert handwriting.endswith("7 comparisons: 7 cannot tell")


def test_no_two_losses_differ_on_frozen_features() -> None:
    assert all(pair & {"untrained", "pretrained_pca"} for pair in told_apart("mlrc_frozen_cub200_subset"))


def test_how_far_searches_and_runs_vary() -> None:
    said = json.loads(OUT.read_text(encoding="utf-8"))
    kinds = ("between_searches", "between_runs")
    deviations = [f"{said[record][of][0]:.2f}" for record in (*BOARD, *SIX) for of in kinds]
    words = "of {} points on frozen birds, and runs of one setting {}; on glyphs {} and {}; on handwriting {} and {}."
    six = (
        " Six searches of eight losses have {} and {} on frozen birds with 20 trials, and with 12 trials"
        " {} and {} on glyphs, and {} and {} on handwriting."
    )
    assert (words + six).format(*deviations) in PAGE
    ends = [end(said[record][of][0] for record in (*BOARD, *SIX)) for of in kinds for end in (min, max)]
    readme = " ".join(text_of(ROOT / "README.md").split())
    found = "a standard deviation of {:.1f} to {:.1f} points, and runs of one setting by {:.1f} to {:.1f}."
    assert found.format(*ends) in readme


def means_of_searches(record: str) -> dict[str, list[float]]:
    """Means of the searches in points, by method."""
    said = json.loads(OUT.read_text(encoding="utf-8"))[record]["methods"]
    return {key: [100 * mean for mean in method["means_of_searches"]] for key, method in said.items()}


def far_below(means: dict[str, list[float]]) -> dict[str, int]:
    """The number of the search that ends more than two points below the best of its loss, by method."""
    return {key: place for key, own in means.items() for place, mean in enumerate(own) if mean < max(own) - 2}


def test_bad_searches_are_rare_and_large() -> None:
    long, board = means_of_searches("search_variance_birds_subset"), means_of_searches("reality_check_birds_subset")
    short = {key: board[key] for key in long}
    failed = far_below(short)
    assert (len(failed), sum(map(len, short.values())), sum(map(len, long.values()))) == (3, 24, 48)
    before, after = ([f"{of[key][place]:.1f}" for key, place in failed.items()] for of in (short, long))
    assert list(failed) == ["contrastive", "proxy_nca", "triplet"]
    words = (
        "those of Contrastive and ProxyNCA rise from {0} to {3} and from {1} to {4}; Triplet's comes from {2} to {5}."
    )
    assert words.format(*before, *after) in PAGE
    assert far_below(long) == {"triplet": failed["triplet"]}
    others = {key: [mean for mean in own if mean > max(own) - 2] for key, own in long.items()}
    deviation = deviation_of(others.values())
    assert deviation is not None
    assert f"Without it the deviation is {deviation.value / 100:.2f}." in PAGE


def test_the_worst_search_on_handwriting() -> None:
    own = means_of_searches("search_variance_handwriting")
    worst, second, *_ = sorted(own["contrastive"])
    assert f"of Contrastive, ends {second - worst:.0f} points below the next of its loss" in PAGE
    kept = MeasuredExperiment.kept("search_variance_handwriting")
    best = [max(kept.searches["contrastive", place].scores) for place in range(6)]
    failed = own["contrastive"].index(worst)
    board = means_of_searches("reality_check_handwriting")["contrastive"]
    assert board.index(min(board)) == failed
    assert abs(min(board) - worst) < 1
    others = sorted(score for place, score in enumerate(best) if place != failed)
    words = "Its best validation score of {:.0f} %, beside {:.0f} to {:.0f} %, shows it."
    assert words.format(*(100 * score for score in (best[failed], others[0], others[-1]))) in PAGE
    settings = [run.hyperparameters for run in kept.records if run.method == "contrastive" and run.search != failed]
    positive, negative = ([of[f"loss.{name}_margin"] for of in settings] for name in ("pos", "neg"))
    words = "Five searches found a positive margin of {:.1f} and a negative one of {:.1f} to {:.1f}."
    assert words.format(max(positive), min(negative), max(negative)) in PAGE
    deviation = deviation_of([mean / 100 for mean in of if mean > worst] for of in own.values())
    assert deviation is not None
    assert f"Without it the deviation is {deviation.value:.2f}." in PAGE


def test_six_searches_tell_more_than_three() -> None:
    (pair,) = told_apart("search_variance_birds_subset")
    assert pair == {"multi_similarity", "proxy_nca"}
    birds = means_of_searches("search_variance_birds_subset")
    lead = np.mean(birds["multi_similarity"]) - np.mean(birds["proxy_nca"])
    assert f"On birds one: Multi-Similarity is {lead:.1f} points above ProxyNCA." in PAGE
    glyphs, handwriting = told_in_six_and_three("glyphs"), told_in_six_and_three("handwriting")
    assert "On glyphs {} of 28 pairs, where the three searches of the board tell {} of the same".format(*glyphs) in PAGE
    assert f"On handwriting {handwriting[0]}, where three tell none." in PAGE
    assert handwriting[1] == 0


def told_in_six_and_three(where: str) -> list[int]:
    """How many pairs of a record of six searches it tells apart, and how many of these the board; none in reverse."""
    six, three = (
        primary_comparison(MeasuredExperiment.kept(f"{of}_{where}")) for of in ("search_variance", "reality_check")
    )
    assert six is not None
    assert three is not None
    better = {(pair.a, pair.b): pair.better for pair in six.pairs}
    before = {pair: three.pair(*pair).better for pair in better}
    assert all(before[pair] in (None, better[pair]) for pair in better)
    return [sum(winner is not None for winner in of.values()) for of in (better, before)]


def test_losses_differ_in_how_far_their_searches_vary_on_glyphs() -> None:
    said = json.loads(OUT.read_text(encoding="utf-8"))["search_variance_glyphs"]
    deviations = {key: method["between_searches"][0] for key, method in said["methods"].items()}
    ends = (deviations["multi_similarity"], deviations["proxy_isa"])
    assert ends == (max(deviations.values()), min(deviations.values()))
    words = "Multi-Similarity have a deviation of {:.1f} points, those of Proxy-ISA of {:.1f}."
    assert words.format(*ends) in PAGE
    assert said["p_if_equal_for_all_losses"] < 0.001


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


def test_nearly_all_searches_are_above_the_features_in_map_at_r_and_none_in_precision_at_1() -> None:
    (features,) = [
        row for row in table_of(MeasuredExperiment.kept("mlrc_frozen_cub200_subset")).rows if row.key == "untrained"
    ]
    records, above = MeasuredExperiment.kept("search_variance_birds_subset").records, []
    for metric in ("map_at_r", "precision_at_1"):
        values = values_by_run(records, metric, "separated").values()
        searches = [np.mean(own) for runs in values for own in by_search(runs).values()]
        above.append(sum(mean > result_cells(features)["separated", metric].value for mean in searches))
    assert (above, len(searches)) == ([47, 0], 48)
    assert "Of the 48 searches on birds, 47 have more separated MAP@R than the features and none more P@1." in PAGE


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
