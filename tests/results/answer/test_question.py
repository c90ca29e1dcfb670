"""What an experiment asks: which score, which methods are complete, and what their values are."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from results.answer.answer_question import answer, answer_on
from results.answer.intervals import Interval, student_t_interval
from results.answer.question import ALPHA, Question, planned_question, question_of
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.sample_searches import searched

THREE = {
    "good": [[0.40, 0.42], [0.41, 0.41], [0.42, 0.40]],
    "near": [[0.40, 0.41], [0.42, 0.42], [0.40, 0.40]],
    "poor": [[0.20, 0.22], [0.21, 0.21], [0.22, 0.20]],
}


def test_the_data_are_means_of_searches():
    found = answer_of(searched(THREE))
    assert found.values["good"].units == pytest.approx((0.41, 0.41, 0.41))
    near = found.values["near"]
    assert near.units == pytest.approx((0.405, 0.42, 0.40))
    assert (near.runs, near.missing, near.planned.searched) == (6, None, True)
    two = answer_of(searched({key: own[:2] for key, own in THREE.items()}, searches=2))
    assert two.values["near"].units == pytest.approx((0.405, 0.42))
    assert found.question.unit == "search"
    assert {pair.better for pair in found.pairs} == {"good", "near", None}


def test_a_frame_without_a_kind_of_embeddings_answers_about_the_one_it_has():
    frame = answer_of(searched(THREE)).frame
    assert answer(frame).question.embeddings == "concatenated"
    separated = answer(frame[frame["embeddings"] == "separated"])
    assert (separated.question.embeddings, len(separated.pairs)) == ("separated", 3)
    one = frame[frame["embeddings"] == "separated"]
    assert answer(one, Question(embeddings="concatenated")).runs == {}, "what was asked is not replaced"


def test_another_score_is_a_percentage_with_its_own_margin():
    found = answer_of(searched(THREE))
    points = replace(found.question, scale="points", margin=0.02)
    assert points.bound == 0.02
    assert points.on("precision_at_1", "concatenated").bound == found.question.bound == 0.005
    for scale in (None, "fractions", "percent"):
        wider = replace(found.question, scale=scale, margin=2.0)
        assert wider.on("precision_at_1", "concatenated").bound == pytest.approx(0.02)


def test_a_file_asks_for_score_margin_and_comparisons():
    measured = searched(THREE, primary={"metric": "precision_at_1", "margin": 2.0, "compare": "poor"})
    found = answer_of(measured)
    assert [(pair.a, pair.b) for pair in found.pairs] == [("poor", "good"), ("poor", "near")]
    assert (found.question.bound, found.question.alpha) == (pytest.approx(0.02), ALPHA)
    assert found.intervals["good"].mean == 1.0
    assert answer_of(measured, "all").question.compare == "all"


def test_further_scores_share_a_second_level():
    found = answer_of(searched(THREE))
    other = answer_on(found, "precision_at_1", "separated")
    assert other.question.alpha == pytest.approx(0.01)
    assert answer_on(found, "map_at_r", "concatenated") is found


def test_a_file_cannot_compare_with_a_method_that_it_does_not_have():
    with pytest.raises(
        ValueError, match=r"compare: best_loss is no method of this experiment; .*add it, or use all, best, or one of"
    ):
        searched(THREE, primary={"compare": "best_loss"})


def test_a_method_with_missing_searches_is_interim_and_untested():
    found = answer_of(searched({**THREE, "half": [[0.6, 0.6], [0.6]]}))
    assert found.interim
    assert found.values["half"].units == (0.6,)
    assert {pair.untested for pair in found.pairs if pair.b == "half"} == {"searches missing"}
    assert found.pair("good", "poor").better == "good"


def test_a_constant_trunk_is_compared_without_error_and_planned_methods_count():
    found = answer_of(searched({**THREE, "untrained": [[0.03]], "planned": []}, constant=["untrained"]))
    assert found.pair("good", "untrained").better == "good"
    assert found.values["planned"].missing == "searches missing"
    assert "planned" not in found.compared


def test_without_a_search_the_runs_are_the_data():
    runs = {key: [np.ravel(own)] for key, own in THREE.items()}
    found = answer_of(searched(runs, searches=1, runs=6, trials=0))
    assert (found.question.unit, found.settings) == ("run", ())
    assert not any(own.planned.searched for own in found.values.values())
    assert found.pair("good", "poor").better == "good"
    assert len(found.pair("good", "poor").of_a.units) == 6
    single = answer_of(searched(runs, searches=1, runs=6))
    assert single.question.unit == "single search"
    assert all(own.planned.searched for own in single.values.values())
    assert single.intervals["near"] == student_t_interval(np.ravel(THREE["near"]).tolist())


def test_intervals_are_over_searches_for_every_score_of_a_run():
    found = answer_of(searched(THREE))
    alone = np.std([0.405, 0.42, 0.40], ddof=1)
    assert found.intervals["near"].n == 3
    assert found.intervals["near"].half_width == pytest.approx(2.446911851 * alone * (1.25 / 3) ** 0.5)
    assert found.intervals["good"].half_width > 0, "searches that agree by chance borrow the others' deviation"
    one = answer_of(searched({"good": [[0.40, 0.42]], "near": THREE["near"], "begun": [[0.3]]}))
    assert one.intervals["good"].half_width is None
    assert one.intervals["begun"] == Interval(0.3, None, 0)


def test_the_smallest_step_of_a_score_is_that_of_one_neighbour():
    tested = question_of(searched(THREE)).tested
    steps = [tested.step(metric, "concatenated") for metric in ("precision_at_1", "r_precision", "map_at_r")]
    assert steps[0] == pytest.approx(1 / 1498)
    neighbours = 1498 / 104 - 1
    assert steps[1:] == pytest.approx([steps[0] / neighbours, steps[0] / neighbours**2])
    assert tested.step("precision_at_1", "separated") == steps[0] / 4
    assert tested.step("nmi", "separated") == 0


def test_a_plan_names_the_score_that_the_runs_will_have():
    experiment = searched(THREE).plan.experiment
    assert planned_question(experiment).embeddings == "concatenated"
    for changes in ({"folds": 1}, {"protocol": "standard"}):
        assert planned_question(experiment.model_copy(update=changes)).embeddings == "separated"


def test_searches_that_failed_are_left_out_of_every_number():
    found = answer_of(MeasuredExperiment.kept("search_variance_birds_subset"))
    assert found.intervals["triplet"].n == found.values["triplet"].count - 1 == 5
    assert found.intervals["triplet"].mean == pytest.approx(np.mean(found.values["triplet"].units))
    assert (min(found.values["triplet"].units), *found.values["triplet"].failed) == pytest.approx(
        (0.2878, 0.2486), abs=1e-4
    )


def test_records_are_near_by_the_trials_that_searches_got_where_ends_were_probed():
    kept = MeasuredExperiment.kept("reality_check_glyphs_ends_probed")
    assert (kept.plan.trials, question_of(kept).experiment.search.trials) == (12, 18)


values_of_searches = st.lists(st.lists(st.floats(0, 0.25), min_size=2, max_size=2), max_size=3)
stores = st.dictionaries(st.sampled_from("abcdef"), values_of_searches, min_size=2).filter(
    lambda methods: any(methods.values())
)


@settings(max_examples=60, deadline=None)
@given(stores)
def test_of_a_half_finished_experiment_only_complete_methods_get_verdicts(methods):
    found = answer_of(searched(methods))
    complete = {key for key, searches in methods.items() if len(searches) == 3}
    assert found.interim == (len(complete) < len(methods))
    for pair in found.pairs:
        both = {pair.a, pair.b} <= complete
        assert (pair.untested == "searches missing") != both
        assert (pair.p is None) != both
        assert pair.p is None or pair.p > 0
    # The correction is that of the finished experiment.
    if len(complete) > 1 and found.tested:
        assert min(pair.p_better / pair.p for pair in found.pairs if pair.p) >= 1
