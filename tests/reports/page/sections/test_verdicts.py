"""Sentences about differences, no stronger than the comparison."""

from reports.page.material import Material
from reports.page.sections.answer import limits, small_budget, verdicts_of
from reports.page.sections.warnings import warnings_of
from reports.tables.result_table import table_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.page_material import A, B, comparing, material, said, searched, values
from tests.support.published_world import MLRC
from tests.support.sample_records import scores, some_run

CLEAR = {"a": (30.0, 30.6, 30.3), "b": (29.1, 29.5, 29.0), "c": (27.9, 28.4, 28.6)}


def kept(name):
    return Material(name, MeasuredExperiment.kept(name))


def test_direction_and_size_are_said_apart():
    world = searched(**CLEAR)
    assert [(pair.direction, pair.size) for pair in world.comparison.pairs] == [
        ("a better", "cannot tell"),
        ("a better", "beyond"),
        ("cannot tell", "cannot tell"),
    ]
    best = said(verdicts_of(world), "best")[0]
    assert best.startswith(
        "Concatenated MAP@R, the primary score: A has the highest mean, 30.30 ± 0.48 % (3 searches)."
    )
    assert (
        "It is better than C by more than 0.5 points; better than B, where it is open whether by more than 0.5 points."
    ) in best
    assert best.endswith("Tests of all pairs; the probability of any wrong claim is at most 5 %.")
    named = said(verdicts_of(searched(settings=comparing("b", {**MLRC, "methods": ["a", "b", "c"]}), **CLEAR)), "best")[
        0
    ]
    assert "B has 29.20 ± 0.48 % (3 searches). It is better than C, where it is open whether" in named
    assert "worse than A, where it is open whether by more than 0.5 points." in named


def test_every_other_method_is_named_so():
    beyond = said(verdicts_of(searched(a=(50, 50.1, 50.2), b=CLEAR["b"], c=CLEAR["c"])), "best")[0]
    assert "It is better than every other method by more than 0.5 points." in beyond
    nothing = said(verdicts_of(searched(a=(20, 30, 40), b=(21, 31, 41), c=(22, 32, 42))), "best")[0]
    assert "It is not told apart from any other method." in nothing


def test_while_searches_are_missing_no_relation_is_claimed():
    best = said(verdicts_of(searched(a=CLEAR["a"], b=CLEAR["b"][:2], c=CLEAR["c"])), "best")[0]
    assert best.startswith("Interim: Concatenated MAP@R, the primary score: A has the highest mean, 30.30")
    assert "better" not in best


def test_single_searches_name_what_is_needed_first_and_settings_as_such():
    quickstart = verdicts_of(kept("quickstart_one_search"))
    needed = "Three searches of each method would say more than one."
    assert f"{needed} How far two searches of this size differ is not known." in said(quickstart, "best")[0]
    (settings,) = said(quickstart, "settings")
    assert "that of Normalized Softmax is better than Untrained trunk, Contrastive and Multi-Similarity" in settings
    assert "This is not about the methods." in settings
    frozen = said(verdicts_of(kept("mlrc_frozen_cub200_subset")), "best")[0]
    assert "Searches of one method (20 trials each) differed by 0.9 points typically and by up to 4.1. It is" in frozen
    assert "if searches vary at most twice as much as in results/measured/search_variance_birds_subset" in frozen
    assert not said(verdicts_of(searched(**CLEAR)), "settings")


def test_single_runs_make_no_method_better():
    one = material(values(a=A[:1], b=B[:1]), reproductions=1)
    assert "It is not tested against B." in said(verdicts_of(one), "best")[0]
    assert any("single run" in sentence for sentence in said(warnings_of(one, unfinished=False)))


def test_one_method_alone_is_compared_with_nothing():
    found = verdicts_of(material(values(a=A)))
    assert {one.kind for one in found} == {"best"}
    assert found[0].sentence.endswith("A has 17.61 ± 0.17 % (4 runs). There is no other method to compare it with.")


def test_secondary_scores_are_named_and_not_tested():
    secondary = said(verdicts_of(material(values(a=A, b=B))), "best")[1:]
    assert [sentence.split(":")[0] for sentence in secondary] == [
        f"{score}, secondary and not tested" for score in ("Separated MAP@R", "Concatenated P@1", "Separated P@1")
    ]
    assert not any("better" in sentence for sentence in secondary)


def test_the_primary_score_of_the_experiment_comes_first():
    named = {**MLRC, "dataset": {"name": "glyphs"}, "primary": {"metric": "precision_at_1", "embeddings": "separated"}}
    found = said(verdicts_of(material(values(a=A, b=B), settings=named)))
    assert found[0].startswith("Separated P@1, the primary score: A has the highest mean")


def test_a_single_model_has_one_kind_of_score():
    runs = {
        key: [
            some_run(key, run, value, fold_fingerprints=("x",), fold_scores=(scores(value),))
            for run, value in enumerate(row)
        ]
        for key, row in (("a", A), ("b", B))
    }
    found = said(verdicts_of(material(runs)), "best")
    assert len(found) == 2
    assert found[0].startswith("MAP@R, the primary score: A has the highest mean")


def test_the_budget_counts_searches_where_they_are_repeated():
    world = searched(searches=2, reproductions=3, a=(50, 60), b=(40, 45))
    assert (world.budget.unit, world.budget.units) == ("search", 2), "three runs of one search are one value"
    assert all("(2 searches)" in text for text in said(verdicts_of(world), "best"))
    (text,) = said(verdicts_of(world), "budget")
    assert text.startswith("2 searches of each of 2 methods can show")


def test_limits_name_the_unit_the_budget_and_what_is_missing():
    assert limits(kept("quickstart_one_search")) == (
        "What limits this answer: 6 of 50 trials; 3 of 10 reproductions; one search per method; 44 of 48 trainings cut "
        "off while the score still rose; how far two searches of this size differ is not known."
    )
    half = searched(searches=3, reproductions=4, a=CLEAR["a"], b=CLEAR["b"][:1], c=CLEAR["c"][:2])
    assert limits(half).startswith("What limits this answer: 20 of 50 trials in each search; 3 searches missing; ")
    assert small_budget(searched(trials=50, reproductions=4, **CLEAR)) == [], "12 reproductions in all"
    failed = limits(searched(a=(29.26, 28.01, 8.13), b=(40, 39, 38)))
    assert failed.startswith(
        "What limits this answer: 20 of 50 trials in each search; 3 of 10 reproductions; 1 failed search of A; "
    )
    assert limits(material({"a": []})) == ""


def test_a_part_of_a_dataset_limits_the_answer():
    experiment = MeasuredExperiment.kept("cub200_small_subset")
    assert limits(Material("cub200_small", experiment)).startswith(
        "What limits this answer: a part of the dataset, 100 classes of cub200; 6 of 50 trials; "
    )
    assert "a part of" not in limits(kept("quickstart_one_search"))
    note = "Only a part of the dataset was used: 100 classes of cub200. Scores on the whole of it differ."
    assert note in table_of(experiment).notes
